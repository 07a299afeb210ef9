"""Two processes want the same thread: exactly one gets it, and the other one's code does nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stories.programs.child import Child

pytestmark = pytest.mark.slow

ROUNDS = 200
AT_THE_DOOR = True


@pytest.fixture
def racers(tmp_path: Path) -> Iterator[list[Child]]:
    with Child("racer.py", tmp_path, "ada") as ada, Child("racer.py", tmp_path, "bob") as bob:
        assert [ada.hear(), bob.hear()] == ["ready", "ready"]
        yield [ada, bob]


def race(racers: list[Child], what: str, thread: str, *, rendezvous: bool) -> list[dict[str, object]]:
    """Let both do the same at once; return how it ended for each."""
    for racer in racers:
        racer.tell(what, thread, rendezvous)
    if rendezvous:
        assert [racer.hear() for racer in racers] == ["at the door", "at the door"]
        for racer in racers:
            racer.tell("go")
    return [racer.hear() for racer in racers]


def winners_of(rounds: list[list[dict[str, object]]]) -> list[str]:
    names = [[who for who, end in zip(("ada", "bob"), ends, strict=True) if end["won"]] for ends in rounds]
    assert all(len(won) == 1 for won in names), f"rounds without exactly one winner: {names}"
    return [won[0] for won in names]


def ledger(folder: Path) -> dict[str, list[str]]:
    """Who acted, for each thread."""
    acted: dict[str, list[str]] = {}
    with closing(sqlite3.connect(folder / "bide.db")) as database:
        for thread, who in database.execute("SELECT thread, who FROM ledger"):
            acted.setdefault(thread, []).append(who)
    return acted


def marks(folder: Path) -> Counter[str]:
    return Counter((folder / "marks.txt").read_text(encoding="utf-8").split()[1::2])


@pytest.mark.complaint(11)
@pytest.mark.parametrize("rendezvous", [True, False], ids=["both have read the thread", "as it comes"])
def test_two_processes_resume_the_same_thread_and_one_wins(racers, rendezvous, tmp_path):
    threads = [f"thread-{number}" for number in range(ROUNDS)]
    for thread in threads:
        assert racers[0].ask("ask", thread) == {"won": True}

    rounds = [race(racers, "resume", thread, rendezvous=rendezvous) for thread in threads]

    assert ledger(tmp_path) == {thread: [who] for thread, who in zip(threads, winners_of(rounds), strict=True)}
    assert marks(tmp_path) == {"ask": ROUNDS, "act": ROUNDS}
    refusals = {end["error"] for ends in rounds for end in ends if not end["won"]}
    assert refusals <= {"ThreadBusyError", "AlreadyAnsweredError", "NotWaitingError"}


def test_who_loses_after_reading_a_waiting_thread_is_told_of_a_conflict(racers):
    racers[0].ask("ask", "thread")

    ends = race(racers, "resume", "thread", rendezvous=AT_THE_DOOR)

    assert [end["is_conflict"] for end in ends if not end["won"]] == [True]


def test_two_processes_start_the_same_new_thread_and_one_wins(racers, tmp_path):
    threads = [f"thread-{number}" for number in range(50)]

    rounds = [race(racers, "start", thread, rendezvous=AT_THE_DOOR) for thread in threads]

    assert len(winners_of(rounds)) == 50
    assert marks(tmp_path) == {"ask": 50}
    assert {end["error"] for ends in rounds for end in ends if not end["won"]} == {"ThreadBusyError"}


def test_the_loser_of_a_race_can_take_the_next_thread(racers, tmp_path):
    for thread in ("first", "second"):
        racers[0].ask("ask", thread)
    ends = race(racers, "resume", "first", rendezvous=AT_THE_DOOR)
    loser = racers[[end["won"] for end in ends].index(False)]

    assert loser.ask("resume", "second") == {"won": True}

    assert set(ledger(tmp_path)) == {"first", "second"}
