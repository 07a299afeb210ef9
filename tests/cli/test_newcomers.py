"""What somebody new stumbles over: nobody works, a name is misspelt, a fact is taken for a question."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal

NOBODY = "Nobody works right now → bide worker\n"


def test_whoever_starts_answers_or_follows_is_told_that_nobody_works(terminal: Terminal):
    started = terminal.type("start", "chats", "{}", "--thread", "c1")
    terminal.work()
    answered = terminal.type("answer", "c1", "tea")
    terminal.work()
    terminal.start("payments", "p1", {"amount": 5})
    delivered = terminal.type("deliver", "paid", '{"amount": 5}')

    assert [one.stderr.endswith(NOBODY) for one in (started, answered, delivered)] == [True, True, True]


def test_programs_are_not_told_that_nobody_works(terminal: Terminal):
    assert terminal.type("start", "chats", "{}", "--json").stderr == ""


def test_following_a_thread_that_failed_fails(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.see("answer", "r1", "approve")
    terminal.work(BANK="closed")

    code, said = terminal.fail("follow", "r1")

    assert (code, said) == (1, "Thread r1 is failed → bide retry r1")
    assert "→ bide show r1; then bide retry r1" in terminal.see("doctor")


def test_following_a_thread_that_is_done_works(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("answer", "c1", "tea")
    terminal.work()

    assert "done" in terminal.see("follow", "c1")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["waits", "--kind", "aproval"], "--kind 'aproval' is not known. Did you mean 'approval'?"),
        (["threads", "--status", "waitin"], "--status 'waitin' is not known. Did you mean 'waiting'?"),
        (["deliver", "paid", "--kind", "webhok"], "--kind 'webhok' is not known. Did you mean 'webhook'?"),
        (["start", "chats", "{}", "--at", "2026-03-02T12:00"], "Add the zone: 2026-03-02T12:00+02:00, or"),
        (["start", "chats", "{}", "--at", "noon"], "--at 'noon' is no moment"),
    ],
)
def test_what_is_misspelt_is_a_mistake_of_the_caller(terminal: Terminal, typed: list[str], said: str):
    code, told = terminal.fail(*typed)

    assert code == 2
    assert said in told


def test_inbox_of_somebody_says_how_many_others_wait(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.start("chats", "c1")

    result = terminal.type("waits", "--assignee", "bob")

    assert result.stdout == "Nobody waits for bob.\n"
    assert result.stderr == "2 more wait for others, or for nobody in particular: bide waits\n"


def test_hint_names_the_wait_that_was_meant(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})

    assert f"→ bide answer {terminal.wait_of('r1')[:8]}" in terminal.fail("answer", "r1", "perhaps")[1]


def test_wait_for_a_fact_is_not_answered_by_mistake(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 5})

    code, said = terminal.fail("answer", "p1", '{"amount": 5}')
    still_waits = terminal.wait_of("p1")
    terminal.see("answer", "p1", '{"amount": 5}', "--force")

    assert code == 5
    assert "asks nobody. Bring it: bide deliver paid JSON." in said
    assert still_waits
    assert terminal.see("waits") == "Nobody waits.\n"


def test_question_of_a_wait_for_a_fact_shows_how_to_bring_it(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 5})

    result = terminal.type("answer", "p1")

    assert result.exit_code == 2
    assert "bide deliver paid JSON" in result.stdout
    assert "bide answer" not in result.stdout
