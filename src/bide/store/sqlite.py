"""SQLite, as a file or in memory: one writer at a time, many commits in one, snapshots for readers."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock, get_ident
from typing import Any, TypeVar
from weakref import WeakSet, finalize

from bide.clock import Clock, SystemClock
from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.failpoints import ON as FAILPOINTS_ON
from bide.failpoints import failpoint
from bide.store.database import Transaction, sql_text, statements
from bide.store.doorbell import Doorbell, FileDoorbell, InnerDoorbell
from bide.store.filesystems import check_local
from bide.store.gate import Gate, NoGate
from bide.store.lease import Lifeline, SharedLifeline
from bide.store.sqlite_errors import explain
from bide.store.sqlite_header import APPLICATION_ID, check_kind, check_length
from bide.store.sqlite_log import Log
from bide.store.sqlite_transaction import SqliteTransaction
from bide.store.trace import in_own_trace

T = TypeVar("T")

MOST_IN_ONE_COMMIT = 256
MOST_IDLE_READERS = 16

_open_here: WeakSet[SqliteDatabase] = WeakSet()
_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process. They are kept, because closing them is the parent's business."""


class _Ticket:
    """One write that waits for its turn."""

    __slots__ = ("error", "is_done", "name", "value", "work")

    def __init__(self, name: str, work: Callable[[Any], Any]) -> None:
        self.name = name
        self.work = work
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None


def _close_forgotten(connections: list[sqlite3.Connection], gate: Gate | NoGate, process: int) -> None:
    """Close what nobody closed; not in a forked child, whose connections are its parent's."""
    if process == os.getpid():
        _close_all(connections, gate)


def _close_each(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def _close_all(connections: list[sqlite3.Connection], gate: Gate | NoGate) -> None:
    """Close what was left open, inside the gate; a file that is gone by then is not worth an error."""
    try:
        if connections:
            gate.inside(_close_each, connections)
    except (sqlite3.Error, OSError, StoreError):
        return
    finally:
        connections.clear()
        gate.close()


class SqliteDatabase:
    """One SQLite database, shared by the threads of this process and by other processes.

    Group commit without a writer thread: writers queue up, and whoever gets the turn serves all that wait, in one
    transaction with a savepoint for each. Alone, a writer pays no hand-over between threads; in a crowd, one fsync
    serves everybody who came while the last one ran.
    """

    def __init__(self, path: str) -> None:
        self.blocking = path != ":memory:"
        # The real path: a working directory may change, and two links to one file must share one gate.
        self.path = path = os.path.realpath(path) if self.blocking else path
        if self.blocking:
            check_local(path)
            check_kind(path)
        self._gate: Gate | NoGate = Gate(path + "-lock") if self.blocking else NoGate()
        # A store that nobody closes is closed when it is collected, or when the process ends.
        self._connections: list[sqlite3.Connection] = []
        self._forgotten = finalize(self, _close_forgotten, self._connections, self._gate, os.getpid())
        self._queue: deque[_Ticket] = deque()
        self._turn = Lock()
        self._readers: list[sqlite3.Connection] = []
        self._pool = Lock()
        self._is_committed = False
        self._inside = 0
        """The thread whose transaction is under way."""
        self._process = os.getpid()
        self._files: tuple[tuple[int, int], ...] | None = None
        self._closed = False
        try:
            self._writer = self._gate.inside(self._connect_first)
        except BaseException:
            _close_all(self._connections, self._gate)
            raise
        self._transaction = SqliteTransaction(self._writer, "")
        self._log = Log(path, self._writer)
        _open_here.add(self)

    # ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work` in one transaction; when this returns, it is durable."""
        self._check_not_inside()
        if self._queue or self._turn.locked():
            return self._write_in_turn(name, in_own_trace(work))
        return self.write_alone(name, work)

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        """Run one statement, which is a transaction by itself; return how many rows it changed.

        Most steps are one row, and the two statements around it would cost as much as a fifth of a step in memory.
        """
        self._check_not_inside()
        if self._queue or self._turn.locked():
            return self._write_in_turn(name, lambda transaction: transaction.run(query, params))
        with self._turn:
            self._check_open()
            try:
                return self._gate.inside(self._execute, name, query, params)
            except sqlite3.Error as problem:
                raise explain(problem, self.path) from problem

    def write_alone(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work`, which may not be ours, in a transaction that nobody else shares."""
        self._check_not_inside()
        with self._turn:
            self._check_open()
            try:
                value: T = self._gate.inside(self._transact, name, work)
                return value
            except sqlite3.Error as problem:
                raise explain(problem, self.path) from problem

    def _execute(self, name: str, query: str, params: Mapping[str, Any]) -> int:
        if FAILPOINTS_ON:
            failpoint(f"{name}:begun")
        count = self._writer.execute(self._transaction.sql[query], params).rowcount
        if FAILPOINTS_ON:
            failpoint(f"{name}:committed")
        if self.blocking:
            self._log.tend()
        return count

    def _transact(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        connection, transaction = self._writer, self._transaction
        is_committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            transaction.name = name
            self._inside = get_ident()
            if FAILPOINTS_ON:
                failpoint(f"{name}:begun")
            value = work(transaction)
            if FAILPOINTS_ON:
                failpoint(f"{name}:written")
            is_committing = True
            connection.execute("COMMIT")
            self._is_committed = True
        except BaseException as problem:
            if connection.in_transaction:
                connection.rollback()
            elif is_committing and not isinstance(problem, sqlite3.Error):
                # A signal arrived after the commit and before the next line.
                self._is_committed = True
            raise
        finally:
            self._inside = 0
        if FAILPOINTS_ON:
            failpoint(f"{name}:committed")
        if self.blocking:
            self._log.tend()
        return value

    # ── Writing together ───────────────────────────────────────────────────────────────────────────────────────────

    def _write_in_turn(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        ticket = _Ticket(name, work)
        self._queue.append(ticket)
        try:
            with self._turn:
                # Not once: more may wait than one commit takes, and this one may not be among the first.
                while not ticket.is_done:
                    self._serve_waiting()
        finally:
            # Who was sent away by Ctrl-C takes its work along; it must not be written when nobody expects it any more.
            ticket.is_done = True
        if ticket.error is not None:
            raise ticket.error
        value: T = ticket.value
        return value

    def _serve_waiting(self) -> None:
        """Serve all who wait. They stay in the queue until they are done, so that Ctrl-C here loses nobody."""
        while self._queue and self._queue[0].is_done:
            self._queue.popleft()
        first = list(self._queue)[:MOST_IN_ONE_COMMIT]
        batch = [ticket for ticket in first if not ticket.is_done]
        try:
            self._check_open()
            if len(batch) == 1:
                self._serve_one(batch[0])
            elif batch:
                self._serve_together(batch)
        except Exception as problem:  # noqa: BLE001 — the store is closed, or the gate stays shut: everybody is told
            for ticket in batch:
                if not ticket.is_done:
                    ticket.error, ticket.is_done = problem, True

    def _serve_one(self, ticket: _Ticket) -> None:
        self._is_committed = False
        try:
            ticket.value = self._gate.inside(self._transact, ticket.name, ticket.work)
        except sqlite3.Error as problem:
            ticket.error = explain(problem, self.path)
        except KeyboardInterrupt:
            ticket.is_done = self._is_committed
            raise
        except BaseException as problem:  # noqa: BLE001 — it belongs to the caller of write(), who gets it
            ticket.error = problem
        ticket.is_done = True

    def _serve_together(self, batch: list[_Ticket]) -> None:
        self._is_committed = False
        try:
            self._gate.inside(self._transact, "group", lambda transaction: self._serve_each(transaction, batch))
            for ticket in batch:
                if FAILPOINTS_ON and ticket.error is None:
                    failpoint(f"{ticket.name}:committed")
                ticket.is_done = True
        except sqlite3.Error:
            # The database refused the group (disk full, …) and took all of it back: each finds out for itself.
            for ticket in batch:
                ticket.error = None
                self._serve_one(ticket)
            return
        except KeyboardInterrupt:
            for ticket in batch:
                ticket.is_done = self._is_committed
            raise

    def _serve_each(self, group: SqliteTransaction, batch: list[_Ticket]) -> None:
        for ticket in batch:
            ticket.error = None
            group.connection.execute("SAVEPOINT one")
            try:
                if FAILPOINTS_ON:
                    failpoint(f"{ticket.name}:begun")
                ticket.value = ticket.work(SqliteTransaction(group.connection, ticket.name))
                if FAILPOINTS_ON:
                    failpoint(f"{ticket.name}:written")
                group.connection.execute("RELEASE one")
            except (sqlite3.OperationalError, KeyboardInterrupt):
                raise
            except sqlite3.Error as problem:
                ticket.error = explain(problem, self.path)
                self._take_back(group.connection)
            except BaseException as problem:  # noqa: BLE001 — it belongs to the caller of write(), who gets it
                ticket.error = problem
                self._take_back(group.connection)

    @staticmethod
    def _take_back(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work` on one consistent snapshot."""
        self._check_not_inside()
        try:
            if not self.blocking:
                with self._turn:
                    self._check_open()
                    return work(SqliteTransaction(self._writer, "read"))
            return self._read_file(work)
        except sqlite3.Error as problem:
            raise explain(problem, self.path) from problem

    def _read_file(self, work: Callable[[SqliteTransaction], T]) -> T:
        connection = self._borrow_reader()
        try:
            try:
                connection.execute("BEGIN")
                return work(SqliteTransaction(connection, "read"))
            finally:
                # Whatever came of it: a snapshot that stays open would keep the log from ever being cut.
                connection.rollback()
        finally:
            self._give_back(connection)

    def _borrow_reader(self) -> sqlite3.Connection:
        with self._pool:
            self._check_open()
            if self._readers:
                return self._readers.pop()
        return self._gate.inside(self._connect)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._pool:
            if len(self._readers) < MOST_IDLE_READERS and not self._closed:
                self._readers.append(connection)
                return
        self._disconnect(connection)

    # ── Between processes ──────────────────────────────────────────────────────────────────────────────────────────

    def clock(self) -> Clock:
        """Return the clock of the machine, which all processes on a file share."""
        return SystemClock()

    def lifeline(self, lease: float) -> Lifeline:
        """Return a way to renew a lease: one more write."""
        return SharedLifeline(self)

    def doorbell(self) -> Doorbell:
        """Return a bell in the lock file, which every process on this database has open."""
        return FileDoorbell(self.path + "-lock") if self.blocking else InnerDoorbell()

    # ── The schema ─────────────────────────────────────────────────────────────────────────────────────────────────

    def change_schema(self, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work` in one transaction; there is one writer at a time."""
        return self.write("migrate", work)

    def is_ours(self, tx: Transaction) -> bool:
        """Say whether there is a database of Bide; an empty one is not. One of another program is refused."""
        if tx.connection.execute("PRAGMA schema_version").fetchone()[0] == 0:
            return False
        if tx.connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreFormatError(
                f"{self.path!r} is a database of another program, not of Bide. Nothing was changed. Choose another "
                f"path."
            )
        return True

    def make(self, tx: Transaction) -> None:
        """Make the present schema where nothing is, and mark it as ours."""
        tx.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.run_script(tx, sql_text("schema.sql"))

    def run_script(self, tx: Transaction, script: str) -> None:
        """Run the statements of a script, with what only SQLite reads."""
        for statement in statements(re.sub(r"/\* sqlite: (.*?) \*/", r"\1", script)):
            tx.connection.execute(statement)

    # ── Opening and closing ────────────────────────────────────────────────────────────────────────────────────────

    def _connect_first(self) -> sqlite3.Connection:
        is_short = self.blocking and check_length(self.path)
        connection = self._connect()
        if is_short:
            self._check_whole(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            self._connections.append(connection)
            connection.execute("PRAGMA trusted_schema = OFF")
            if self.blocking:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA wal_autocheckpoint = 0")
            return connection
        except sqlite3.Error as problem:
            raise explain(problem, self.path) from problem

    def _check_whole(self, connection: sqlite3.Connection) -> None:
        """Look whether the pages that the file lacks are in its log, as after a crash in a checkpoint."""
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise StoreFormatError(
                f"{self.path!r} is damaged ({found}). Bide did not change it. Restore it from a backup; what is left "
                f"can be read with the sqlite3 program's .recover."
            )

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self.path!r} has been closed. Open it again: Store.open(…).")
        if self._process != os.getpid():
            raise StoreError(
                f"The store {self.path!r} was opened before this process was forked. A database connection cannot be "
                f"shared with a child; open the store in the child: Store.open(…)."
            )

    def check_present(self) -> None:
        """Refuse to acknowledge what would go to a file that was deleted or replaced under us."""
        self._check_open()
        if not self.blocking:
            return
        found = self._identities()
        if self._files is None:
            self._files = found or None
        elif self._files != found:
            raise StoreUnavailableError(
                f"{self.path!r} or its log was moved, deleted or replaced while it was open: what is written now would "
                f"not be found again. Stop, bring the files back, and open the store anew."
            )

    def _identities(self) -> tuple[tuple[int, int], ...]:
        try:
            stats = [os.stat(self.path), os.stat(self.path + "-wal")]
        except OSError:
            return ()
        return tuple((stat.st_dev, stat.st_ino) for stat in stats)

    def _check_not_inside(self) -> None:
        if self._inside == get_ident():
            raise StoreError(
                "The store was used inside one of its own transactions, which would wait for itself. In "
                "step(effect='tx') use the connection that is given to the function, and nothing else of the store."
            )

    def stop_waiting(self) -> None:
        """Do nothing: a file is there or not."""

    def close(self) -> None:
        """Let go of the database. Closing runs SQLite's last checkpoint, so it happens inside the gate."""
        with self._turn:
            with self._pool:
                if self._closed:
                    return
                self._closed = True
                idle, self._readers = self._readers, []
            if self._process == os.getpid():
                for connection in (*idle, self._writer):
                    self._disconnect(connection)

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        """Close a connection; of a closed store, the last one puts out the light."""
        self._gate.inside(connection.close)
        self._connections.remove(connection)
        if self._closed and not self._connections:
            self._gate.close()

    def leave_to_parent(self) -> None:
        """In a forked child: touch nothing that is the parent's, and wait for no thread that exists only there."""
        _inherited.extend(self._connections)
        self._turn, self._pool = Lock(), Lock()
        self._queue, self._readers, self._inside = deque(), [], 0


def _leave_all_to_parent() -> None:
    for database in list(_open_here):
        database.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)
