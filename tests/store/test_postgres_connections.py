"""Connections: made when needed, none held while a node runs, a broken one replaced, and an error that helps."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Barrier
from typing import Any, TypedDict

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from bide import START, Command, StateGraph, Store, interrupt
from bide.errors import StoreBusyError, StoreError, StoreUnavailableError
from bide.store.postgres import PostgresDatabase
from bide.store.postgres_connections import BorrowedPool
from bide.store.postgres_wire import Wire
from tests.store.test_postgres_fences import NEW, transaction_under_way
from tests.threads import one_node, thread


class State(TypedDict):
    x: int


def open_store(url: str, **options: Any) -> Store:
    return Store(PostgresDatabase(url, schema="bide", **options))


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with open_store(postgres_url) as store:
        yield store


def ours(url: str) -> list[int]:
    """The server's processes that serve a store."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'bide' AND datname = current_database()"
        return [pid for (pid,) in connection.execute(query).fetchall()]


def end_all(url: str) -> None:
    """End every connection of a store, from the server's side."""
    with psycopg.connect(url, autocommit=True) as connection:
        for pid in ours(url):
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def asking(store: Store) -> Any:
    return one_node(State, lambda state: {"x": interrupt("?")}, checkpointer=store)


# ── How many, and when ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(29)
def test_no_connection_is_held_while_a_node_runs(postgres_url):
    with open_store(postgres_url, most_connections=1, patience=2) as store:

        def look(state: State) -> dict[str, Any]:
            return {"x": len(store.threads())}

        assert one_node(State, look, checkpointer=store).invoke({"x": 0}, thread("t")) == {"x": 1}


@pytest.mark.complaint(32)
def test_many_who_write_at_once_share_few_connections(postgres_url):
    with open_store(postgres_url, most_connections=3) as store, ThreadPoolExecutor(12) as threads:
        counts = list(
            threads.map(
                lambda name: (store.begin(NEW._replace(thread_id=str(name))), len(ours(postgres_url)))[1], range(24)
            )
        )

        assert len(store.threads()) == 24
    assert max(counts) <= 3


@pytest.mark.complaint(30)
def test_all_connections_in_use_is_an_error_that_says_how_to_have_more(postgres_url):
    with (
        open_store(postgres_url, most_connections=1, patience=0.2) as store,
        transaction_under_way(store, lambda tx: tx.all("list_threads", {"most": 1})) as end,
    ):
        with pytest.raises(StoreBusyError, match=r"All 1 connections.*most_connections"):
            store.threads()
        end()


def test_lock_that_nobody_lets_go_is_an_error_that_says_where_to_look(postgres_url, store):
    store.begin(NEW)
    with (
        open_store(postgres_url, patience=0.3) as impatient,
        transaction_under_way(store, lambda tx: tx.one("hold_thread", {"thread_id": "t"})) as end,
    ):
        with pytest.raises(StoreBusyError, match=r"cancelled. Nothing was written.*pg_stat_activity"):
            impatient.delete_thread("t")
        end()

    assert [row.thread_id for row in store.threads()] == ["t"]


def test_store_that_nobody_closes_leaves_no_connection_behind(postgres_url):
    store = open_store(postgres_url)
    assert ours(postgres_url)

    del store
    gc.collect()

    for _ in range(10_000):
        if not ours(postgres_url):
            return
    pytest.fail("a connection is left")


# ── Broken ones ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(29)
def test_connection_that_broke_while_nobody_used_it_is_replaced_unnoticed(store, postgres_url):
    asking(store).invoke({"x": 1}, thread("t"))

    end_all(postgres_url)

    assert asking(store).invoke(Command(resume=5), thread("t"))["x"] == 5


@pytest.mark.complaint(29)
def test_transaction_whose_connection_is_ended_is_done_again(store, postgres_url):
    tries = []

    def work(tx: Any) -> list[Any]:
        tries.append(1)
        tx.run("write_cached", {"place": "p", "key": str(len(tries)), "expires_at": None, "body": b"x"})
        if len(tries) == 1:
            end_all(postgres_url)
        return tx.all("read_cached", {"place": "p", "key": "1", "now": 0})

    assert store.database.write("cache", work) == []
    assert len(tries) == 2


def test_reading_whose_connection_is_ended_is_done_again(store, postgres_url):
    tries = []

    def work(tx: Any) -> int:
        tries.append(tx.all("list_threads", {"most": 1}))
        if len(tries) == 1:
            end_all(postgres_url)
        return len(tx.all("list_threads", {"most": 1}))

    assert store.database.read(work) == 0
    assert len(tries) == 2


def test_two_who_wait_for_each_other_both_get_their_turn(store):
    for name in "ab":
        store.begin(NEW._replace(thread_id=name))
    both_hold_one = Barrier(2, timeout=30)

    def hold_both(first: str, second: str) -> int:
        tries = []

        def work(tx: Any) -> None:
            tries.append(1)
            tx.one("hold_thread", {"thread_id": first})
            if len(tries) == 1:
                both_hold_one.wait()
            tx.one("hold_thread", {"thread_id": second})

        store.database.write("both", work)
        return len(tries)

    with ThreadPoolExecutor(2) as threads:
        tries = list(threads.map(hold_both, "ab", "ba"))

    assert sorted(tries) == [1, 2]


def test_error_of_whoever_uses_a_transaction_takes_it_back_and_keeps_the_connection(store, postgres_url):
    before = ours(postgres_url)

    def fail(tx: Any) -> None:
        tx.run("write_cached", {"place": "p", "key": "k", "expires_at": None, "body": b"x"})
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        store.database.write("cache", fail)

    assert store.database.read(lambda tx: tx.all("read_cached", {"place": "p", "key": "k", "now": 0})) == []
    assert ours(postgres_url) == before


def test_reader_sees_one_moment_however_long_it_reads(store):
    def look_twice(tx: Any) -> list[int]:
        before = len(tx.all("list_threads", {"most": 9}))
        with ThreadPoolExecutor(1) as other:
            other.submit(store.begin, NEW).result()
        return [before, len(tx.all("list_threads", {"most": 9}))]

    assert store.database.read(look_twice) == [0, 0]
    assert len(store.threads()) == 1


# ── Refusals ───────────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "k3y-s3cr3t"


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"dbname": "no_such_database"}, "Create it"),
        ({"user": "nobody_here"}, "Create it"),
        ({"host": "127.0.0.1", "port": 1}, "Is the server running"),
        ({"host": "no-such-host.invalid"}, "Correct the host|Is the server running"),
        ({"sslmode": "verify-full", "sslrootcert": "/nowhere", "host": "127.0.0.1"}, "sslrootcert|Is the server"),
    ],
)
def test_server_that_cannot_be_had_is_an_error_at_once_that_names_no_password(postgres_url, wrong, advice):
    with pytest.raises(StoreUnavailableError, match=advice) as raised:
        open_store(make_conninfo(postgres_url, password=SECRET, **wrong))

    assert SECRET not in str(raised.value)
    assert SECRET not in str(raised.value.__cause__)


def test_url_that_cannot_be_read_names_no_password():
    with pytest.raises(StoreUnavailableError, match="no URL that PostgreSQL understands") as raised:
        PostgresDatabase(f"postgresql://me:{SECRET}@host:port:5432/x?nonsense=1")

    assert SECRET not in repr(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"postgresql://me:{SECRET}@host/x?sslmod=require", "no setting 'sslmod'. Did you mean 'sslmode'?"),
        (f"host=x pasword={SECRET}", "no setting 'pasword'. Did you mean 'password'?"),
    ],
)
def test_setting_that_is_unknown_is_named(url, told):
    with pytest.raises(StoreUnavailableError) as raised:
        PostgresDatabase(url)

    assert told in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("url", ["host=x password=begin s3cr3t=end", "postgresql://host/x?password=begin&s3cr3t=end"])
def test_word_that_may_be_a_piece_of_a_password_is_not_named(url):
    with pytest.raises(StoreUnavailableError, match="no URL that PostgreSQL understands") as raised:
        PostgresDatabase(url)

    assert "s3cr3t" not in str(raised.value)


def test_name_in_messages_has_no_password(postgres_url):
    with open_store(make_conninfo(postgres_url, password=SECRET)) as store:
        assert SECRET not in store.database.path
        assert store.database.path.startswith("postgresql://")


def test_closed_store_says_so(postgres_url):
    store = open_store(postgres_url)
    store.close()

    with pytest.raises(StoreError, match="has been closed"):
        store.threads()


def test_store_inside_its_own_transaction_is_refused_instead_of_waiting_for_itself(store):
    with pytest.raises(StoreError, match="inside one of its own transactions"):
        store.database.write("outer", lambda tx: store.threads())


def test_child_of_a_fork_is_told_to_open_its_own(store, postgres_url):
    store.begin(NEW)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.threads()
            os.write(writer, b"used it")
        except StoreError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as said:
        message = said.read()
    os.waitpid(child, 0)

    assert "opened before this process was forked" in message
    assert len(store.threads()) == 1


def test_id_that_postgres_cannot_keep_is_refused_in_words(store):
    with pytest.raises(StoreError, match="NUL"):
        store.begin(NEW._replace(thread_id="a\x00b"))


# ── A pool that is not ours ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pool(postgres_url: str) -> Iterator[ConnectionPool[Any]]:
    """As applications have them: with settings of their own."""
    with ConnectionPool(
        postgres_url, min_size=1, max_size=2, kwargs={"row_factory": dict_row, "application_name": "theirs"}
    ) as pool:
        yield pool


@pytest.mark.complaint(30)
def test_store_over_a_pool_uses_its_connections_and_leaves_them_as_they_were(pool, postgres_url):
    with Store.open(pool, schema="bide") as store:
        asking(store).invoke({"x": 1}, thread("t"))
        assert asking(store).invoke(Command(resume=5), thread("t"))["x"] == 5
        assert ours(postgres_url) == []

    with pool.connection() as connection:
        assert not connection.autocommit
        assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_several_stores_may_share_a_pool(pool):
    with Store.open(pool, schema="bide") as one, Store.open(pool, schema="bide") as two:
        asking(one).invoke({"x": 1}, thread("t"))

        assert asking(two).invoke(Command(resume=5), thread("t"))["x"] == 5


def test_broken_connections_of_a_pool_are_replaced_unnoticed(pool, postgres_url):
    with Store.open(pool, schema="bide") as store:
        asking(store).invoke({"x": 1}, thread("t"))
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'theirs'"
            )

        assert asking(store).invoke(Command(resume=5), thread("t"))["x"] == 5


def test_pool_without_a_free_connection_is_an_error_that_says_what_to_do(pool):
    with (
        Store(PostgresDatabase(pool, schema="bide", patience=0.2)) as store,
        pool.connection(),
        pool.connection(),
        pytest.raises(StoreBusyError, match="larger max_size"),
    ):
        store.threads()


def test_pool_that_is_closed_is_an_error_that_says_what_to_do(postgres_url):
    pool = ConnectionPool(postgres_url, open=False)

    with pytest.raises(StoreUnavailableError, match="is not open"):
        Store.open(pool)


class Interrupted(psycopg.Connection[Any]):
    """A connection on which something goes wrong as soon as it is taken, once."""

    is_next = False

    @property
    def autocommit(self) -> bool:
        if Interrupted.is_next:
            Interrupted.is_next = False
            raise KeyboardInterrupt
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._set_autocommit(value)


def test_connection_goes_back_to_its_pool_whatever_happens_once_it_is_taken(postgres_url):
    with (
        ConnectionPool(postgres_url, min_size=1, max_size=1, connection_class=Interrupted) as pool,
        Store(PostgresDatabase(pool, schema="bide", patience=2)) as store,
    ):
        Interrupted.is_next = True
        with pytest.raises(KeyboardInterrupt):
            store.threads()

        assert store.threads() == []


class Watched(psycopg.Connection[Any]):
    """A connection that lets somebody else come in between while it is looked at."""

    meanwhile: Callable[[], None] | None = None

    @property
    def closed(self) -> bool:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().closed


def test_connections_of_a_pool_are_taken_for_the_first_time_by_several_threads_at_once(postgres_url):
    with (
        Watched.connect(postgres_url) as known,
        psycopg.connect(postgres_url) as one,
        psycopg.connect(postgres_url) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        borrowed = BorrowedPool(ConnectionPool(postgres_url, open=False))
        borrowed._wire_of(known)
        started: list[Future[Wire]] = []

        def come_in_between() -> None:
            started.append(threads.submit(borrowed._wire_of, other))
            # It has to wait for the first one, and so has not ended when this is over.
            wait(started, timeout=0.2)

        known.meanwhile = come_in_between
        wire = borrowed._wire_of(one)

        assert borrowed._wire_of(one) is wire
        assert borrowed._wire_of(other) is started[0].result(timeout=30)


def test_graph_of_parallel_nodes_runs_on_a_pool_of_one_connection(postgres_url):
    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, lambda state: None)
        builder.add_edge(START, name)
    with ConnectionPool(postgres_url, min_size=0, max_size=1) as pool, Store.open(pool, schema="bide") as store:
        assert builder.compile(checkpointer=store).invoke({"x": 1}, thread("t")) == {"x": 1}
