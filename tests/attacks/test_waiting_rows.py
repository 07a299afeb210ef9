"""Rows of threads that wait for the world: one byte changed, copied from elsewhere, or written by somebody hostile.

Whoever reads them is told so, by an error of Bide's own, and never sees another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from bide import Store
from bide.errors import BideError, CorruptDataError
from bide.store.encryption import Encryption
from bide.store.facts import open_wake
from bide.store.queue_rows import Claim
from bide.store.rows import Lease
from bide.store.schedule_rows import Plan, ScheduleRow
from bide.store.schedules import open_plan
from bide.store.seal import Checksums
from bide.store.stored_rows import CONDITIONS, DELIVERIES, RUNS, SCHEDULES, WAITS
from bide.waits.wake import Wake
from tests.attacks.corpus import PICKLES, constructor_dicts
from tests.attacks.frames import REGISTERED_CODES, ext, frame, packed
from tests.attacks.test_stored_rows import changed
from tests.attacks.world import Place, attacker, bodies_in
from tests.runtime.world import StillClock
from tests.store.waited import fill_waits, world_of

SEALS: dict[str, dict[str, Any]] = {"checksums": {}, "encryption": {"encryption": Encryption({"2026-a": bytes(32)})}}
PLACES = {
    ("waits", "needs"): lambda place: WAITS.places["needs"](place.key),
    ("conditions", "wake"): lambda place: CONDITIONS.places["wake"](place.key),
    ("deliveries", "body"): lambda place: DELIVERIES.places["body"](place.key),
    ("runs", "input"): lambda place: RUNS.places["input"](place.key),
    ("runs", "options"): lambda place: RUNS.places["options"](place.key),
    ("schedules", "body"): lambda place: SCHEDULES.places["body"](place.key),
}
COLUMNS = tuple(PLACES)
"""Every column of bodies that belongs to waits, wakes and starts."""
LARGEST = 2_000
"""What lies in a blob is attacked elsewhere; here is what refers to it."""

Read = Callable[[Place], Any]


class World:
    """A store in which threads wait, and a connection past it."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.clock = StillClock()
        self.store = Store.open(f"sqlite:///{path}", clock=self.clock, **options)
        fill_waits(self.store, self.clock)
        self.app = world_of(self.store, self.clock).app
        self.bodies = [place for place in bodies_in(path, COLUMNS) if len(place.stored) < LARGEST]
        self.database = attacker(path)

    def close(self) -> None:
        self.store.close()
        self.database.close()

    def of(self, column: tuple[str, str]) -> list[Place]:
        found = [place for place in self.bodies if (place.table, place.column) == column]
        assert found, f"there is nothing in {column}"
        return found

    def read(self, place: Place) -> Any:
        """Read the row as the store itself does."""
        readers: dict[str, Read] = {
            "waits": lambda place: self.store.wait(place.key["wait_id"]),
            "conditions": self._woken,
            "deliveries": lambda place: self.store.delivery(place.key["delivery_id"]),
            "runs": self._claimed,
            "schedules": self._planned,
        }
        return readers[place.table](place)

    def _woken(self, place: Place) -> Wake:
        wait_id, number = place.key["wait_id"], place.key["number"]
        (stored,) = self.database.execute(
            "SELECT wake FROM conditions WHERE wait_id = ? AND number = ?", (wait_id, number)
        ).fetchone()
        return self.store.database.read(lambda tx: open_wake(self.store.bodies, tx, wait_id, number, stored))

    def _planned(self, place: Place) -> Plan:
        row = self.database.execute(
            "SELECT * FROM schedules WHERE schedule_id = ?", list(place.key.values())
        ).fetchone()
        return self.store.database.read(lambda tx: open_plan(self.store.bodies, tx, ScheduleRow(*row)))

    def _claimed(self, place: Place) -> Claim:
        where = (place.key["thread_id"], place.key["run_id"])
        given, options = self.database.execute(
            "SELECT input, options FROM runs WHERE thread_id = ? AND run_id = ?", where
        ).fetchone()
        return self.store.open_claim(Claim(Lease(*where, 1), "asks", 0, given, options))


@pytest.fixture(params=SEALS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path / "bide.db", SEALS[request.param])) as world:
        yield world


@pytest.mark.parametrize("column", COLUMNS, ids=".".join)
def test_a_changed_byte_is_told_by_whoever_reads_it_and_by_verify(world, column):
    unnoticed = []
    for place in world.of(column)[:3]:
        sound = world.read(place)
        for stored in changed(place.stored):
            place.write(world.database, stored)
            try:
                unnoticed.append((str(place), world.read(place)))
            except CorruptDataError:
                continue
        problems = {problem.invariant for problem in world.store.verify().problems}
        assert problems == {"I12"}, problems
        place.write(world.database, place.stored)
        assert world.read(place) == sound

    assert unnoticed == []
    assert world.store.verify().is_sound


@pytest.mark.parametrize("column", COLUMNS, ids=".".join)
def test_a_row_that_was_copied_from_another_place_is_told(world, column):
    place, *others = [*world.of(column), *(one for one in world.bodies if (one.table, one.column) != column)]
    for other in others:
        place.write(world.database, other.stored)
        with pytest.raises(CorruptDataError):
            world.read(place)
    place.write(world.database, place.stored)


# ── Sealed as it should be, and hostile ────────────────────────────────────────────────────────────────────────────

LAYOUTS: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1.5, float("nan"), "", "os.system", b"", [], {}, [[]], [None] * 9, {1: 2},
    {"condition": 7}, {"condition": {}}, {"condition": {"kind": "event"}}, {"condition": {"kind": "__class__"}},
    {"condition": {"kind": "any_of", "of": []}}, {"condition": {"kind": "any_of", "of": [["a", None]]}},
    {"condition": {"kind": "quorum", "k": 2**63, "of": [["a", {"kind": "after", "duration": -1}]]}},
    {"condition": {"kind": "event", "name": "two", "match": {"$regex": "(a+)+$"}}},
    {"condition": {"kind": "email", "subject": {"regex": "(a+)+$"}}}, {"assignees": 7}, {"assignees": [[]]},
    {"timeout": "x", "on_timeout": "explode"}, {"escalate_after": [], "escalate_to": None}, {"schema": 7, "tags": {}},
    {"name": 7}, {"name": "daily", "input": 7, "options": 7, "limit": [1], "jitter": "x", "missed": "maybe"},
    {"config": 7}, {"durability": "os.system", "config": {"configurable": {"thread_id": 7}}}, ["input", 7, 7],
    ["os.system", "true"], ["input"], ["command", {"resume": {"__class__": 1}}],
)  # fmt: skip


def hostile() -> Iterator[bytes]:
    """Bodies as somebody writes them who knows every layout, and no key."""
    yield from (b"", b"\x00", b"\x01", b"\xff" * 9, b"\x01\xc1", frame(b"\x91" * 100_000), b"\xdd\xff\xff\xff\xff")
    for value in (*LAYOUTS, *constructor_dicts()[::9]):
        yield packed(value)
        yield frame(packed(value))
    for pickle in list(PICKLES.values())[::3]:
        yield pickle
        yield frame(pickle)
    for code in REGISTERED_CODES:
        yield frame(ext(code, packed(["bide.Wake", 1, {"value": 1, "delivery": 7, "at": "now"}])))
        yield frame(ext(code, packed(["bide.ChildResult", 1, {"status": "os.system"}])))
        yield frame(ext(code, packed(["os.system", 1, {"command": "true"}])))


@pytest.mark.parametrize("column", COLUMNS, ids=".".join)
def test_hostile_body_is_a_value_or_an_error_of_bides_own_and_the_rest_goes_on(tmp_path, column):
    with closing(World(tmp_path / "bide.db", {})) as world:
        place, seal = world.of(column)[0], Checksums()
        for body in hostile():
            place.write(world.database, seal.close(PLACES[column](place), body))
            with suppress(BideError):
                world.read(place)
            world.store.verify()  # tells, and never fails
        assert world.store.verify().checked["threads"] == 11
