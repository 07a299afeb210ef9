"""Schedules at the terminal."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal


def test_schedule_starts_runs_when_it_is_due(terminal: Terminal):
    seen = terminal.see("schedules", "add", "lunch", "chats", "0 12 * * *", COLUMNS="80")
    terminal.pass_time(hours=3)
    terminal.work()

    assert seen.splitlines() == [
        "SCHEDULE   GRAPH   CRON         NEXT    LAST",
        "lunch      chats   0 12 * * *   in 3h   –",
    ]
    assert len(terminal.ask("threads", "--graph", "chats")["threads"]) == 1


def test_schedules_are_listed_also_without_the_word(terminal: Terminal):
    terminal.see("schedules", "add", "nightly", "refunds", "0 3 * * *", '{"amount": 5}', "-z", "Europe/Paris")

    plain, named = terminal.ask("schedules"), terminal.ask("schedules", "list")

    (schedule,) = plain["schedules"]
    assert plain == named
    assert (schedule["name"], schedule["timezone"], schedule["is_paused"]) == ("nightly", "Europe/Paris", False)
    assert schedule["next_at"] == "2026-03-03T02:00:00+00:00"


def test_paused_schedule_starts_nothing(terminal: Terminal):
    terminal.see("schedules", "add", "lunch", "chats", "0 12 * * *")
    paused = terminal.ask("schedules", "pause", "lunch")["schedule"]
    terminal.pass_time(days=1)
    terminal.work()

    listed = terminal.see("schedules")
    resumed = terminal.ask("schedules", "resume", "lunch")["schedule"]

    assert paused["is_paused"] is True
    assert "paused" in listed
    assert resumed["next_at"] == "2026-03-03T12:00:00+00:00"
    assert terminal.ask("threads")["threads"] == []


def test_removed_schedule_is_gone(terminal: Terminal):
    terminal.see("schedules", "add", "lunch", "chats", "0 12 * * *")

    assert terminal.ask("schedules", "remove", "lunch") == {"name": "lunch", "is_removed": True}
    assert terminal.see("schedules") == "There are no schedules.\n"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["add", "lunch", "chats", "at noon"], 5),
        (["add", "lunch", "chat", "0 12 * * *"], 3),
        (["add", "lunch", "chats", "0 12 * * *", "-z", "Mars"], 5),
        (["pause", "dinner"], 3),
        (["resume", "dinner"], 3),
        (["remove", "dinner"], 3),
    ],
)
def test_schedules_say_what_they_need(terminal: Terminal, typed: list[str], code: int):
    terminal.see("migrate")

    assert terminal.fail("schedules", *typed)[0] == code
