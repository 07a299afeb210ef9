"""Heartbeats reach the server when nothing else does, and when they do not, the worker knows before others act."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any, TypedDict

import psycopg
import psycopg_pool
import pytest
from psycopg.conninfo import make_conninfo

from bide import START, CompiledGraph, StateGraph, Store, step
from bide.clock import elapsed
from bide.errors import LeaseLostError, ThreadBusyError
from tests.lossy_proxy import LossyProxy
from tests.store.programs.process import talking
from tests.store.test_postgres_fences import NEW
from tests.store.waiting import SECONDS, holds_at_last
from tests.threads import thread

pytestmark = pytest.mark.slow

SHORT = 1.0
"""Seconds of a lease that a test can wait for."""


class State(TypedDict):
    done: bool


def one_node(store: Store, node: Callable[[State], Any]) -> CompiledGraph:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=store)


@pytest.fixture
def server(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def lease_end(server: psycopg.Connection) -> int:
    row = server.execute("SELECT max(lease_until) FROM bide.workers").fetchone()
    assert row is not None
    return int(row[0])


def is_renewed(server: psycopg.Connection) -> bool:
    """Whether somebody's lease is renewed from now on."""
    before = lease_end(server)
    return holds_at_last(lambda: lease_end(server) > before)


def backends(server: psycopg.Connection) -> list[int]:
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'bide' AND datname = current_database()"
    return [row[0] for row in server.execute(sql)]


# ── Its own connection ─────────────────────────────────────────────────────────────────────────────────────────────


def test_lease_is_renewed_while_every_connection_of_the_store_is_in_use(postgres_url, server):
    with Store.open(postgres_url, schema="bide", most_connections=1, lease=SHORT) as store:
        store.begin(NEW)

        assert store.database.read(lambda tx: is_renewed(server))


def test_lease_is_renewed_while_every_connection_of_a_given_pool_is_in_use(postgres_url, server):
    with (
        psycopg_pool.ConnectionPool(postgres_url, min_size=1, max_size=1, open=True) as pool,
        Store.open(pool, schema="bide", lease=SHORT) as store,
    ):
        store.begin(NEW)
        with pool.connection():
            assert is_renewed(server)


def test_connection_that_breaks_is_made_anew(postgres_url, server):
    with Store.open(postgres_url, schema="bide", lease=SHORT) as store:
        lease = store.begin(NEW)[1]
        assert is_renewed(server)
        broken = backends(server)
        server.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (broken,))

        assert is_renewed(server)
        assert not set(broken) & set(backends(server))
        store.check_held(lease)


def test_server_without_a_free_connection_hears_the_beat_on_one_that_the_store_has(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        role = f"poor_{os.getpid()}"
        owner.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
        owner.execute(f"CREATE SCHEMA bide AUTHORIZATION {role}")
        try:
            with Store.open(make_conninfo(postgres_database, user=role), schema="bide", lease=SHORT) as store:
                store.begin(NEW)

                assert is_renewed(owner)
        finally:
            owner.execute(f"DROP OWNED BY {role}")
            owner.execute(f"DROP ROLE {role}")


def test_beat_that_waits_for_a_lock_leaves_nothing_waiting_behind_it(postgres_url, server):
    """Somebody holds the row of the worker for longer than a beat may take, again and again."""
    with Store.open(postgres_url, schema="bide", lease=SHORT) as store:
        store.begin(NEW)
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT FROM bide.workers FOR UPDATE")
            assert holds_at_last(lambda: not store.keeper.is_held())
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'bide'"
            )
            most = max(server.execute(waiting).fetchone()[0] for _ in range(50))

        assert most <= 2
        assert is_renewed(server)


def test_store_that_was_closed_has_left_no_connection_behind(postgres_url, server):
    with Store.open(postgres_url, schema="bide", lease=SHORT) as store:
        store.begin(NEW)
        assert is_renewed(server)
        during = len(backends(server))

    assert during == 2
    assert holds_at_last(lambda: backends(server) == [])


# ── Silence ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wall(LossyProxy):
    """A proxy that can fall silent: connections stand, new ones are taken, and nothing comes through."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.open = Event()
        self.open.set()
        self._is_over = False

    def _pass_on(self, source: socket.socket, sink: socket.socket, what: str) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.open.wait()
                if self._is_over:
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def close(self) -> None:
        self._is_over = True
        self.open.set()
        super().close()


@contextmanager
def wall(dsn: str) -> Iterator[Wall]:
    proxy = Wall(dsn)
    try:
        yield proxy
    finally:
        proxy.close()


def test_worker_behind_a_silent_network_makes_no_step_after_others_may_have_taken_its_run(postgres_url, server):
    made: list[str] = []
    with wall(postgres_url) as network, Store.open(network.dsn, schema="bide", lease=SHORT) as store:

        def node(state: State) -> None:
            assert is_renewed(server)
            network.open.clear()
            assert holds_at_last(lambda: not store.keeper.is_held())
            still_mine = server.execute(
                "SELECT lease_until > extract(epoch FROM clock_timestamp()) * 1000 FROM bide.workers"
            ).fetchone()
            made.append(f"fenced while others wait: {still_mine[0]}")
            try:
                step(made.append, "too late")
            finally:
                network.open.set()

        with pytest.raises(LeaseLostError, match="could not be reached"):
            one_node(store, node).invoke({"done": True}, thread("t"))

    assert made == ["fenced while others wait: True"]


def test_worker_that_is_asked_behind_a_silent_network_answers_within_its_lease(postgres_url):
    with wall(postgres_url) as network, Store.open(network.dsn, schema="bide", lease=3.0) as store:
        lease = store.begin(NEW)[1]
        network.open.clear()
        assert holds_at_last(lambda: not store.keeper.is_held())

        asked_at = elapsed()
        with pytest.raises(LeaseLostError):
            store.check_held(lease)
        took = elapsed() - asked_at
        network.open.set()

        # It may wait for a beat that is under way, and then send its own; to connect takes two seconds at least.
        assert took < 15
        assert holds_at_last(lambda: _is_held(store, lease))


def _is_held(store: Store, lease: Any) -> bool:
    with suppress(LeaseLostError):
        store.check_held(lease)
        return True
    return False


# ── Another process ────────────────────────────────────────────────────────────────────────────────────────────────


def takes_over(store: Store) -> bool:
    """Try to go on with the thread of the other process."""
    with suppress(ThreadBusyError):
        one_node(store, lambda state: None).invoke(None, thread("job"))
        return True
    return False


@pytest.mark.complaint(6)
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_process_that_is_stopped_on_the_same_machine_is_replaced_after_its_lease(kind, path, request):
    url = f"sqlite:///{path}" if kind == "file" else request.getfixturevalue("postgres_url")
    with (
        Store.open(url, schema=None if kind == "file" else "bide") as store,
        talking("lease_holder.py", url, SHORT) as holder,
    ):
        assert holder.hear() == "inside"
        alive = not takes_over(store)
        os.kill(holder.process.pid, signal.SIGSTOP)

        replaced = holds_at_last(lambda: takes_over(store))
        os.kill(holder.process.pid, signal.SIGCONT)
        holder.tell()

        assert (alive, replaced) == (True, True)
        assert holder.hear() == "LeaseLostError"


@pytest.mark.seed("test_durable_runs.py::test_heartbeat_resets_no_progress_counter")
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_process_that_is_only_slow_keeps_its_run_for_many_leases(kind, path, request):
    url = f"sqlite:///{path}" if kind == "file" else request.getfixturevalue("postgres_url")
    with (
        Store.open(url, schema=None if kind == "file" else "bide") as store,
        talking("lease_holder.py", url, SHORT) as holder,
    ):
        assert holder.hear() == "inside"

        assert not holds_at_last(lambda: takes_over(store), seconds=3 * SHORT)
        holder.tell()

        assert [holder.hear(), holder.hear()] == ["made a step", "done"]


assert SECONDS > 10 * SHORT
