"""A process is killed with SIGKILL at every write boundary of a run of graphs inside graphs; the run ends the same.

`programs/expedition.py` has graphs two levels down, side by side, with questions and steps. It is run once in peace, to
learn the points that it passes, and then once for each of them: it dies there, and this process goes on to the end.
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
from tests.nested.programs.expedition import drive
from tests.stories.programs.child import run_program

# Each test starts dozens of processes; a busy machine may take minutes for the largest.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = str(Path(__file__).parent / "programs" / "expedition.py")
PARTS = 4


class Story(NamedTuple):
    """What a run has left behind."""

    state: dict[str, Any]
    ledger: list[str]


def run_in_peace(folder: Path, durability: str = "sync") -> tuple[list[str], Story]:
    """Run without a death; return the points that were passed, in order, and what was left behind."""
    folder.mkdir()
    trace = folder / "trace.txt"
    ended = run_program(PROGRAM, folder, durability, BIDE_FAILPOINT_TRACE=str(trace))
    assert ended.returncode == 0, ended.stderr
    return trace.read_text(encoding="utf-8").splitlines(), story_of(folder, json.loads(ended.stdout))


def told_with_a_death_at(point: str, folder: Path, durability: str) -> Story:
    """Run until death at this point, then go on until the end."""
    folder.mkdir()
    killed = run_program(PROGRAM, folder, durability, BIDE_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL, f"did not die: {killed.stderr or killed.stdout}"
    return story_of(folder, drive(folder, durability))


def story_of(folder: Path, state: dict[str, Any]) -> Story:
    ledger, calls = lines_of(folder / "ledger.txt"), lines_of(folder / "calls.txt")
    assert len({key for key, _ in ledger}) == len({what for _, what in ledger}) == len(ledger)
    assert {tuple(call) for call in calls} == {tuple(line) for line in ledger}
    counts = Counter(what for _, what in calls)
    assert (counts["north.tents"], counts["south.tents"]) == (1, 1)
    with closing(sqlite3.connect(folder / "bide.db")) as database:
        check_store_is_at_rest(database)
    return Story(state, sorted(what for _, what in ledger))


def lines_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


def check_store_is_at_rest(database: sqlite3.Connection) -> None:
    """Nobody runs, nobody waits, nothing is left in the journal, and no place has a hole in its history."""

    def column(query: str) -> list[Any]:
        return [value for (value,) in database.execute(query)]

    assert column("SELECT status FROM runs ORDER BY created_at DESC LIMIT 1") == ["done"]
    assert column("SELECT count(*) FROM waits WHERE status = 'open' OR consumed = 0") == [0]
    assert column("SELECT count(*) FROM journal") == [0]
    assert column("SELECT count(*) FROM checkpoints WHERE parent >= seq") == [0]


def differences_after_death_at(points: list[str], expected: Story, folder: Path, durability: str) -> dict[str, str]:
    """Die at each of these points; return those after which the story was another one, with the difference."""
    differences: dict[str, str] = {}
    for number, point in enumerate(points):
        try:
            assert told_with_a_death_at(point, folder / str(number), durability) == expected
        except (AssertionError, BideError, sqlite3.Error) as difference:
            differences[point] = repr(difference)
    return differences


@pytest.fixture(scope="module")
def in_peace(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Story]:
    return run_in_peace(tmp_path_factory.mktemp("in_peace") / "sync")


def test_expedition_passes_the_same_points_each_time(in_peace: tuple[list[str], Story], tmp_path: Path):
    assert run_in_peace(tmp_path / "again") == in_peace
    assert len(in_peace[0]) > 150


@pytest.mark.parametrize("part", range(PARTS))
def test_death_at_any_write_inside_changes_nothing(part: int, in_peace: tuple[list[str], Story], tmp_path: Path):
    points, expected = in_peace
    chosen = [point for point in points if not point.startswith(("migrate", "read"))][part::PARTS]

    differences = differences_after_death_at(chosen, expected, tmp_path, "sync")

    assert chosen
    assert not differences, "\n\n".join(f"{point}: {difference}" for point, difference in differences.items())


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_death_inside_changes_nothing_where_steps_are_saved_later(
    durability: str, in_peace: tuple[list[str], Story], tmp_path: Path
):
    points, story = run_in_peace(tmp_path / "in peace", durability)
    chosen = [point for point in points if not point.startswith(("migrate", "read"))][::6]

    differences = differences_after_death_at(chosen, story, tmp_path, durability)

    assert story == in_peace[1]
    assert not differences, "\n\n".join(f"{point}: {difference}" for point, difference in differences.items())
