"""Items with a time to live: gone at once when it is over, longer there when they are read, and tidied up by and by."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from bide import Store
from bide.store.item_errors import InvalidItemError
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import GetOp, PutOp, SearchOp
from bide.store.item_requests import SWEPT_BY_A_PUT, refresh
from bide.store.items import SWEPT_AT_ONCE, ItemStore
from bide.store.namespaces import encode_namespace, encode_text
from tests.store.conftest import FakeClock

NOTES = ("notes",)
MINUTE = 60_000


@pytest.fixture
def store(path, clock: FakeClock) -> Iterator[Store]:
    with Store.open(f"sqlite:///{path}", clock=clock) as store:
        yield store


@pytest.fixture
def items(store: Store) -> ItemStore:
    return store.items


def rows_of(store: Store) -> int:
    """How many items the database holds, also those that nobody sees any more."""
    return store.database.read(lambda tx: tx.connection.execute("SELECT count(*) FROM items").fetchone()[0])


# ── Expiring ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ttl", [2, 2.0, timedelta(minutes=2)])
def test_item_is_there_until_its_time_is_over_and_not_a_moment_longer(items, clock, ttl):
    items.put(NOTES, "a", {"text": "hello"}, ttl=ttl)
    clock.advance(2 * MINUTE - 1)
    assert items.get(NOTES, "a", refresh_ttl=False).value == {"text": "hello"}

    clock.advance(1)

    assert items.get(NOTES, "a") is None
    assert items.search(NOTES) == []
    assert items.search((), filter={"text": "hello"}) == []
    assert items.list_namespaces() == []


def test_items_without_a_time_to_live_stay(items, clock):
    items.put(NOTES, "a", {})
    clock.advance(10**6 * MINUTE)

    assert items.get(NOTES, "a") is not None
    assert items.sweep_ttl() == 0


def test_expired_items_do_not_count_in_pages(items, clock):
    for number in range(6):
        items.put(NOTES, f"{number}", {"number": number}, ttl=1 if number % 2 else None)
    clock.advance(MINUTE)

    for filter in (None, {"number": {"$gte": 0}}):
        assert [item.key for item in items.search(NOTES, filter=filter, limit=2, offset=1)] == ["2", "4"]


def test_item_written_again_after_it_expired_is_a_new_one(items, clock):
    items.put(NOTES, "a", {"text": "old"}, ttl=1)
    clock.advance(MINUTE)

    items.put(NOTES, "a", {"text": "new"})

    note = items.get(NOTES, "a")
    assert note.created_at == note.updated_at == datetime.fromtimestamp(1_700_000_060, UTC)


def test_writing_an_item_begins_its_time_anew_or_ends_it(items, clock):
    items.put(NOTES, "longer", {}, ttl=1)
    items.put(NOTES, "for ever", {}, ttl=1)
    clock.advance(MINUTE // 2)

    items.put(NOTES, "longer", {}, ttl=1)
    items.put(NOTES, "for ever", {})
    clock.advance(MINUTE // 2)

    assert {item.key for item in items.search(NOTES)} == {"longer", "for ever"}
    clock.advance(10 * MINUTE)
    assert {item.key for item in items.search(NOTES)} == {"for ever"}


def test_expiring_survives_reopening(path, clock):
    with Store.open(f"sqlite:///{path}", clock=clock) as store:
        store.items.put(NOTES, "short", {}, ttl=1)
        store.items.put(NOTES, "long", {}, ttl=3)
    clock.advance(2 * MINUTE)

    with Store.open(f"sqlite:///{path}", clock=clock) as store:
        assert [item.key for item in store.items.search(())] == ["long"]


@pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf, 10**30, timedelta(0), timedelta.max])
def test_time_that_is_none_is_refused(items, ttl):
    with pytest.raises(InvalidItemError, match=r"ttl=.*cannot be.*ttl=None to keep"):
        items.put(NOTES, "a", {}, ttl=ttl)

    assert items.search(()) == []


@pytest.mark.parametrize("ttl", [True, "5m", [5]])
def test_time_of_another_kind_is_refused(items, ttl):
    with pytest.raises(InvalidItemError, match=r"ttl=.*of type.*minutes, a timedelta"):
        items.put(NOTES, "a", {}, ttl=ttl)


def test_time_too_short_for_the_clock_is_its_shortest(items, clock):
    items.put(NOTES, "a", {}, ttl=1e-9)

    assert items.get(NOTES, "a") is not None
    clock.advance(1)
    assert items.get(NOTES, "a") is None


# ── A default ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("default", [5, timedelta(minutes=5)])
def test_default_holds_for_whoever_names_no_time(store, clock, default):
    items = ItemStore(store, default_ttl=default)
    items.put(NOTES, "default", {})
    items.put(NOTES, "own", {}, ttl=7)
    items.put(NOTES, "for ever", {}, ttl=None)
    items.batch([PutOp(NOTES, "default in a batch", {})])

    clock.advance(5 * MINUTE)

    assert {item.key for item in items.search(NOTES)} == {"own", "for ever"}


def test_store_in_memory_takes_a_default_too(clock):
    with InMemoryStore(clock=clock, default_ttl=1) as items:
        items.put(NOTES, "a", {})
        clock.advance(MINUTE)

        assert items.get(NOTES, "a") is None


def test_default_that_cannot_be_is_refused_at_once(store):
    with pytest.raises(InvalidItemError, match="ttl=0 cannot be"):
        ItemStore(store, default_ttl=0)


# ── Reading keeps alive ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "read",
    [
        lambda items, **options: items.get(NOTES, "a", **options),
        lambda items, **options: items.search(NOTES, **options),
        lambda items, **options: items.search((), filter={"text": "hello"}, **options),
        lambda items, **options: items.batch([GetOp(NOTES, "a", **options)]),
        lambda items, **options: items.batch([SearchOp(NOTES, **options), PutOp(NOTES, "other", {})]),
    ],
)
def test_reading_begins_the_time_anew_unless_it_is_told_not_to(items, clock, read):
    items.put(NOTES, "a", {"text": "hello"}, ttl=2)
    clock.advance(MINUTE)
    read(items)
    clock.advance(MINUTE)
    assert items.get(NOTES, "a", refresh_ttl=False) is not None

    read(items, refresh_ttl=False)
    clock.advance(MINUTE)

    assert items.get(NOTES, "a") is None


def test_reading_changes_neither_the_times_nor_the_order(items, clock):
    items.put(NOTES, "a", {}, ttl=10)
    clock.advance(1)
    items.put(NOTES, "b", {}, ttl=10)
    before = items.search(NOTES, refresh_ttl=False)
    clock.advance(1)

    items.get(NOTES, "a")

    assert items.search(NOTES) == before


def test_only_what_a_search_returns_lives_longer(items, clock):
    items.put(NOTES, "found", {"n": 1}, ttl=2)
    items.put(NOTES, "passed by", {"n": 2}, ttl=2)
    clock.advance(MINUTE)

    items.search(NOTES, filter={"n": 1})
    clock.advance(MINUTE)

    assert [item.key for item in items.search(NOTES)] == ["found"]


def test_store_that_does_not_refresh_on_reading_can_be_asked_to(store, clock):
    items = ItemStore(store, default_ttl=2, refresh_on_read=False)
    items.put(NOTES, "read", {})
    items.put(NOTES, "refreshed", {})
    clock.advance(MINUTE)

    items.get(NOTES, "read")
    items.get(NOTES, "refreshed", refresh_ttl=True)
    clock.advance(MINUTE)

    assert [item.key for item in items.search(())] == ["refreshed"]


def test_reading_what_does_not_expire_or_has_just_been_written_does_not_wait_for_writers(path, items):
    items.put(NOTES, "for ever", {})
    items.put(NOTES, "fresh", {}, ttl=5)

    with closing(sqlite3.connect(path, isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")

        assert items.get(NOTES, "for ever") is not None
        assert len(items.search(NOTES)) == 2


def test_read_that_comes_late_never_shortens_a_life(path, clock):
    late = FakeClock(clock.now() - MINUTE)
    with Store.open(f"sqlite:///{path}", clock=clock) as store, Store.open(f"sqlite:///{path}", clock=late) as behind:
        store.items.put(NOTES, "a", {}, ttl=2)

        behind.items.get(NOTES, "a")
        clock.advance(2 * MINUTE - 1)

        assert store.items.get(NOTES, "a") is not None


def test_item_written_between_being_read_and_being_refreshed_keeps_its_new_time(store, items, clock):
    read_at = clock.now()
    clock.advance(MINUTE)
    items.put(NOTES, "a", {}, ttl=2)

    refresh_at(store, read_at)
    clock.advance(2 * MINUTE - 1)

    assert items.get(NOTES, "a") is not None


def test_item_that_expired_before_it_could_be_refreshed_stays_gone(store, items, clock):
    items.put(NOTES, "a", {}, ttl=1)
    clock.advance(MINUTE)

    refresh_at(store, clock.now())

    assert items.get(NOTES, "a") is None


def refresh_at(store: Store, instant: int) -> None:
    """Do what follows a read that happened then."""
    touched = [(encode_namespace(NOTES), encode_text("a"))]
    store.database.write("touch", lambda tx: refresh(tx, touched, instant))


# ── Tidying up ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sweep_takes_away_all_that_has_expired_and_says_how_many(store, items, clock):
    many = 2 * SWEPT_AT_ONCE + 3
    items.batch([PutOp(NOTES, str(number), {}, ttl=1) for number in range(many)])
    items.put(NOTES, "alive", {}, ttl=2)
    items.put(NOTES, "for ever", {})
    clock.advance(MINUTE)

    assert items.sweep_ttl() == many

    assert rows_of(store) == 2
    assert items.sweep_ttl() == 0


def test_writers_take_away_a_few_in_passing(store, items, clock):
    items.batch([PutOp(NOTES, str(number), {}, ttl=1) for number in range(2 * SWEPT_BY_A_PUT)])
    clock.advance(MINUTE)

    items.put(NOTES, "a", {})
    assert rows_of(store) == SWEPT_BY_A_PUT + 1

    items.delete(NOTES, "nothing")
    assert rows_of(store) == 1


def test_sweeping_finds_what_is_due_by_an_index(store):
    def explain(tx):
        statement = "EXPLAIN QUERY PLAN " + tx.sql["drop_expired_items"]
        return [row[-1] for row in tx.connection.execute(statement, {"now": 0, "most": 1})]

    plan = store.database.read(explain)

    assert any("items_due" in line for line in plan)
    assert not any(line.startswith("SCAN items") for line in plan)
