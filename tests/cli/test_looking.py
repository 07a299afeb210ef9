"""Looking at threads: the list, the timeline, checkpoints, pictures."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal


def test_threads_are_listed_newest_first(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(days=2, hours=4)
    terminal.see("start", "chats", "{}", "--thread", "c1")

    assert terminal.see("threads").splitlines() == [
        "THREAD   GRAPH     STATUS    BEGAN       CHANGED",
        "c1       chats     ready     just now    just now",
        "r1       refunds   waiting   2d 4h ago   2d 4h ago",
    ]


def test_wide_terminal_shows_why_a_thread_failed(terminal: Terminal):
    terminal.see("start", "chats", "{}", "--thread", "c1")
    terminal.see("start", "payments", "{}", "--thread", "p1")
    terminal.work()

    lines = terminal.see("threads", COLUMNS="130").splitlines()

    assert lines[0].split()[-1] == "ERROR"
    assert next(line for line in lines if line.startswith("p1")).endswith("KeyError: 'amount'")


@pytest.mark.parametrize(
    ("filters", "expected"), [(["--status", "ready"], ["c1"]), (["--graph", "refunds"], ["r1"]), (["-n", "1"], ["c1"])]
)
def test_threads_can_be_narrowed_down(terminal: Terminal, filters: list[str], expected: list[str]):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(seconds=1)
    terminal.see("start", "chats", "{}", "--thread", "c1")

    assert [one["thread_id"] for one in terminal.ask("threads", *filters)["threads"]] == expected


def test_no_threads_are_told_with_the_place_that_was_looked_at(terminal: Terminal):
    seen = terminal.see("threads", "--status", "dead")

    assert seen.split() == ["There", "are", "no", "threads", "(dead)", "in", f"{terminal.folder}/shop.db."]


def test_threads_can_be_seen_without_their_code(terminal: Terminal):
    terminal.start("chats", "c1")
    url = f"sqlite:///{terminal.folder}/shop.db"

    before = terminal.see("--store", url, "threads", BIDE_APP=None)
    after = terminal.see("threads", "--store", url, BIDE_APP=None)

    assert "c1" in before
    assert before.splitlines()[0] == after.splitlines()[0]
    assert "an answer" in terminal.see("show", "c1", "--store", url, BIDE_APP=None)


def test_show_tells_the_story_of_a_thread(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(hours=1, minutes=30)
    short = terminal.wait_of("r1")[:8]

    assert terminal.see("show", "r1").splitlines() == [
        "r1 · refunds · waiting",
        "  began  2026-03-02 09:00:00 (1h 30m ago)",
        "  state  amount = 500",
        "         note = checked",
        "  next   approve",
        "",
        "Waits for",
        f"  {short}  approve: a decision: Refund? (approve / reject), asked: ann, in 46h 30m",
        f"            → bide answer {short} approve",
        "",
        "Timeline, 2026-03-02",
        "  09:00:00.000  + accepted     refunds",
        "  09:00:00.000  ▸ started      begins with check",
        "  09:00:00.000  · step 1       check",
        "  09:00:00.000  ? waits        approve for a decision: Refund? (approve / reject)",
    ]


def test_show_goes_on_until_the_end_and_names_the_day(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.pass_time(days=1)
    terminal.see("answer", "r1", "approve")
    terminal.work()

    lines = terminal.see("show", "r1").splitlines()

    assert lines[0] == "r1 · refunds · done"
    assert lines[-5:] == [
        "  2026-03-03",
        "  09:00:00.000  ↵ answered     approve: approve, by ann, through cli",
        "  09:00:00.000  · step 2       approve",
        "  09:00:00.000  · step 3       pay",
        "  09:00:00.000  ✓ done",
    ]


def test_show_as_json_has_thread_runs_children_and_timeline(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    document = terminal.ask("show", "r1")

    assert document.keys() == {"thread", "runs", "children", "timeline"}
    assert document["thread"]["values"] == {"amount": 500, "note": "checked"}
    assert [one["kind"] for one in document["timeline"]] == ["run.ready", "run.started", "step", "run.waiting"]
    assert document["timeline"][0]["at"] == "2026-03-02T09:00:00+00:00"


def test_thread_is_named_by_how_its_id_begins(terminal: Terminal):
    terminal.start("chats", "customer-4711")
    terminal.start("chats", "customer-4712")

    code, said = terminal.fail("show", "customer-47")

    assert terminal.see("show", "customer-4711").startswith("customer-4711")
    assert code == 2
    assert "customer-4711" in said
    assert "customer-4712" in said


def test_unknown_thread_is_not_found(terminal: Terminal):
    code, said = terminal.fail("show", "nobody")

    assert code == 3
    assert "→ bide threads" in said


def test_history_lists_checkpoints_to_go_back_to(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    lines = terminal.see("history", "r1").splitlines()
    (newest, oldest) = terminal.ask("history", "r1")["checkpoints"]

    assert lines[0].split() == ["CHECKPOINT", "STEP", "SOURCE", "NEXT", "ASKS"]
    assert lines[1].split(maxsplit=4) == [
        newest["checkpoint_id"],
        "1",
        "loop",
        "approve",
        '{"question": "Refund 500 €?"}',
    ]
    assert (oldest["source"], oldest["next"], oldest["values"]) == ("input", ["check"], {"amount": 500})


def test_fork_answers_differently_after_all(terminal: Terminal):
    terminal.start("chats", "c1")
    asked = terminal.ask("history", "c1")["checkpoints"][0]
    terminal.see("answer", "c1", "cats")
    terminal.work()

    forked = terminal.ask("fork", "c1", "--at", asked["checkpoint_id"], "--answer", "dogs", "--start")
    terminal.work()

    assert forked["checkpoint_id"] != asked["checkpoint_id"]
    assert forked["run"]["status"] == "ready"
    assert terminal.ask("show", "c1")["thread"]["values"] == {"note": "dogs"}


def test_fork_at_an_unknown_checkpoint_is_not_found(terminal: Terminal):
    terminal.start("chats", "c1")

    code, said = terminal.fail("fork", "c1", "--at", "nowhere-00000001")

    assert code == 3
    assert "bide history" in said


def test_graph_is_drawn_in_the_terminal_with_where_a_thread_stands(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    alone, standing = terminal.see("graph", "refunds"), terminal.see("graph", "--thread", "r1")

    assert "| approve |" in alone
    assert "(paused)" in standing


@pytest.mark.parametrize(
    ("typed", "name", "begins"),
    [
        (["-o", "g.svg"], "g.svg", b"<svg"),
        (["-o", "g.png"], "g.png", b"\x89PNG"),
        (["-o", "g.mmd"], "g.mmd", b"---"),
        (["--format", "mermaid", "-o", "g"], "g", b"---"),
    ],
)
def test_graph_is_drawn_to_a_file(terminal: Terminal, typed: list[str], name: str, begins: bytes):
    seen = terminal.see("graph", "refunds", *typed)

    assert seen == f"Written to {name}.\n"
    assert (terminal.folder / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(("typed", "code"), [([], 2), (["refund"], 3), (["refunds", "--format", "png"], 2)])
def test_graph_says_what_it_needs(terminal: Terminal, typed: list[str], code: int):
    assert terminal.fail("graph", *typed)[0] == code


def test_follow_shows_what_happened_and_stops_when_the_thread_rests(terminal: Terminal):
    terminal.start("chats", "c1")

    seen = terminal.see("follow", "c1", "--until", "rest")

    assert [line.split()[2] for line in seen.splitlines()] == ["accepted", "started", "waits"]


def test_follow_as_json_is_one_event_a_line_and_goes_on_behind_one(terminal: Terminal):
    terminal.start("chats", "c1")

    events = [json.loads(line) for line in terminal.see("follow", "c1", "--until", "rest", "--json").splitlines()]
    rest = terminal.see("follow", "c1", "--until", "rest", "--json", "--after", events[-2]["id"])

    assert [event["kind"] for event in events] == ["run.ready", "step", "run.started", "run.waiting"]
    assert [json.loads(line) for line in rest.splitlines()] == events[-1:]


def test_replay_check_finds_threads_that_the_code_of_now_would_break(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    well = terminal.type("replay-check")
    code = (terminal.folder / "shop.py").read_text(encoding="utf-8")
    (terminal.folder / "shop.py").write_text(code.replace("Refund {state", "Pay {state"), encoding="utf-8")

    broken = terminal.type("replay-check")
    document = json.loads(terminal.type("replay-check", "--json").stdout)

    assert (well.exit_code, broken.exit_code) == (0, 1)
    assert well.stdout.endswith("1 paused task looked at: all would go on.\n")
    assert "1 of 1 paused task would break." in broken.stdout
    assert [one["breaks"] for one in document["reports"]] == [True]
