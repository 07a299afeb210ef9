"""A process is killed with SIGKILL at every write boundary of a run, and the run ends as if nothing had happened.

`programs/order.py` drives one thread with two questions, three siblings and all three kinds of effect to its end. It is
run once in peace, to learn the points that it passes, and then once for each of these points: it dies there, another
process goes on, and the end must be the same state, the same bookings, and one line per effect in a ledger outside the
store. The other process is the one that runs the tests, since it need not be started 200 times.
"""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bide.errors import BideError
from tests.stories.programs.child import run_program
from tests.stories.programs.order import drive

# Each test starts dozens of processes; a busy machine may take minutes for the largest.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OPERATIONS = ["migrate", "read", "begin", "journal", "transact", "commit", "leave", "effect"]
ONCE = {"charge", "dispatch.post"}


class Story(NamedTuple):
    """What a run has left behind."""

    state: dict[str, Any]
    ledger: list[str]
    bookings: list[str]


def trace_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def run_in_peace(folder: Path, durability: str = "sync") -> tuple[list[str], Story]:
    """Run without a death; return the points that were passed, in order, and what was left behind."""
    folder.mkdir()
    ended = run_program("order.py", folder, durability, BIDE_FAILPOINT_TRACE=str(folder / "trace.txt"))
    assert ended.returncode == 0, ended.stderr
    return trace_of(folder / "trace.txt"), story_of(folder, json.loads(ended.stdout))


def told_with_a_death_at(point: str, folder: Path, durability: str = "sync") -> Story:
    """Run until death at this point, then go on until the end."""
    folder.mkdir()
    trace = folder / "trace.txt"
    killed = run_program("order.py", folder, durability, BIDE_FAILPOINT=point, BIDE_FAILPOINT_TRACE=str(trace))
    assert killed.returncode == -signal.SIGKILL, f"did not die: {killed.stderr or killed.stdout}"
    assert trace_of(trace)[-1] == point
    return story_of(folder, drive(folder, durability))


def story_of(folder: Path, state: dict[str, Any]) -> Story:
    check_effects_happened_once(folder)
    with closing(sqlite3.connect(folder / "bide.db")) as database:
        check_store_is_at_rest(database)
        bookings = [what for (what,) in database.execute("SELECT what FROM bookings ORDER BY what")]
    return Story(state, sorted(what for _, what in lines_of(folder / "ledger.txt")), bookings)


def lines_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


def check_effects_happened_once(folder: Path) -> None:
    """One line per key and per effect; a call that was repeated came with its old key; `once` was never repeated."""
    ledger, calls = lines_of(folder / "ledger.txt"), lines_of(folder / "calls.txt")
    assert len({key for key, _ in ledger}) == len({what for _, what in ledger}) == len(ledger)
    assert {tuple(call) for call in calls} == {tuple(line) for line in ledger}
    counts = Counter(what for _, what in calls)
    assert {what: counts[what] for what in ONCE} == dict.fromkeys(ONCE, 1)


def check_store_is_at_rest(database: sqlite3.Connection) -> None:
    """The thread has ended: nobody runs, nobody waits, and its history has no hole and no second head."""

    def column(query: str) -> list[Any]:
        return [value for (value,) in database.execute(query)]

    assert column("PRAGMA integrity_check") == ["ok"]
    assert set(column("SELECT status FROM runs")) <= {"done", "cancelled"}
    assert column("SELECT status FROM runs ORDER BY created_at DESC LIMIT 1") == ["done"]
    assert column("SELECT count(*) FROM waits WHERE status = 'open' OR consumed = 0") == [0]
    assert column("SELECT count(*) FROM journal") == [0]
    written_at = column("SELECT created_at FROM checkpoints ORDER BY seq")
    assert written_at == sorted(written_at)
    assert column("SELECT count(*) FROM checkpoints WHERE parent >= seq") == [0]
    numbers = column("SELECT number FROM events ORDER BY number")
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.fixture(scope="module")
def in_peace(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Story]:
    return run_in_peace(tmp_path_factory.mktemp("in_peace") / "sync")


def differences_after_death_at(
    points: list[str], expected: Story, tmp_path: Path, durability: str = "sync"
) -> dict[str, str]:
    """Die at each of these points; return those after which the story was another one, with the difference."""
    differences: dict[str, str] = {}
    for number, point in enumerate(points):
        try:
            assert told_with_a_death_at(point, tmp_path / str(number), durability) == expected
        except (AssertionError, BideError, sqlite3.Error) as difference:
            differences[point] = repr(difference)
    return differences


def listed(differences: dict[str, str]) -> str:
    return "\n\n".join(f"{point}: {difference}" for point, difference in differences.items())


def test_the_same_run_passes_the_same_points_each_time(in_peace, tmp_path):
    points, story = in_peace

    again = run_in_peace(tmp_path / "again")

    assert again == (points, story)
    assert len(set(points)) == len(points) > 150


def test_every_point_belongs_to_an_operation_that_is_tried_below(in_peace):
    points, _ = in_peace

    operations = {point.partition(":")[0].partition(".")[0] for point in points}

    assert operations == set(OPERATIONS)


@pytest.mark.complaint(5)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_point_of_an_operation_changes_nothing(operation, in_peace, tmp_path):
    points, expected = in_peace
    chosen = [point for point in points if point.startswith((f"{operation}:", f"{operation}."))]

    differences = differences_after_death_at(chosen, expected, tmp_path)

    assert chosen
    assert not differences, listed(differences)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_death_changes_nothing_where_steps_are_saved_later(durability, in_peace, tmp_path):
    points, story = run_in_peace(tmp_path / "in peace", durability)
    chosen = points[::5]

    differences = differences_after_death_at(chosen, story, tmp_path, durability)

    assert len(chosen) > 30
    assert story == in_peace[1]
    assert not differences, listed(differences)


def test_death_while_an_earlier_death_is_repaired_changes_nothing(in_peace, tmp_path):
    _, expected = in_peace
    folder = tmp_path / "order"
    folder.mkdir()

    deaths = ["journal:committed@3", "begin:committed@1", "begin:committed@1", "journal:written@1", "commit:written@1"]
    codes = [run_program("order.py", folder, BIDE_FAILPOINT=point).returncode for point in deaths]
    ended = run_program("order.py", folder)

    assert codes == [-signal.SIGKILL] * len(deaths)
    assert story_of(folder, json.loads(ended.stdout)) == expected
