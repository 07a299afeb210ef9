"""What a worker may believe about its lease: as long as others do and no longer; after that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

import bide.store.lease
from bide import START, StateGraph, Store, step
from bide.errors import LeaseLostError, StoreError
from bide.store.database import Transaction
from bide.store.rows import Lease
from bide.store.sqlite import SqliteDatabase
from bide.store.workers import SHORTEST_LEASE
from tests.store.test_postgres_fences import NEW
from tests.store.waiting import Passing, holds_at_last
from tests.stores import opened_store
from tests.threads import thread

LEASE = 30.0
AGE = 10 * LEASE


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    passing = Passing()
    monkeypatch.setattr(bide.store.lease, "elapsed", passing)
    return passing


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, passing: Passing) -> Iterator[Store]:
    with opened_store(request, tmp_path) as store:
        yield store


def begun(store: Store, thread_id: str = "t") -> Lease:
    return store.begin(NEW._replace(thread_id=thread_id))[1]


def execute(store: Store, sql: str) -> None:
    store.database.write("test", lambda tx: tx.connection.execute(sql) and None)


def table(store: Store, name: str) -> str:
    return f"bide.{name}" if "postgresql" in store.database.path else name


def raise_the_epoch(store: Store) -> None:
    """What a takeover does to the run that it takes."""
    execute(store, f"UPDATE {table(store, 'runs')} SET epoch = epoch + 1")


def lay_off(store: Store) -> None:
    execute(store, f"DELETE FROM {table(store, 'workers')}")


def lease_ends(store: Store) -> list[int]:
    sql = f"SELECT lease_until FROM {table(store, 'workers')}"
    return [row[0] for row in store.database.read(lambda tx: tx.connection.execute(sql).fetchall())]


# ── Being sure ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lease_is_believed_in_until_a_tenth_of_it_is_left(store, passing):
    begun(store)

    passing.seconds += LEASE * 0.9 - 0.001
    before = store.keeper.is_held()
    passing.seconds += 0.002

    assert (before, store.keeper.is_held()) == (True, False)


def test_lease_is_counted_from_the_moment_at_which_the_beat_was_sent(store, passing):
    """The database may have had it at once, and only its answer was slow."""
    write = store.database.write

    def slow(name: str, work: Callable[[Any], Any]) -> Any:
        value = write(name, work)
        passing.seconds += LEASE * 0.8
        return value

    store.database.write = slow

    begun(store)
    passing.seconds += LEASE * 0.2

    assert not store.keeper.is_held()


def test_late_worker_whose_run_nobody_took_goes_on_and_is_alive_again(store, passing):
    lease = begun(store)
    before = lease_ends(store)
    passing.seconds += AGE

    store.check_held(lease)

    assert store.keeper.is_held()
    assert holds_at_last(lambda: store.clock.now() > before[0] - LEASE * 1000)
    passing.seconds += AGE
    store.check_held(lease)
    assert lease_ends(store) > before


def test_late_worker_whose_run_was_taken_is_told_so(store, passing):
    lease = begun(store)
    raise_the_epoch(store)
    store.check_held(lease)
    passing.seconds += AGE

    with pytest.raises(LeaseLostError, match="another one goes on"):
        store.check_held(lease)


def test_run_that_was_taken_is_known_with_the_next_beat_however_much_of_the_lease_is_left(path):
    with Store.open(f"sqlite:///{path}", lease=SHORTEST_LEASE) as store:
        lease = begun(store)
        raise_the_epoch(store)

        assert holds_at_last(lambda: not store.keeper.holds(lease))
        with pytest.raises(LeaseLostError, match="another one goes on"):
            store.check_held(lease)


def test_only_what_was_taken_is_lost(store, passing):
    first, second = begun(store, "first"), begun(store, "second")
    execute(store, f"UPDATE {table(store, 'runs')} SET epoch = epoch + 1 WHERE thread_id = 'first'")
    passing.seconds += AGE

    store.check_held(second)

    with pytest.raises(LeaseLostError, match="'first'"):
        store.check_held(first)


def test_run_that_came_back_to_the_same_worker_is_not_the_old_drivers(store):
    old = begun(store)
    new = old._replace(epoch=old.epoch + 1)
    with store.keeper.taking() as taken:

        def take(tx: Transaction) -> None:
            taken.begin(tx, store.clock.now())
            taken.add(new)

        store.database.write("test", take)

    store.let_go(old)

    store.check_held(new)
    with pytest.raises(LeaseLostError):
        store.check_held(old)


# ── Silence ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Deaf(SqliteDatabase):
    """A database that can be told to hear no beat."""

    is_deaf = False

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        if self.is_deaf and name == "beat":
            raise StoreError("nobody hears you")
        return super().write(name, work)


class State(TypedDict):
    done: bool


def test_worker_that_is_not_heard_begins_no_step_once_its_lease_may_be_over(path, passing):
    database = Deaf(str(path))
    made: list[str] = []

    def node(state: State) -> None:
        step(made.append, "before")
        database.is_deaf = True
        passing.seconds += LEASE * 0.8
        step(made.append, "in time")
        passing.seconds += LEASE * 0.2
        step(made.append, "too late")

    with Store(database) as store:
        graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=store)
        with pytest.raises(LeaseLostError, match="could not be reached for almost as long as a lease"):
            graph.invoke({"done": True}, thread("t"))

    assert made == ["before", "in time"]


def test_worker_that_is_heard_again_goes_on(path, passing):
    database = Deaf(str(path))
    with Store(database) as store:
        lease = begun(store)
        database.is_deaf = True
        passing.seconds += AGE
        with pytest.raises(LeaseLostError):
            store.check_held(lease)
        database.is_deaf = False

        store.check_held(lease)

        assert store.keeper.is_held()


# ── Laid off ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_worker_that_was_laid_off_loses_everything_and_has_a_new_name(store, passing):
    lease, name = begun(store), store.keeper.worker_id
    lay_off(store)
    passing.seconds += AGE

    with pytest.raises(LeaseLostError, match="another one goes on"):
        store.check_held(lease)
    other = begun(store, "other")

    assert store.keeper.worker_id != name
    store.check_held(other)
    assert len(lease_ends(store)) == 1


def test_worker_that_was_laid_off_while_it_slept_takes_the_next_run_under_its_new_name(store, passing):
    begun(store)
    lay_off(store)
    passing.seconds += AGE

    lease = begun(store, "other")

    store.check_held(lease)
    assert store.load("other", None).run.is_orphan is False
    assert store.load("t", None).run.is_orphan is True


def test_worker_that_was_heard_of_since_somebody_looked_is_not_laid_off(store):
    begun(store)
    (seen,) = lease_ends(store)
    look = {"worker_id": store.keeper.worker_id, "lease_until": seen}
    execute(store, f"UPDATE {table(store, 'workers')} SET lease_until = lease_until + 1")

    late = store.database.write("reap", lambda tx: tx.run("lay_off_worker", look))
    fresh = store.database.write("reap", lambda tx: tx.run("lay_off_worker", {**look, "lease_until": seen + 1}))

    assert (late, fresh) == (0, 1)


def test_worker_that_has_slept_itself_does_not_judge_others_before_a_beat_has_passed(store, passing):
    lease = begun(store)
    fresh = store.keeper.is_steady()
    passing.seconds += AGE
    asleep = store.keeper.is_steady()
    store.check_held(lease)
    awake = store.keeper.is_steady()
    passing.seconds += LEASE / 3

    assert (fresh, asleep, awake, store.keeper.is_steady()) == (True, False, False, True)


# ── Where nothing beats ────────────────────────────────────────────────────────────────────────────────────────────


def test_store_in_memory_holds_what_it_took_for_ever(passing):
    with Store.open(":memory:") as store:
        lease = begun(store)
        passing.seconds += AGE

        store.check_held(lease)

        assert store.load("t", None).run.is_orphan is False


@pytest.mark.parametrize("lease", [0, 0.1, 3601, True, "30"])
def test_lease_that_is_none_is_refused(lease):
    with pytest.raises(StoreError, match=r"lease=.* is not what it should be: give seconds, from 0.2 to 3600"):
        Store.open(":memory:", lease=lease)
