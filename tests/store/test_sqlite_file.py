"""One SQLite file: how it is opened, read beside its writers, kept small, shared, and closed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any, TypedDict

import pytest

from bide import START, StateGraph, Store
from bide.errors import StoreBusyError, StoreError, StoreFormatError
from bide.store.sqlite import SqliteDatabase
from bide.store.sqlite_header import APPLICATION_ID
from bide.store.sqlite_log import CUT_BEYOND, WAL_LIMIT
from bide.store.sqlite_transaction import SqliteTransaction

PATIENCE_SECONDS = 30


def run(database: SqliteDatabase, sql: str, *params: Any) -> list[Any]:
    return database.write("test", lambda tx: tx.connection.execute(sql, params).fetchall())


def look(database: SqliteDatabase, sql: str) -> Any:
    """The one value that a query gives, as a reader sees it."""
    return database.read(lambda tx: tx.connection.execute(sql).fetchone()[0])


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def always_reading(database: SqliteDatabase) -> Iterator[None]:
    """Let somebody read at every moment: one who reads ends when the next one has begun."""
    is_over = Event()

    def read_until_the_next_one_does(mine: Event) -> None:
        following = Event()

        def read(tx: SqliteTransaction) -> None:
            tx.connection.execute("SELECT count(*) FROM rows").fetchall()
            mine.set()
            if not is_over.is_set():
                readers.submit(read_until_the_next_one_does, following)
                assert following.wait(PATIENCE_SECONDS)

        database.read(read)

    with ThreadPoolExecutor(3) as readers:
        first = Event()
        readers.submit(read_until_the_next_one_does, first)
        assert first.wait(PATIENCE_SECONDS)
        try:
            yield
        finally:
            is_over.set()


# ── Opening ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_file_is_marked_as_ours_and_every_commit_reaches_the_disk(path):
    with Store.open(f"sqlite:///{path}") as store:
        found = [run(store.database, f"PRAGMA {name}") for name in ("application_id", "journal_mode", "synchronous")]

    full = 2
    assert found == [[(APPLICATION_ID,)], [("wal",)], [(full,)]]


def test_file_is_opened_again_with_what_it_held(path):
    with Store.open(f"sqlite:///{path}") as store:
        store.database.write("test", lambda tx: tx.connection.execute("CREATE TABLE mine (x)"))
        version = store.version

    with Store.open(f"sqlite:///{path}") as again:
        assert again.version == version
        assert look(again.database, "SELECT count(*) FROM mine") == 0


def test_relative_path_is_taken_from_the_present_folder(path, monkeypatch):
    monkeypatch.chdir(path.parent)

    Store.open("sqlite:///bide.db").close()

    assert path.exists()


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_store_in_memory_leaves_no_file(url, path, monkeypatch):
    monkeypatch.chdir(path.parent)

    Store.open(url).close()

    assert list(path.parent.iterdir()) == []


def test_file_that_cannot_be_opened_leaves_no_descriptor_behind(path):
    path.write_text("not a database")
    before = open_files()

    for _ in range(10):
        with pytest.raises(StoreFormatError):
            Store.open(f"sqlite:///{path}")

    assert open_files() == before


# ── Reading beside writers ─────────────────────────────────────────────────────────────────────────────────────────


def test_reader_does_not_see_a_write_before_it_is_committed(database):
    run(database, "CREATE TABLE rows (x)")
    count = "SELECT count(*) FROM rows"
    before = look(database, count)

    with ThreadPoolExecutor(1) as pool:

        def insert_and_let_another_look(tx: SqliteTransaction) -> int:
            tx.connection.execute("INSERT INTO rows VALUES (1)")
            return int(pool.submit(look, database, count).result(PATIENCE_SECONDS))

        during = database.write("test", insert_and_let_another_look)

    assert [before, during, look(database, count)] == [0, 0, 1]


def test_reader_keeps_its_snapshot_while_others_write(database):
    run(database, "CREATE TABLE rows (x)")

    def look_twice(tx: SqliteTransaction) -> list[int]:
        count = "SELECT count(*) FROM rows"
        before = tx.connection.execute(count).fetchone()[0]
        run(database, "INSERT INTO rows VALUES (1)")
        return [before, tx.connection.execute(count).fetchone()[0]]

    assert database.read(look_twice) == [0, 0]
    assert look(database, "SELECT count(*) FROM rows") == 1


def test_reader_that_raises_leaves_its_connection_usable(database):
    def fail(tx: SqliteTransaction) -> None:
        tx.connection.execute("SELECT 1")
        raise LookupError("mine")

    for _ in range(10):
        with pytest.raises(LookupError, match="mine"):
            database.read(fail)

    assert look(database, "SELECT 1") == 1


@pytest.mark.complaint(32)
def test_crowds_of_readers_are_let_in_at_once_and_their_connections_are_used_again(database):
    crowd = 20
    barrier = Barrier(crowd, timeout=PATIENCE_SECONDS)
    counts = []

    with ThreadPoolExecutor(crowd) as pool:
        for _ in range(5):
            ends = list(pool.map(lambda _: database.read(lambda tx: barrier.wait() >= 0), range(crowd)))
            assert ends == [True] * crowd
            counts.append(open_files())

    assert max(counts) <= counts[0]


@pytest.mark.parametrize("url", ["sqlite:///{path}", ":memory:"])
@pytest.mark.parametrize("call", ["read", "write"])
def test_transaction_that_calls_its_own_database_is_refused_and_does_not_hang(url, call, path):
    """A function inside step(effect="tx") has a connection; whoever uses the store there would wait for themselves."""
    database = Store.open(url.format(path=path)).database
    calls = {"read": lambda: look(database, "SELECT 1"), "write": lambda: run(database, "SELECT 1")}
    errors: list[BaseException] = []

    def write() -> None:
        try:
            database.write("test", lambda tx: calls[call]())
        except BaseException as error:  # noqa: BLE001 — looked at below, in the test's own thread
            errors.append(error)

    writer = Thread(target=write, daemon=True)
    writer.start()
    writer.join(timeout=5)

    assert not writer.is_alive(), "it waits for itself"
    assert [type(error) for error in errors] == [StoreError]
    assert run(database, "SELECT 1") == [(1,)]


# ── The write-ahead log ────────────────────────────────────────────────────────────────────────────────────────────


def test_log_does_not_grow_with_what_is_written(database, path):
    run(database, "CREATE TABLE rows (x)")
    chunk = bytes(100_000)

    largest = 0
    for _ in range(400):
        run(database, "INSERT INTO rows VALUES (?)", chunk)
        largest = max(largest, Path(f"{path}-wal").stat().st_size)

    assert largest < 8 * WAL_LIMIT * 4096 < 400 * len(chunk)


@pytest.mark.slow
def test_log_does_not_grow_while_somebody_always_reads(database, path):
    """A log can begin anew only when nobody reads what is in it."""
    run(database, "CREATE TABLE rows (x)")
    chunk, rounds = bytes(400_000), 150
    largest = 0

    with always_reading(database):
        for _ in range(rounds):
            run(database, "INSERT INTO rows VALUES (?)", chunk)
            largest = max(largest, Path(f"{path}-wal").stat().st_size)

    assert largest < 2 * CUT_BEYOND * 4096 < rounds * len(chunk)
    assert look(database, "SELECT count(*) FROM rows") == rounds


def test_reader_that_stays_costs_writers_a_wait_now_and_then_and_no_error(database, path):
    run(database, "CREATE TABLE rows (x)")
    chunk, rounds = bytes(100_000), 400

    def write_much(tx: SqliteTransaction) -> int:
        count = "SELECT count(*) FROM rows"
        before = tx.connection.execute(count).fetchone()[0]
        with ThreadPoolExecutor(1) as pool:
            for _ in range(rounds):
                pool.submit(run, database, "INSERT INTO rows VALUES (?)", chunk).result()
        return int(tx.connection.execute(count).fetchone()[0]) - before

    grown = database.read(write_much)
    for _ in range(100):
        run(database, "INSERT INTO rows VALUES (?)", chunk)

    assert grown == 0
    assert Path(f"{path}-wal").stat().st_size < 2 * CUT_BEYOND * 4096
    assert look(database, "SELECT count(*) FROM rows") == rounds + 100


def test_closed_database_is_one_file_that_can_be_copied(path):
    with Store.open(f"sqlite:///{path}") as store:
        run(store.database, "CREATE TABLE rows (x)")
        run(store.database, "INSERT INTO rows VALUES (7)")
    copy = path.with_name("copy.db")

    shutil.copy(path, copy)

    with closing(sqlite3.connect(copy)) as reader:
        assert reader.execute("SELECT x FROM rows").fetchall() == [(7,)]


# ── Closing ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", ["sqlite:///{path}", ":memory:"])
def test_closed_store_says_so_and_names_the_way_back(url, path):
    class State(TypedDict):
        x: int

    store = Store.open(url.format(path=path))
    graph = StateGraph(State).add_node("node", lambda state: None).add_edge(START, "node").compile(checkpointer=store)
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"x": 1}, config)
    store.close()

    calls = [
        lambda: graph.invoke({"x": 1}, config),
        lambda: graph.get_state(config),
        lambda: store.threads(),
        lambda: store.delete_thread("t"),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"has been closed. Open it again: Store\.open"):
            call()


def test_closing_twice_is_closing_once(path):
    store = Store.open(f"sqlite:///{path}")

    store.close()
    store.close()

    with pytest.raises(StoreError, match="closed"):
        store.threads()


def test_store_may_be_closed_while_somebody_reads(database, path):
    reads, may_end = Event(), Event()

    def read_slowly(tx: SqliteTransaction) -> int:
        reads.set()
        assert may_end.wait(PATIENCE_SECONDS)
        return int(tx.connection.execute("SELECT 7").fetchone()[0])

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(database.read, read_slowly)
        assert reads.wait(PATIENCE_SECONDS)
        database.close()
        may_end.set()

    assert reading.exception() is None or isinstance(reading.exception(), StoreError)
    with Store.open(f"sqlite:///{path}") as again:
        assert look(again.database, "PRAGMA quick_check") == "ok"


# ── Other processes ────────────────────────────────────────────────────────────────────────────────────────────────


def test_program_that_holds_the_database_itself_is_named_as_the_cause(database, path):
    run(database, "PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusyError, match=r"held by another program .* Nothing was written"):
            run(database, "CREATE TABLE rows (x)")
        stranger.execute("ROLLBACK")

    run(database, "CREATE TABLE rows (x)")
    assert look(database, "SELECT count(*) FROM rows") == 0
