"""The gate between processes: everybody gets in, nobody is shut in or out, whatever dies, forks or is interrupted."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bide.store.gate
from bide import Store
from bide.errors import StoreBusyError, StoreError
from bide.store.backup import back_up
from bide.store.gate import Gate
from bide.store.sqlite import SqliteDatabase
from bide.store.sqlite_transaction import SqliteTransaction
from tests.store.interrupting import at_every_instruction
from tests.store.programs.gate_user import sign
from tests.stories.programs.child import Child, run_program

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_SECONDS = 30
OURS = ("store/gate.py", "store/sqlite.py", "store/sqlite_log.py")


# Programs may watch themselves: then Python's own code runs inside of calls that are written in C, and Ctrl-C may come
# there. It cannot be removed again, and does nothing.
sys.addaudithook(lambda *_: None)


def is_open(path: Path) -> bool:
    """Whether another process would be let in."""
    gate = Gate(f"{path}-lock", patience=5)
    try:
        return gate.inside(lambda: True)
    finally:
        gate.close()


# ── Waiting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gate_that_stays_shut_is_reported_with_what_to_look_for(path):
    mine, other = Gate(f"{path}-lock"), Gate(f"{path}-lock", patience=0.01)

    with pytest.raises(StoreBusyError, match=r"Nothing was written. Look for a stopped"):
        mine.inside(other.inside, lambda: None)


def test_gate_opens_again_after_it_was_found_shut(path):
    mine, other = Gate(f"{path}-lock"), Gate(f"{path}-lock", patience=0.01)
    with pytest.raises(StoreBusyError):
        mine.inside(other.inside, lambda: None)

    entered = [other.inside(lambda: "other"), mine.inside(lambda: "mine")]

    assert entered == ["other", "mine"]


def test_error_inside_leaves_the_gate_open(path):
    gate = Gate(f"{path}-lock")

    with pytest.raises(ZeroDivisionError):
        gate.inside(lambda: 1 // 0)

    assert is_open(path)


def test_closed_gate_lets_nobody_in(path):
    gate = Gate(f"{path}-lock")
    gate.close()
    gate.close()

    with pytest.raises(StoreError, match="has been closed"):
        gate.inside(lambda: None)


@pytest.mark.slow
def test_two_processes_that_always_want_in_take_turns(path):
    """Each leaves for microseconds, and is back before one who only looks now and then has looked."""
    book, gate = path.with_name("book"), Gate(f"{path}-lock")
    book.touch()

    with Child(str(PROGRAMS / "gate_user.py"), f"{path}-lock", "busy", book) as other:
        while not book.read_text():
            assert other.process.poll() is None
        for _ in range(300):
            gate.inside(sign, str(book), "a")
        other.tell("stop")
        assert other.process.wait(PATIENCE_SECONDS) == 0

    signed = book.read_text()
    turns = sum(before != after for before, after in pairwise(signed))
    assert signed.count("a") == 300
    assert turns > 60


# ── Dying and forking ──────────────────────────────────────────────────────────────────────────────────────────────


def test_process_that_dies_inside_leaves_the_gate_open(path):
    with Child(str(PROGRAMS / "gate_user.py"), f"{path}-lock", "die") as other:
        assert other.hear() == "dying"
        other.process.wait(PATIENCE_SECONDS)

        assert is_open(path)


def test_forked_child_does_not_keep_the_gate_shut_when_its_parent_dies_inside(path):
    with Child(str(PROGRAMS / "gate_user.py"), f"{path}-lock", "orphan") as other:
        assert other.hear() == "dying"
        other.process.wait(PATIENCE_SECONDS)

        assert is_open(path)


@pytest.mark.slow
def test_forked_child_is_told_to_open_the_store_itself_and_harms_nobody(path):
    """While another thread of its parent is in the middle of a write, whose locks the child would wait for for ever."""
    ended = run_program(str(PROGRAMS / "forker.py"), path)

    assert ended.stderr == ""
    assert ended.stdout == '{"child": ["forked", "forked", "no error"], "parent": 0}\n'
    with Store.open(f"sqlite:///{path}") as store:
        assert store.threads() == []


# ── Ctrl-C ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def adding(tx: SqliteTransaction) -> None:
    tx.connection.execute("INSERT INTO rows VALUES (1)")


def counting(tx: SqliteTransaction) -> int:
    return int(tx.connection.execute("SELECT count(*) FROM rows").fetchone()[0])


CALLS: dict[str, Callable[[SqliteDatabase], Any]] = {
    "a write": lambda database: database.write("test", adding),
    "a write of one row": lambda database: database.write_one("test", "add_row", {}, proof=""),
    "a write in a group": lambda database: database._write_in_turn("test", adding),
    "a read": lambda database: database.read(counting),
}


@pytest.mark.slow
# A file that is lost between its opening and its `with` is closed at once by Python, which complains.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_at_any_instruction_leaves_the_store_to_other_threads_and_processes(call, database, path):
    database.write("test", lambda tx: tx.connection.execute("CREATE TABLE rows (x)"))
    database._transaction.sql = {**database._transaction.sql, "add_row": "INSERT INTO rows VALUES (1)"}

    with ThreadPoolExecutor(1) as other:

        def check_that_others_can_go_on() -> None:
            assert is_open(path)
            other.submit(database.write, "test", adding).result(PATIENCE_SECONDS)
            other.submit(database.read, counting).result(PATIENCE_SECONDS)

        struck = at_every_instruction(lambda: CALLS[call](database), check_that_others_can_go_on, *OURS)

    assert struck > 50
    assert not any(connection.in_transaction for connection in database._connections)


def test_ctrl_c_while_waiting_for_the_gate_leaves_it_to_others(path, monkeypatch):
    """At any instruction of those who wait: first for their place, then for the gate."""
    mine, place, gate = (Gate(f"{path}-lock", patience=5) for _ in range(3))

    def be_let_in(seconds: float) -> None:
        if held:
            held.pop()()

    def wait_for_both() -> None:
        place._take(place._place, (0, 0))
        gate._take(gate._gate, (0, 0))
        held[:] = [gate._leave_gate, place._leave_place]
        mine.inside(lambda: None)

    def check_that_others_can_go_on() -> None:
        place._leave_place()
        gate._leave_gate()
        assert is_open(path)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(mine.inside, lambda: "in").result(PATIENCE_SECONDS) == "in"

    held: list[Callable[[], None]] = []
    # Not the module's own function: other threads of this process sleep, too.
    monkeypatch.setattr(bide.store.gate, "time", SimpleNamespace(sleep=be_let_in, monotonic=time.monotonic))

    struck = at_every_instruction(wait_for_both, check_that_others_can_go_on, "store/gate.py")

    assert struck > 50


# ── SQLite's own locks ─────────────────────────────────────────────────────────────────────────────────────────────

FILE_IN_USE, INDEX_IN_USE, LOG_IS_READ = ("", 0x40000002, 510), ("-shm", 128, 1), ("-shm", 123, 5)
"""Where SQLite puts a lock, in which file, to tell other processes that it uses a database, its index and its log."""


def can_be_locked_by_others(path: Path, place: tuple[str, int, int]) -> bool:
    ending, start, length = place
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, int(sys.argv[3]), int(sys.argv[2]))\n"
        "except BlockingIOError: print('locked')"
    )
    arguments = [f"{path}{ending}", str(start), str(length)]
    told = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return told.stdout != "locked\n"


def open_and_close(path: Path) -> None:
    Store.open(f"sqlite:///{path}").close()


BESIDE: dict[str, Callable[[SqliteDatabase, Path], Any]] = {
    "much is written": lambda database, path: [database.write("test", adding) for _ in range(100)],
    "the file is opened again": lambda database, path: open_and_close(path),
    "it is backed up": lambda database, path: back_up(database, path.with_name("copy.db")),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_locks_of_a_reader_hold_whatever_is_done_beside_it(beside, path):
    """The system drops all locks that a process has on a file as soon as the process closes any copy of that file.

    Others would then take the log for unused, and throw it away under those who read and write it.
    """
    with Store.open(f"sqlite:///{path}") as store, ThreadPoolExecutor(1) as other:
        database = store.database
        database.write("test", lambda tx: tx.connection.execute("CREATE TABLE rows (x)"))

        def read(tx: SqliteTransaction) -> list[bool]:
            counting(tx)
            other.submit(BESIDE[beside], database, path).result(PATIENCE_SECONDS)
            return [can_be_locked_by_others(path, place) for place in (FILE_IN_USE, INDEX_IN_USE, LOG_IS_READ)]

        assert database.read(read) == [False, False, False]
