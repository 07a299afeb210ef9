"""A process is killed with SIGKILL at every write boundary of a run, and the run ends as if nothing had happened.

`programs/order.py` drives one thread with two questions, three siblings and all three kinds of effect to its end. It is
run once in peace, to learn the points that it passes, and then once for each of these points: it dies there, another
process goes on, and the end must be the same state, the same bookings, and one line per effect in a ledger outside the
store. The other process is the one that runs the tests, since it need not be started 200 times. All of that holds for
both databases.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bide.errors import BideError
from tests.stories.deaths import InFiles, InSchemas, Story, World

# Each test starts dozens of processes; a busy machine may take minutes for the largest.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OPERATIONS = ["migrate", "read", "begin", "journal", "transact", "commit", "leave", "effect"]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest):
    if request.param == "sqlite":
        yield InFiles()
    else:
        with InSchemas(request.getfixturevalue("postgres_dsn")) as world:
            yield world


@pytest.fixture(scope="module")
def in_peace(world: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Story]:
    """The points that are passed, in order, and what is left behind, when nobody dies."""
    return world.in_peace(tmp_path_factory.mktemp("in_peace") / "sync")


def differences_after_death_at(
    points: list[str], expected: Story, world: World, tmp_path: Path, durability: str = "sync"
) -> dict[str, str]:
    """Die at each of these points; return those after which the story was another one, with the difference."""
    differences: dict[str, str] = {}
    for number, point in enumerate(points):
        try:
            assert world.with_a_death_at(point, tmp_path / str(number), durability) == expected
        except (AssertionError, BideError, *world.errors) as difference:
            differences[point] = repr(difference)
    return differences


def listed(differences: dict[str, str]) -> str:
    return "\n\n".join(f"{point}: {difference}" for point, difference in differences.items())


def test_the_same_run_passes_the_same_points_each_time(in_peace, world, tmp_path):
    points, story = in_peace

    again = world.in_peace(tmp_path / "again")

    assert again == (points, story)
    assert len(set(points)) == len(points) > 150


def test_every_point_belongs_to_an_operation_that_is_tried_below(in_peace):
    points, _ = in_peace

    operations = {point.partition(":")[0].partition(".")[0] for point in points}

    assert operations == set(OPERATIONS)


@pytest.mark.complaint(5)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_death_at_any_point_of_an_operation_changes_nothing(operation, in_peace, world, tmp_path):
    points, expected = in_peace
    chosen = [point for point in points if point.startswith((f"{operation}:", f"{operation}."))]

    differences = differences_after_death_at(chosen, expected, world, tmp_path)

    assert chosen
    assert not differences, listed(differences)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_death_changes_nothing_where_steps_are_saved_later(durability, in_peace, world, tmp_path):
    points, story = world.in_peace(tmp_path / "in peace", durability)
    chosen = points[:: world.stride]

    differences = differences_after_death_at(chosen, story, world, tmp_path, durability)

    assert len(chosen) > 150 // world.stride
    assert story == in_peace[1]
    assert not differences, listed(differences)


def test_death_while_an_earlier_death_is_repaired_changes_nothing(in_peace, world, tmp_path):
    _, expected = in_peace
    place = world.new_place(tmp_path / "order")

    deaths = ["journal:committed@3", "begin:committed@1", "begin:committed@1", "journal:written@1", "commit:written@1"]
    codes = [world.run(place, "sync", point) for point in deaths]
    ended = world.run(place, "sync", "")

    assert codes == [-signal.SIGKILL] * len(deaths)
    assert ended == 0
    assert world.story_of(place) == expected
