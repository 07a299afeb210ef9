"""The inbox at the terminal: who waits, and answers to them."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal


def test_inbox_shows_who_waits_for_what_since_when_and_until_when(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(hours=3)
    terminal.start("chats", "c1")
    refund, chat = terminal.wait_of("r1"), terminal.wait_of("c1")

    seen = terminal.see("waits")

    assert seen.splitlines() == [
        "WAIT       THREAD   WAITING FOR                              SINCE      UNTIL",
        f"{refund[:8]}   r1       a decision: Refund? (approve / reject)   3h ago     in 45h",
        f"{chat[:8]}   c1       an answer: What is it about?             just now   –",
    ]


def test_inbox_on_a_narrow_terminal_has_a_block_for_each_wait(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    seen = terminal.see("waits", COLUMNS="50")

    assert seen.splitlines() == [
        terminal.wait_of("r1")[:8],
        "  thread       r1",
        "  waiting for  a decision: Refund? (approve /",
        "               reject)",
        "  who          ann",
        "  since        just now",
        "  until        in 2d",
    ]


def test_empty_inbox_says_so(terminal: Terminal):
    assert terminal.see("waits") == "Nobody waits.\n"


@pytest.mark.parametrize(
    ("filters", "threads"),
    [
        (["--assignee", "ann"], ["r1"]),
        (["--kind", "question"], ["c1"]),
        (["--graph", "refunds"], ["r1"]),
        (["--thread", "c1"], ["c1"]),
        (["--tag", "urgent"], []),
        (["--most", "1"], ["r1"]),
    ],
)
def test_inbox_can_be_narrowed_down(terminal: Terminal, filters: list[str], threads: list[str]):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(seconds=1)
    terminal.start("chats", "c1")

    found = terminal.ask("waits", *filters)["waits"]

    assert [wait["thread_id"] for wait in found] == threads


def test_waits_as_json_have_all_there_is_to_know(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    (wait,) = terminal.ask("waits")["waits"]

    assert wait["thread_id"] == "r1"
    assert (wait["graph"], wait["node"], wait["kind"], wait["status"]) == ("refunds", "approve", "approval", "open")
    assert wait["question"] == {"question": "Refund 500 €?"}
    assert wait["created_at"] == "2026-03-02T09:00:00+00:00"
    assert wait["deadline"] == "2026-03-04T09:00:00+00:00"
    assert wait["assignees"] == ["ann"]


# ── Answering ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answer_lets_the_thread_go_on(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    seen = terminal.see("answer", "r1", "approve")
    terminal.work()

    assert seen == "✓ Thread r1: approve answered with approve.\n"
    assert terminal.ask("show", "r1")["thread"]["values"] == {"amount": 500, "decision": "approve", "note": "paid"}


def test_wait_is_named_by_its_id_or_by_how_that_begins(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 1})
    terminal.start("refunds", "r2", {"amount": 2})

    terminal.see("answer", terminal.wait_of("r1"), "approve")
    terminal.see("answer", terminal.wait_of("r2")[:8], "reject")

    assert terminal.see("waits") == "Nobody waits.\n"


def test_decision_may_come_with_a_comment(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 1})

    terminal.see("answer", "r1", "reject", "--comment", "too dear")

    assert "too dear" in terminal.see("show", "r1")


def test_answer_without_a_value_shows_what_is_asked_and_how_to_answer(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    short = terminal.wait_of("r1")[:8]

    result = terminal.type("answer", "r1")

    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        "Refund?",
        "  thread        r1 (refunds, node approve)",
        "  waits for     a decision: Refund? (approve / reject)",
        "  since         just now",
        '  question      {"question": "Refund 500 €?"}',
        "  for           ann",
        "  until         2026-03-04 09:00:00 (in 2d)",
        "  an answer is  one of approve, reject",
        "",
        "Answer it",
        f"bide answer {short} approve",
    ]


def test_answer_is_kept_with_who_gave_it(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.start("refunds", "r2", {"amount": 500})
    mine, theirs = terminal.wait_of("r1"), terminal.wait_of("r2")

    terminal.see("answer", mine, "approve")
    terminal.see("answer", theirs, "approve", "--by", "bob")

    assert "answered     approve: approve, by ann, through cli" in terminal.see("show", "r1")
    assert "answered     approve: approve, by bob, through cli" in terminal.see("show", "r2")


@pytest.mark.parametrize(
    ("typed", "stdin", "answer"),
    [
        (["hello"], None, "hello"),
        (["5"], None, 5),
        (["5", "--text"], None, "5"),
        (['{"a": [1]}'], None, {"a": [1]}),
        (["null"], None, None),
        (["-"], "from a pipe", "from a pipe"),
        (["@@home"], None, "@home"),
    ],
)
def test_answer_is_json_or_else_the_text_that_was_typed(
    terminal: Terminal, typed: list[str], stdin: str, answer: object
):
    terminal.start("chats", "c1")

    terminal.see("answer", "c1", *typed, stdin=stdin)
    terminal.work()

    assert terminal.ask("show", "c1")["thread"]["values"].get("note") == answer


def test_answer_comes_out_of_a_file(terminal: Terminal):
    (terminal.folder / "answer.json").write_text('{"about": "cats"}', encoding="utf-8")
    terminal.start("chats", "c1")

    terminal.see("answer", "c1", "@answer.json")
    terminal.work()

    assert terminal.ask("show", "c1")["thread"]["values"] == {"note": {"about": "cats"}}


def test_answer_that_does_not_fit_is_refused_and_the_question_stays_open(terminal: Terminal):
    terminal.start("counting", "n1")

    code, said = terminal.fail("answer", "n1", "many")

    assert code == 5
    assert "does not fit" in said
    assert "→ bide answer " in said
    assert terminal.wait_of("n1")


def test_second_answer_is_told_who_was_first(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    wait = terminal.wait_of("r1")
    terminal.see("answer", wait, "approve", "--by", "bob")

    code, said = terminal.fail("answer", wait[:8], "reject")

    assert code == 4
    assert "by bob" in said
    assert "→ bide show r1" in said


def test_answer_after_the_deadline_is_told_so(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(days=3)

    code, said = terminal.fail("answer", "r1", "approve")

    assert code == 4
    assert "ran out before this answer came" in said


def test_unknown_wait_is_not_found(terminal: Terminal):
    terminal.start("chats", "c1")

    code, said = terminal.fail("answer", "c9", "hello")

    assert code == 3
    assert "→ bide waits" in said


def test_thread_that_waits_for_nothing_is_a_conflict(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("answer", "c1", "hello")
    terminal.work()

    code, said = terminal.fail("answer", "c1", "again")

    assert code == 4
    assert "→ bide show c1" in said


def test_of_several_decisions_one_is_named(terminal: Terminal):
    terminal.start("contracts", "k1")

    code, said = terminal.fail("answer", "k1", "yes")
    terminal.see("answer", "k1", "yes", "--leaf", "boss")
    terminal.see("answer", "k1", "yes", "--leaf", "clerk")
    terminal.work()

    assert code == 2
    assert "boss, clerk" in said
    assert terminal.ask("show", "k1")["thread"]["status"] == "done"


def test_thread_that_stops_before_a_node_goes_on_without_a_value(terminal: Terminal):
    terminal.start("careful", "r1", {"amount": 5})

    asked = terminal.see("show", "r1")
    seen = terminal.see("answer", "r1")
    terminal.work()

    assert "pay: somebody to go on (it stops before this node)" in asked
    assert seen == "✓ Thread r1: pay went on.\n"
    assert terminal.ask("show", "r1")["thread"]["status"] == "done"


# ── For programs ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_wake_under_the_same_key_may_be_sent_again(terminal: Terminal):
    terminal.start("chats", "c1")
    wait = terminal.wait_of("c1")

    first = terminal.ask("wake", wait, '"hello"', "--key", "mail-7")
    again = terminal.ask("wake", wait, '"hello"', "--key", "mail-7")
    code, _ = terminal.fail("wake", wait, '"hello"', "--key", "mail-8")

    assert first["woken"]["status"] == "resumed"
    assert again["woken"]["status"] == "already_answered"
    assert code == 4


def test_wake_takes_json_and_nothing_else(terminal: Terminal):
    terminal.start("chats", "c1")

    code, said = terminal.fail("wake", "c1", "hello")

    assert code == 2
    assert "no JSON" in said
    assert terminal.wait_of("c1")


def test_error_as_json_says_its_kind_and_what_to_type_next(terminal: Terminal):
    terminal.start("chats", "c1")

    result = terminal.type("answer", "c9", "hello", "--json")

    error = json.loads(result.stderr)["error"]
    assert result.stdout == ""
    assert (error["kind"], error["exit_code"], error["next"]) == ("not_found", 3, ["bide waits"])


def test_escape_sequences_in_a_question_do_not_reach_the_terminal(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("wake", "c1", json.dumps("\x1b]0;owned\x07 and \u202egnp.exe"))
    terminal.work()

    seen = terminal.see("show", "c1")

    assert "\x1b" not in seen
    assert "\u202e" not in seen
    assert "\\x1b]0;owned\\x07 and \\u202egnp.exe" in seen
