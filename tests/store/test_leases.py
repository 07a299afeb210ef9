"""A run is leased to a worker; who the worker is, and whether it lives, decides who may go on with the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from threading import Event
from typing import Any, TypedDict

import pytest

from bide import START, CompiledGraph, StateGraph, Store, step
from bide.errors import LeaseLostError, StoreError, ThreadBusyError
from bide.store.rows import Lease, Transition
from bide.store.sqlite import SqliteDatabase
from bide.store.workers import LEASE, NO_LEASE, SHORTEST_LEASE, is_gone, this_host, this_worker
from bide.types import RunStatus
from tests.threads import in_a_row

NOW = 1_700_000_000_000
PATIENCE_SECONDS = 30
CONFIG = {"configurable": {"thread_id": "job"}}


class State(TypedDict):
    done: bool


def one_node(store: Store, node: Callable[..., Any], door: Callable[[], object] = lambda: None) -> CompiledGraph:
    """A graph of one node; `door` is called between reading the thread and taking it."""

    def to_node(state: State) -> str:
        door()
        return "node"

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_conditional_edges(START, to_node)
    return graph.compile(checkpointer=store)


def workers_of(store: Store) -> list[tuple[str, int, int]]:
    """Host, process and end of the lease of every worker that the database knows."""
    return store.database.read(
        lambda tx: tx.connection.execute("SELECT host, pid, lease_until FROM workers").fetchall()
    )


def lease_of(store: Store) -> Lease:
    """The lease of the one run that is under way."""
    row = store.database.read(
        lambda tx: tx.connection.execute(
            "SELECT thread_id, run_id, epoch FROM runs WHERE status = 'running'"
        ).fetchone()
    )
    return Lease(*row)


def raise_the_epoch(store: Store) -> None:
    """What a takeover does to the run that it takes."""
    store.database.write("test", lambda tx: tx.connection.execute("UPDATE runs SET epoch = epoch + 1"))


# ── Who lives ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("lease_until", "gone"), [(NOW + 1, False), (NOW, False), (NOW - 1, True)])
def test_process_that_exists_is_gone_all_the_same_when_its_lease_has_run_out(lease_until, gone):
    """It may have been stopped, and nobody can tell whether it will ever go on."""
    me = this_worker(NOW)

    assert is_gone(me.host, me.pid, me.started, lease_until, NOW) is gone


def test_worker_that_never_renews_a_lease_lives_as_long_as_its_process():
    me = this_worker(NOW)

    assert not is_gone(me.host, me.pid, me.started, NO_LEASE, NOW)
    assert is_gone(me.host, me.pid, f"{me.started}0", NO_LEASE, NOW)
    assert is_gone("another machine", me.pid, me.started, NO_LEASE, NOW)


def test_process_that_has_ended_is_gone_whatever_its_lease_says():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert is_gone(this_host(), ended.pid, "12345", NOW + LEASE, NOW)


def test_process_with_a_reused_number_is_another_process():
    me = this_worker(NOW)

    assert is_gone(me.host, me.pid, f"{me.started}0", NOW + LEASE, NOW)


def test_start_that_was_never_known_is_not_held_against_a_process():
    assert not is_gone(this_host(), os.getpid(), "", NOW + LEASE, NOW)


@pytest.mark.parametrize(("lease_until", "gone"), [(NOW + 1, False), (NOW, False), (NOW - 1, True)])
def test_worker_of_another_machine_lives_as_long_as_its_lease(lease_until, gone):
    assert is_gone("another machine", os.getpid(), "1", lease_until, NOW) is gone


# ── Being known ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_worker_is_known_from_its_first_run_until_the_store_is_closed(path, clock):
    with Store.open(f"sqlite:///{path}") as watcher:
        with Store.open(f"sqlite:///{path}", clock=clock) as store:
            before = workers_of(watcher)
            one_node(store, lambda state: None).invoke({"done": True})
            during = workers_of(watcher)
        after = workers_of(watcher)

    assert (before, after) == ([], [])
    assert during == [(this_host(), os.getpid(), clock.now() + LEASE)]


def test_worker_whose_first_call_was_refused_is_known_with_its_second(path):
    """Else nobody would see that it lives, and its run could be taken from under it."""
    with Store.open(f"sqlite:///{path}") as winner, Store.open(f"sqlite:///{path}") as loser:
        fast = one_node(winner, lambda state: None)
        slow = one_node(loser, lambda state: None, door=lambda: fast.invoke({"done": True}, CONFIG))
        with pytest.raises(ThreadBusyError):
            slow.invoke({"done": False}, CONFIG)
        other = {"configurable": {"thread_id": "another job"}}

        def be_robbed(state: State) -> None:
            with pytest.raises(ThreadBusyError, match="alive"):
                fast.invoke(None, other)

        result = one_node(loser, be_robbed).invoke({"done": True}, other)

    assert result.is_complete


def test_heartbeat_moves_the_lease_on(path, clock):
    has_beaten = Event()

    class Watched(SqliteDatabase):
        def write(self, name: str, work: Callable[[Any], Any]) -> Any:
            value = super().write(name, work)
            if name == "beat" and clock.now() > NOW:
                has_beaten.set()
            return value

    with Store(Watched(str(path)), clock, lease=SHORTEST_LEASE) as store:
        one_node(store, lambda state: None).invoke({"done": True})
        clock.advance(LEASE)
        has_beaten.clear()
        assert has_beaten.wait(PATIENCE_SECONDS)

        assert [lease_until for _, _, lease_until in workers_of(store)] == [clock.now() + 1000 * SHORTEST_LEASE]


# ── Holding a lease ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, path: Any) -> Any:
    with Store.open(f"sqlite:///{path}" if request.param == "file" else ":memory:") as store:
        yield store


def contents(store: Store) -> list[str]:
    return store.database.read(lambda tx: list(tx.connection.iterdump()))


def test_node_whose_run_was_taken_over_ends_with_a_lost_lease_and_writes_nothing(store):
    seen: list[list[str]] = []

    def node(state: State) -> dict[str, Any]:
        raise_the_epoch(store)
        seen.append(contents(store))
        return {"done": True}

    with pytest.raises(LeaseLostError, match="Nothing was written"):
        one_node(store, node).invoke({"done": False}, CONFIG)

    assert contents(store) == seen[0]


def test_step_in_the_middle_of_a_run_that_was_taken_over_is_not_written_and_the_next_node_is_not_run(store):
    seen: list[list[str]] = []
    ran: list[str] = []

    def first(state: State) -> dict[str, Any]:
        raise_the_epoch(store)
        seen.append(contents(store))
        return {"done": True}

    graph = in_a_row(State, {"first": first, "second": lambda state: ran.append("second")}, checkpointer=store)
    with pytest.raises(LeaseLostError, match="Nothing was written"):
        graph.invoke({"done": False}, CONFIG)

    assert contents(store) == seen[0]
    assert ran == []


@pytest.mark.parametrize("effect", ["idempotent", "once", "tx"])
def test_step_of_a_node_whose_run_was_taken_over_is_not_journaled(store, effect):
    seen: list[list[str]] = []

    def book(*connection: Any) -> None:
        for each in connection:
            each.execute("CREATE TABLE bookings (what TEXT)")

    def node(state: State) -> None:
        raise_the_epoch(store)
        seen.append(contents(store))
        step(book, effect=effect)

    with pytest.raises(LeaseLostError, match="Nothing was written"):
        one_node(store, node).invoke({"done": False}, CONFIG)

    assert contents(store) == seen[0]


def test_failure_of_a_node_whose_run_was_taken_over_is_not_recorded_in_the_run_of_its_heir(store):
    seen: list[list[str]] = []

    def node(state: State) -> None:
        raise_the_epoch(store)
        seen.append(contents(store))
        raise RuntimeError("too late")

    with pytest.raises((LeaseLostError, RuntimeError)):
        one_node(store, node).invoke({"done": False}, CONFIG)

    assert contents(store) == seen[0]


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.DONE, RunStatus.FAILED, RunStatus.WAITING])
def test_no_transition_is_written_with_an_old_epoch(store, status):
    refusals: list[str] = []

    def node(state: State) -> None:
        mine = lease_of(store)
        old = mine._replace(epoch=mine.epoch - 1)
        before = contents(store)
        with pytest.raises(LeaseLostError) as refusal:
            store.commit(old, Transition(1, status=status))
        assert contents(store) == before
        refusals.append(str(refusal.value))

    one_node(store, node).invoke({"done": False}, CONFIG)

    assert ["'job'" in refusal for refusal in refusals] == [True]


def test_thread_that_is_deleted_under_a_run_stays_deleted(store):
    def node(state: State) -> dict[str, Any]:
        store.delete_thread("job")
        return {"done": True}

    with pytest.raises(LeaseLostError):
        one_node(store, node).invoke({"done": False}, CONFIG)

    assert store.threads() == []
    assert store.events("job") == []


class Stubborn(SqliteDatabase):
    """A database that can be told to refuse the commits of runs."""

    refuses = False

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        if self.refuses and name == "commit":
            raise StoreError("not now")
        return super().write(name, work)


def test_run_that_could_not_be_marked_as_over_is_free_for_the_process_that_left_it(path):
    """The process lives, but nobody in it drives this run any more: `invoke(None)` goes on with it."""
    database = Stubborn(str(path))
    with Store(database) as store:
        graph = one_node(store, lambda state: {"done": True})
        database.refuses = True
        with pytest.raises(StoreError, match="not now"):
            graph.invoke({"done": False}, CONFIG)
        database.refuses = False

        result = graph.invoke(None, CONFIG)

    assert result["done"] is True


class SlowToReturn(SqliteDatabase):
    """A database that lets somebody else act between the commit that takes a thread and the taker's next line."""

    meanwhile: Callable[[], object] | None = None

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        value = super().write(name, work)
        meanwhile = self.meanwhile
        if name == "begin" and meanwhile is not None:
            self.meanwhile = None
            meanwhile()
        return value


def test_run_is_held_from_the_moment_it_is_committed_even_against_the_same_process(path):
    database = SlowToReturn(str(path))
    runs: list[str] = []
    refusals: list[ThreadBusyError] = []
    with Store(database) as store:
        graph = one_node(store, lambda state: runs.append("ran"))

        def try_to_take_it() -> None:
            with pytest.raises(ThreadBusyError) as refusal:
                graph.invoke(None, CONFIG)
            refusals.append(refusal.value)

        database.meanwhile = try_to_take_it
        graph.invoke({"done": True}, CONFIG)

    assert len(refusals) == 1
    assert runs == ["ran"]


def test_worker_that_holds_nothing_is_forgotten_after_a_day(path, clock):
    long_gone = {"worker_id": "long gone", "host": "elsewhere", "pid": 1, "started": "", "lease_until": clock.now()}
    with Store(SqliteDatabase(str(path)), clock) as store:
        store.database.write("plant", lambda tx: tx.run("insert_worker", long_gone))
    clock.advance(25 * 3600 * 1000)

    with Store(SqliteDatabase(str(path)), clock) as store:
        one_node(store, lambda state: {"done": True}).invoke({}, CONFIG)
        known = workers_of(store)

    assert [pid for _, pid, _ in known] == [os.getpid()]


def test_store_carried_through_a_fork_is_refused_in_the_child(path):
    with Store.open(f"sqlite:///{path}") as store:
        graph = one_node(store, lambda state: {"done": True})
        child = os.fork()
        if child == 0:
            try:
                graph.invoke({}, CONFIG)
            except StoreError as refusal:
                os._exit(7 if "open the store in the child" in str(refusal) else 8)
            os._exit(9)

        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 7
        assert graph.invoke({}, CONFIG)["done"]
