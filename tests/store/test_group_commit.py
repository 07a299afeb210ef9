"""Writers that wait for their turn are served together: one commit for all, and each gets what belongs to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Event
from time import sleep
from typing import Any

import pytest

import bide.store.gate
import bide.store.sqlite
from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.store.gate import Gate
from bide.store.sqlite import MOST_IN_ONE_COMMIT, SqliteDatabase, _Ticket
from bide.store.sqlite_transaction import SqliteTransaction

PATIENCE_SECONDS = 30
Work = Callable[[SqliteTransaction], Any]


class Crowd:
    """Writers that come while another one holds the database, so that they are served in one group by one of them."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self.statements: list[str] = []
        database.write("prepare", lambda tx: tx.connection.execute("CREATE TABLE rows (name TEXT UNIQUE NOT NULL)"))

    def write(self, *works: Work) -> list[Future[Any]]:
        """Let these be written by one thread each, all at once, and return how each of them ended."""
        is_held, may_end = Event(), Event()

        def hold(tx: SqliteTransaction) -> None:
            is_held.set()
            assert may_end.wait(PATIENCE_SECONDS)
            tx.connection.set_trace_callback(self.statements.append)

        with ThreadPoolExecutor(len(works) + 1) as pool:
            holder = pool.submit(self.database.write, "hold", hold)
            assert is_held.wait(PATIENCE_SECONDS)
            ends = []
            for number, work in enumerate(works, 1):
                ends.append(pool.submit(self.database.write, "row", work))
                # Everybody is in line before the holder leaves.
                while len(self.database._queue) < number:
                    sleep(0)
            may_end.set()
        holder.result()
        self.database.write("end", lambda tx: tx.connection.set_trace_callback(None))
        return ends

    def one_by_one(self, *works: Work) -> list[Future[Any]]:
        """Let these be written one after the other."""
        with ThreadPoolExecutor(1) as pool:
            return [pool.submit(self.database.write, "row", work) for work in works]

    @property
    def commits(self) -> int:
        """How often something was committed since the crowd was let in; the holder's own commit is the first."""
        return self.statements.count("COMMIT") - 1

    def names(self) -> list[str]:
        """What the table holds, as a fresh connection sees it."""
        rows = self.database.read(lambda tx: tx.connection.execute("SELECT name FROM rows ORDER BY rowid").fetchall())
        return [name for (name,) in rows]


@pytest.fixture
def crowd(database: SqliteDatabase) -> Crowd:
    return Crowd(database)


def adding(name: str) -> Work:
    def work(tx: SqliteTransaction) -> str:
        tx.connection.execute("INSERT INTO rows (name) VALUES (?)", (name,))
        return f"{name} added"

    return work


def failing(name: str, how: Callable[[SqliteTransaction], Any]) -> Work:
    def work(tx: SqliteTransaction) -> Any:
        adding(name)(tx)
        return how(tx)

    return work


def raising(error: BaseException) -> Callable[[SqliteTransaction], Any]:
    def how(tx: SqliteTransaction) -> Any:
        raise error

    return how


def running(sql: str) -> Callable[[SqliteTransaction], Any]:
    return lambda tx: tx.connection.execute(sql)


# ── Together ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(32)
def test_many_who_wait_are_served_by_one_commit(crowd):
    ends = crowd.write(*(adding(f"row {number}") for number in range(50)))

    assert [end.result() for end in ends] == [f"row {number} added" for number in range(50)]
    assert crowd.names() == [f"row {number}" for number in range(50)]
    assert crowd.commits == 1


def test_each_of_a_group_passes_the_points_where_a_process_may_die(crowd, monkeypatch):
    """Whether a write shares its commit is chance: a test that kills at a write must find its place either way."""
    passed: list[str] = []
    monkeypatch.setattr(bide.store.sqlite, "FAILPOINTS_ON", True)
    monkeypatch.setattr(bide.store.sqlite, "failpoint", passed.append)

    crowd.write(adding("first"), adding("second"), failing("third", raising(ValueError("no"))))

    of_rows = passed[passed.index("group:begun") : passed.index("end:begun")]
    each = ["row:begun", "row:written"]
    assert of_rows == [
        "group:begun",
        *each,
        *each,
        "row:begun",
        "group:written",
        "group:committed",
        *["row:committed"] * 2,
    ]


def test_more_than_fit_into_one_commit_are_all_served(crowd):
    """The turn may fall to one who stands behind more than one commit takes: it must not forget itself."""
    before = [_Ticket("row", adding(f"row {number}")) for number in range(MOST_IN_ONE_COMMIT)]
    crowd.database._queue.extend(before)

    mine = crowd.database.write("row", adding("mine"))

    assert mine == "mine added"
    assert [ticket.value for ticket in before] == [f"row {number} added" for number in range(MOST_IN_ONE_COMMIT)]
    assert crowd.names() == [*(f"row {number}" for number in range(MOST_IN_ONE_COMMIT)), "mine"]


def test_one_who_comes_alone_is_served_without_a_savepoint(crowd):
    crowd.write(adding("alone"))

    assert crowd.names() == ["alone"]
    assert not [statement for statement in crowd.statements if "SAVEPOINT" in statement]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (raising(ValueError("no such customer")), ValueError),
        (running("INSERT INTO rows (name) VALUES ('first')"), StoreError),
        (running("INSERT INTO nowhere VALUES (1)"), StoreFormatError),
    ],
    ids=["its own error", "a constraint", "a wrong statement"],
)
def test_one_that_fails_in_a_group_harms_nobody_else(crowd, how, expected):
    ends = crowd.write(adding("first"), failing("bad", how), adding("last"))

    assert isinstance(ends[1].exception(), expected)
    assert [ends[0].result(), ends[2].result()] == ["first added", "last added"]
    assert crowd.names() == ["first", "last"]


def test_group_that_does_not_fit_on_the_disk_is_tried_one_by_one(crowd):
    crowd.database.write("fill", lambda tx: tx.connection.execute("PRAGMA max_page_count = 4"))

    ends = crowd.write(adding("small"), adding("large" * 10_000), adding("small too"))

    assert isinstance(ends[1].exception(), StoreUnavailableError)
    assert [ends[0].result(), ends[2].result()] == ["small added", "small too added"]
    assert crowd.names() == ["small", "small too"]


def test_writers_after_a_close_are_told_and_those_before_are_kept(crowd):
    ends = crowd.write(adding("first"))
    crowd.database.close()

    with pytest.raises(StoreError, match=r"has been closed. Open it again"):
        crowd.database.write("row", adding("late"))
    assert ends[0].result() == "first added"
    with closing(sqlite3.connect(crowd.database.path)) as reader:
        assert reader.execute("SELECT name FROM rows").fetchall() == [("first",)]


@pytest.mark.parametrize("position", range(3))
def test_exit_that_one_writer_asks_for_is_that_writers_alone(crowd, position):
    """A function inside step(effect="tx") may call sys.exit(); those who are served with it have not."""
    works = [adding(f"row {number}") for number in range(3)]
    works[position] = failing("leaver", raising(SystemExit(3)))

    ends = crowd.write(*works)

    others = [number for number in range(3) if number != position]
    assert isinstance(ends[position].exception(), SystemExit)
    assert [ends[number].result() for number in others] == [f"row {number} added" for number in others]
    assert crowd.names() == [f"row {number}" for number in others]


# ── Ctrl-C: the signal hits whoever serves at that moment, and only once ────────────────────────────────────────────


def interrupting_once(name: str) -> Work:
    calls: list[str] = []

    def work(tx: SqliteTransaction) -> str:
        calls.append(name)
        done = str(adding(name)(tx))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return done

    return work


def check_that_one_was_stopped_and_the_others_were_served(ends: list[Future[Any]], names: list[str]) -> None:
    stopped = [end for end in ends if isinstance(end.exception(), KeyboardInterrupt)]
    served = [end.result() for end in ends if end not in stopped]
    assert len(stopped) == 1
    assert sorted(served) == sorted(f"{name} added" for name in names)


def test_ctrl_c_in_a_lonely_write_takes_it_back_for_good(crowd):
    stopped, following = crowd.one_by_one(interrupting_once("stopped"), adding("next"))

    assert isinstance(stopped.exception(), KeyboardInterrupt)
    assert following.result() == "next added"
    assert crowd.names() == ["next"]


@pytest.mark.parametrize("position", range(4))
def test_ctrl_c_in_the_middle_of_a_group_stops_one_writer_and_loses_no_other(crowd, position):
    works = [adding(f"row {number}") for number in range(4)]
    works[position] = interrupting_once(f"row {position}")

    ends = crowd.write(*works)

    check_that_one_was_stopped_and_the_others_were_served(ends, crowd.names())


def test_ctrl_c_while_the_group_waits_for_another_process_loses_nobody(crowd, path, monkeypatch):
    """The one who serves is sent away in front of the gate; what the others wanted was not written yet."""
    another, serve, signals = Gate(f"{path}-lock"), crowd.database._serve_together, [KeyboardInterrupt()]

    def serve_behind_another(batch: Any) -> None:
        if signals:
            another._take(another._gate, (0, 0))
        serve(batch)

    def interrupt_and_let_in(seconds: float) -> None:
        another._leave_gate()
        raise signals.pop()

    monkeypatch.setattr(crowd.database, "_serve_together", serve_behind_another)
    monkeypatch.setattr(bide.store.gate.time, "sleep", interrupt_and_let_in)
    ends = crowd.write(adding("first"), adding("second"), adding("third"))

    check_that_one_was_stopped_and_the_others_were_served(ends, crowd.names())


def test_ctrl_c_right_after_the_commit_makes_nothing_twice(crowd, monkeypatch):
    """The signal arrives where the group is durable and nobody has been told yet."""
    original = bide.store.sqlite.failpoint
    signals = [KeyboardInterrupt()]

    def interrupt_after_commit(name: str) -> None:
        original(name)
        if name == "group:committed" and signals:
            raise signals.pop()

    monkeypatch.setattr(bide.store.sqlite, "FAILPOINTS_ON", True)
    monkeypatch.setattr(bide.store.sqlite, "failpoint", interrupt_after_commit)
    ends = crowd.write(adding("first"), adding("second"), adding("third"))

    refused = [end.exception() for end in ends if isinstance(end.exception(), Exception)]
    assert not refused
    assert sum(isinstance(end.exception(), KeyboardInterrupt) for end in ends) == 1
    assert sorted(crowd.names()) == ["first", "second", "third"]
