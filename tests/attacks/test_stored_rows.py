"""One byte of one stored row is changed: whoever reads it is told so, and nobody ever sees another value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bide import Command, Store
from bide.errors import CorruptDataError
from bide.store.encryption import Encryption
from tests.attacks.world import COLUMNS, Place, attacker, bodies_in, build, graph_on, questions, readers
from tests.threads import thread

SEALS: dict[str, dict[str, Any]] = {"checksums": {}, "encryption": {"encryption": Encryption({"2026-a": bytes(32)})}}

FEW = 120
"""In bodies of up to so many bytes, every byte is changed; in longer ones the first and last, and some between."""


class World:
    """A store with threads in it, and a connection past the store."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.path = path
        build(path, **options)
        self.bodies = [place for place in bodies_in(path) if place.thread_id in (None, "waiting")]
        self.database = attacker(path)
        self.store = Store.open(f"sqlite:///{path}", **options)
        self.graph = graph_on(self.store)
        self.readers = readers(self.store, self.graph, "waiting")
        self.sound = {name: read() for name, read in self.readers.items()}

    def close(self) -> None:
        self.store.close()
        self.database.close()

    def of(self, table: str, column: str) -> list[Place]:
        """The bodies of a column."""
        found = [place for place in self.bodies if (place.table, place.column) == (table, column)]
        assert found, f"there is nothing in {table}.{column}"
        return found

    def read_all(self) -> dict[str, CorruptDataError]:
        """Read everything; return who was told that something is damaged. Whoever was not must see what was there."""
        told = {}
        for name, read in self.readers.items():
            try:
                found = read()
            except CorruptDataError as error:
                told[name] = error
                continue
            assert found == self.sound[name], f"{name} gives another value"
        return told


@pytest.fixture(scope="module", params=SEALS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with closing(World(tmp_path_factory.mktemp("rows") / "bide.db", SEALS[request.param])) as world:
        yield world


def positions(length: int) -> list[int]:
    if length <= FEW:
        return list(range(length))
    return [*range(60), *range(60, length - 20, max(1, length // 20)), *range(length - 20, length)]


def changed(stored: bytes) -> Iterator[bytes]:
    """The body with one byte changed, at each of the positions."""
    for position in positions(len(stored)):
        flipped = bytearray(stored)
        flipped[position] ^= 1 << position % 8
        yield bytes(flipped)


READ_BY = {
    ("checkpoints", "body"): "get_state_history",
    ("channel_log", "body"): "get_state",
    ("blobs", "body"): "get_state",
    ("journal", "body"): "get_state",
    ("waits", "question"): "open_waits",
    ("waits", "answer"): "get_state",
    ("events", "body"): "events",
    ("items", "body"): "items.get",
    ("cache", "body"): "",
}


@pytest.mark.parametrize(("table", "column"), [column for column in COLUMNS if READ_BY[column]])
def test_a_changed_byte_is_told_and_never_another_value(world, table, column):
    unnoticed = []
    reader = READ_BY[table, column]
    for place in world.of(table, column):
        if (table, column) == ("waits", "question") and place.key["wait_id"] not in asked_by(world):
            continue  # answered already, and no longer shown
        for stored in changed(place.stored):
            place.write(world.database, stored)
            if reader not in world.read_all():
                unnoticed.append((str(place), stored[:20].hex()))
        place.write(world.database, place.stored)

    assert unnoticed == []
    assert world.read_all() == {}


def asked_by(world: World) -> set[str]:
    return set(questions(world.graph, "waiting").values())


@pytest.mark.parametrize(("table", "column"), [("checkpoints", "body"), ("channel_log", "body"), ("blobs", "body")])
def test_whoever_cannot_read_a_thread_is_told_the_last_checkpoint_that_is_good(world, table, column):
    # Given a thread whose newest checkpoint, or a value of it, is damaged,
    place = world.of(table, column)[-1]
    place.write(world.database, place.stored[:-1] + bytes([place.stored[-1] ^ 1]))

    # when it is read, then the error names the thread, the checkpoint and what is still good,
    told = world.read_all()["get_state"]
    assert "'waiting'" in str(told)
    assert "checkpoint 4" in str(told)
    assert told.last_good is not None
    assert told.last_good in str(told)

    # and that can be looked at, and is what it was.
    good = world.graph.get_state(at(told.last_good))
    place.write(world.database, place.stored)
    assert good == world.graph.get_state(at(told.last_good))


def at(checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": "waiting", "checkpoint_id": checkpoint_id}}


def test_a_run_does_not_go_on_over_damage(world):
    place = world.of("journal", "body")[0]
    place.write(world.database, place.stored[:-1])
    asked = asked_by_before_damage(world)

    with pytest.raises(CorruptDataError, match="'waiting'"):
        world.graph.invoke(Command(resume=dict.fromkeys(asked, "Bob")), thread("waiting"))

    place.write(world.database, place.stored)
    assert world.read_all() == {}


def asked_by_before_damage(world: World) -> list[str]:
    return [id_ for id_, _ in world.sound["get_state"][2]]


def test_a_cached_result_that_was_changed_is_not_used(world):
    place = world.of("cache", "body")[0]
    for number, stored in enumerate([place.stored[:-1], *list(changed(place.stored))[::10]]):
        place.write(world.database, stored)

        with pytest.raises(CorruptDataError, match=r"cache/.*look_up"):
            world.graph.invoke({"note": "begun"}, thread(f"new {number}"))

        world.store.delete_thread(f"new {number}")
    place.write(world.database, place.stored)


@pytest.mark.parametrize(("table", "column"), [column for column in COLUMNS if READ_BY[column]])
def test_a_row_that_was_copied_from_another_place_is_told(world, table, column):
    others = [place for place in bodies_in(world.path) if (place.table, place.column) == (table, column)]
    reader = READ_BY[table, column]
    for place in world.of(table, column)[-1:]:
        for other in others or [place]:
            if other.key == place.key or (table == "channel_log" and other.stored == place.stored):
                continue
            place.write(world.database, other.stored)
            assert reader in world.read_all(), f"{other} in the place of {place}"
        place.write(world.database, place.stored)
