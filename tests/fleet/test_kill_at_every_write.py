"""A process is killed with SIGKILL at every write boundary of the runtime's operations, and the story ends the same.

Each story is told once in peace, to learn the points that it passes, and then once for each of these points: the teller
dies there, and another process tells the story from its beginning. The end must be the same: the same threads in the
same state, the same waits and facts, the same bookings, and in a ledger outside of the store one line for each effect.
Every commit of every story is tried, and every statement of a transaction in the first story that has it; with
BIDE_FAULTS=2, every statement wherever it comes.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bide.errors import BideError
from tests.faults.size import TIMES
from tests.fleet.machines import Fleet
from tests.fleet.picture import Picture, picture_of
from tests.fleet.place import Place, Places
from tests.fleet.stories import STORIES, tell

# Each test starts dozens of processes; a busy machine may take minutes for the largest.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 * TIMES)]

OPERATIONS = {
    *("start", "claim", "enter", "commit", "journal", "transact", "wake", "deliver", "match", "sweep", "promote"),
    *("reap", "release", "cancel", "cancel_wait", "extend_wait", "reassign_wait", "spawn", "child_closed"),
    *("schedule", "start_due", "leave"),
}
ELSEWHERE = {"migrate", "read"}
"""What has no write boundary of the runtime's own: `tests/stories` dies of the first, and a reader loses nothing."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Fleet]:
    with Fleet(Place("", "")) as fleet:
        yield fleet


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    dsn = "" if request.param == "sqlite" else request.getfixturevalue("postgres_dsn")
    with Places(tmp_path_factory.mktemp("places"), dsn) as places:
        yield places


class Peace(NamedTuple):
    """A story that nobody has disturbed."""

    points: list[str]
    """What it passes, in order."""
    chosen: list[str]
    """Where it is tried to die."""
    end: Picture


@pytest.fixture(scope="module")
def in_peace(nursery: Fleet, places: Places) -> dict[str, Peace]:
    """Every story, in peace."""
    told: dict[str, Peace] = {}
    tried: set[str] = set()
    for story in STORIES:
        place = places.new()
        points = points_of(nursery, place, story)
        told[story] = Peace(points, chosen(points, tried), picture_of(place))
    return told


def points_of(nursery: Fleet, place: Place, story: str) -> list[str]:
    """Tell a story in peace; return the points that it passes, in order."""
    trace = str(Path(place.folder) / "trace.txt")
    nursery.place = place
    nursery.live("tests.fleet.stories:tell", 0, [place, story], trace=trace)
    assert nursery.wait(0) == 0, nursery.said(0)
    return Path(trace).read_text(encoding="utf-8").splitlines()


def chosen(points: list[str], tried: set[str]) -> list[str]:
    """Choose where to die: at every commit, and at every statement that was not tried yet."""
    where = []
    for point in points:
        name = point.partition("@")[0]
        is_ours = operation_of(point) not in ELSEWHERE
        if is_ours and (TIMES > 1 or name.endswith(":committed") or name not in tried):
            where.append(point)
        tried.add(name)
    return where


def operation_of(point: str) -> str:
    return point.partition(":")[0]


def end_after_death_at(point: str, story: str, nursery: Fleet, place: Place) -> Picture:
    """Die at a point, tell the story again, and return what is left."""
    nursery.place = place
    nursery.live("tests.fleet.stories:tell", 0, [place, story], point=point)
    assert nursery.wait(0) == -signal.SIGKILL, f"did not die: {nursery.said(0)}"
    tell(place, story)
    return picture_of(place)


@pytest.mark.parametrize("story", STORIES)
def test_death_at_any_point_of_a_story_changes_nothing(story, nursery, places, in_peace):
    differences = {}

    for point in in_peace[story].chosen:
        try:
            assert end_after_death_at(point, story, nursery, places.new()) == in_peace[story].end
        except (AssertionError, BideError) as difference:
            differences[point] = repr(difference)

    assert len(in_peace[story].chosen) >= 10
    assert not differences, "\n\n".join(f"{point}: {found}" for point, found in differences.items())


def test_every_operation_of_the_runtime_is_in_a_story(in_peace):
    points = [point for told in in_peace.values() for point in told.points]

    assert {operation_of(point) for point in points} - ELSEWHERE == OPERATIONS
