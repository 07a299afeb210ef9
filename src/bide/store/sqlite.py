"""SQLite, as a file or in memory: one writer at a time, many commits in one, snapshots for readers."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from threading import Lock, get_ident
from typing import Any, TypeVar
from weakref import finalize

from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.failpoints import ON as FAILPOINTS_ON
from bide.failpoints import failpoint
from bide.store.database import Row, queries
from bide.store.gate import Gate
from bide.store.sqlite_errors import explain
from bide.store.sqlite_header import check_kind, check_length

T = TypeVar("T")

MOST_IN_ONE_COMMIT = 256
WAL_LIMIT = 256
"""How many pages the log may hold. A log that is begun anew is written over, and an fsync of blocks that a file already
has takes about half as long as one of blocks that it gains (105 against 200 µs here): small is fast."""
LOOK_AT_WAL_EVERY = 16
MOST_IDLE_READERS = 4


class SqliteTransaction:
    """Named queries on one connection."""

    __slots__ = ("connection", "name", "sql")

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.sql = queries()

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect; return how many rows it changed."""
        count = self.connection.execute(self.sql[query], params).rowcount
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:{query}")
        return count

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None. The cursor is run out, so that a RETURNING statement is over."""
        rows = self.connection.execute(self.sql[query], params).fetchall()
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:{query}")
        return rows[0] if rows else None

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        return self.connection.execute(self.sql[query], params).fetchall()


class _Ticket:
    """One write that waits for its turn."""

    __slots__ = ("error", "is_done", "name", "value", "work")

    def __init__(self, name: str, work: Callable[[Any], Any]) -> None:
        self.name = name
        self.work = work
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None


def _close_forgotten(connections: list[sqlite3.Connection], gate: Gate | nullcontext[None], process: int) -> None:
    """Close what nobody closed; not in a forked child, whose connections are its parent's."""
    if process == os.getpid():
        _close_all(connections, gate)


def _close_all(connections: list[sqlite3.Connection], gate: Gate | nullcontext[None]) -> None:
    """Close what was left open, inside the gate; a file that is gone by then is not worth an error."""
    if not connections:
        return
    try:
        with gate:
            for connection in connections:
                connection.close()
    except (sqlite3.Error, OSError, StoreError):
        return
    finally:
        connections.clear()


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
            check_kind(path)
        self._gate: Gate | nullcontext[None] = Gate(path + "-lock") if self.blocking else nullcontext()
        # A store that nobody closes is closed when it is collected, or when the process ends.
        self._connections: list[sqlite3.Connection] = []
        self._forgotten = finalize(self, _close_forgotten, self._connections, self._gate, os.getpid())
        self._queue: deque[_Ticket] = deque()
        self._turn = Lock()
        self._readers: list[sqlite3.Connection] = []
        self._reading = 0
        self._pool = Lock()
        self._commits = 0
        self._is_committed = False
        self._inside = 0
        """The thread whose transaction is under way."""
        self._process = os.getpid()
        self._files: tuple[tuple[int, int], ...] | None = None
        self._closed = False
        try:
            with self._gate:
                is_short = self.blocking and check_length(path)
                self._writer = self._connect()
                if is_short:
                    self._check_whole()
        except BaseException:
            _close_all(self._connections, nullcontext())
            if isinstance(self._gate, Gate):
                self._gate.close()
            raise
        self._transaction = SqliteTransaction(self._writer, "")

    # ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work` in one transaction; when this returns, it is durable."""
        self._check_not_inside()
        if not self._queue and self._turn.acquire(blocking=False):
            try:
                self._check_open()
                with self._gate:
                    return self._transact(name, work)
            except sqlite3.Error as problem:
                raise explain(problem, self.path) from problem
            finally:
                self._turn.release()
        return self._write_in_turn(name, work)

    def write_one(self, name: str, query: str, params: Mapping[str, Any]) -> int:
        """Run one statement, which is a transaction by itself; return how many rows it changed.

        Most steps are one row, and the two statements around it would cost as much as a fifth of a step in memory.
        """
        self._check_not_inside()
        if self._queue or not self._turn.acquire(blocking=False):
            return self._write_in_turn(name, lambda transaction: transaction.run(query, params))
        try:
            self._check_open()
            with self._gate:
                if FAILPOINTS_ON:
                    failpoint(f"{name}:begun")
                count = self._writer.execute(self._transaction.sql[query], params).rowcount
                if FAILPOINTS_ON:
                    failpoint(f"{name}:committed")
                if self.blocking:
                    self._tend_wal()
                return count
        except sqlite3.Error as problem:
            raise explain(problem, self.path) from problem
        finally:
            self._turn.release()

    def write_alone(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        """Run `work`, which is not ours, in a transaction that nobody else shares."""
        self._check_not_inside()
        with self._turn:
            self._check_open()
            try:
                with self._gate:
                    return self._transact(name, work)
            except sqlite3.Error as problem:
                raise explain(problem, self.path) from problem

    def _write_in_turn(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        ticket = _Ticket(name, work)
        self._queue.append(ticket)
        with self._turn:
            if not ticket.is_done:
                self._serve_waiting(ticket)
        if ticket.error is not None:
            raise ticket.error
        value: T = ticket.value
        return value

    def _transact(self, name: str, work: Callable[[SqliteTransaction], T]) -> T:
        connection, transaction = self._writer, self._transaction
        self._is_committed = False
        connection.execute("BEGIN IMMEDIATE")
        transaction.name = name
        self._inside = get_ident()
        is_committing = False
        try:
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
                connection.execute("ROLLBACK")
            elif is_committing and not isinstance(problem, sqlite3.Error):
                # A signal arrived after the commit and before the next line.
                self._is_committed = True
            raise
        finally:
            self._inside = 0
        if FAILPOINTS_ON:
            failpoint(f"{name}:committed")
        if self.blocking:
            self._tend_wal()
        return value

    def _serve_waiting(self, mine: _Ticket) -> None:
        """Serve all who wait. Ctrl-C stops the one who serves, takes back its own write, and nobody else's."""
        batch: list[_Ticket] = []
        try:
            while self._queue and len(batch) < MOST_IN_ONE_COMMIT:
                batch.append(self._queue.popleft())
            self._check_open()
            if len(batch) == 1:
                self._serve_one(batch[0])
            else:
                self._serve_together(batch)
        except Exception as problem:  # noqa: BLE001 — the store is closed: everybody is told
            for ticket in batch:
                if not ticket.is_done:
                    ticket.error, ticket.is_done = problem, True
        except BaseException:
            if self._is_committed:
                for ticket in batch:
                    ticket.is_done = True
            else:
                others = [ticket for ticket in batch if not ticket.is_done and ticket is not mine]
                self._queue.extendleft(reversed(others))
            raise

    def _serve_one(self, ticket: _Ticket) -> None:
        try:
            with self._gate:
                ticket.value = self._transact(ticket.name, ticket.work)
        except sqlite3.Error as problem:
            ticket.error = explain(problem, self.path)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # noqa: BLE001 — it belongs to the caller of write(), who gets it
            ticket.error = problem
        ticket.is_done = True

    def _serve_together(self, batch: list[_Ticket]) -> None:
        try:
            with self._gate:
                self._transact("group", lambda transaction: self._serve_each(transaction, batch))
        except sqlite3.Error:
            # The database refused the group (disk full, …) and took all of it back: each finds out for itself.
            for ticket in batch:
                ticket.error = None
                self._serve_one(ticket)
            return
        for ticket in batch:
            ticket.is_done = True

    def _serve_each(self, group: SqliteTransaction, batch: list[_Ticket]) -> None:
        for ticket in batch:
            ticket.error = None
            group.connection.execute("SAVEPOINT one")
            try:
                ticket.value = ticket.work(SqliteTransaction(group.connection, ticket.name))
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

    def _tend_wal(self) -> None:
        """Copy the write-ahead log into the database when it has grown. Only here, and only inside the gate."""
        self._commits += 1
        if self._commits % LOOK_AT_WAL_EVERY:
            return
        try:
            if self._pages_in_wal() > WAL_LIMIT:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except (OSError, sqlite3.Error):
            # What was committed is in the log; a checkpoint is housekeeping and is tried again.
            return

    def _pages_in_wal(self) -> int:
        """Read from the log's index how many pages it holds: its file does not shrink when it begins anew."""
        with open(self.path + "-shm", "rb") as index:
            return int.from_bytes(index.read(20)[16:], sys.byteorder)

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
            connection.execute("BEGIN")
            try:
                return work(SqliteTransaction(connection, "read"))
            finally:
                connection.execute("COMMIT")
        finally:
            self._give_back(connection)

    def _borrow_reader(self) -> sqlite3.Connection:
        with self._pool:
            self._check_open()
            self._reading += 1
            if self._readers:
                return self._readers.pop()
        try:
            with self._gate:
                return self._connect()
        except BaseException:
            self._leave_pool()
            raise

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._pool:
            if len(self._readers) < MOST_IDLE_READERS and not self._closed:
                self._readers.append(connection)
                self._reading -= 1
                return
        self._close_connection(connection)
        self._leave_pool()

    def _leave_pool(self) -> None:
        """Of a store that was closed meanwhile, the last reader puts out the light."""
        with self._pool:
            self._reading -= 1
            is_last = self._closed and not self._reading
        if is_last and isinstance(self._gate, Gate):
            self._gate.close()

    # ── Opening and closing ────────────────────────────────────────────────────────────────────────────────────────

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

    def _check_whole(self) -> None:
        """Look whether the pages that the file lacks are in its log, as after a crash in a checkpoint."""
        found = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            _close_all(self._connections, nullcontext())
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

    def close(self) -> None:
        """Let go of the database. Closing runs SQLite's last checkpoint, so it happens inside the gate."""
        with self._turn:
            with self._pool:
                if self._closed:
                    return
                self._closed = True
                idle, self._readers = self._readers, []
                is_last = not self._reading
            for connection in (*idle, self._writer):
                self._close_connection(connection)
            if is_last and isinstance(self._gate, Gate):
                self._gate.close()

    def _close_connection(self, connection: sqlite3.Connection) -> None:
        with self._gate:
            connection.close()
        self._connections.remove(connection)
