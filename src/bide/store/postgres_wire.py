"""One connection to PostgreSQL, driven as a pipeline: many statements out, all answers back, one round trip.

What is sent between two synchronisation points is one transaction, also without BEGIN and COMMIT: the server commits
at the point, unless something failed before it.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from bide.store.database import Row
from bide.store.postgres_errors import needs_new_connection
from bide.store.postgres_sql import Statement

BINARY = 1
CANCEL_SECONDS = 5.0
"""How long an answer to a cancelled statement is waited for, before the connection counts as dead."""

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Command(NamedTuple):
    """A statement with its parameters."""

    statement: Statement
    values: list[bytes | None]
    formats: list[int]


class ConnectionLost(Exception):
    """The connection is gone; whether the server did what was sent is not known."""


class Refused(Exception):
    """The server refused a statement, and took back what was sent with it."""

    def __init__(self, sqlstate: str, message: str, index: int | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.index = index
        """Which of the commands it was; None if it was the commit."""


class Wire:
    """One connection. A wire that is broken is not used again."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.is_broken = False
        self.is_preparing = True
        self.used_at = monotonic()
        self._pgconn = connection.pgconn
        self._prepared: set[bytes] = set()
        self._loader = Transformer(connection)
        self._is_hurried = False
        self._left = 0
        """How many synchronisation points were sent whose answers nobody has read yet."""

    # ── Sending and receiving ──────────────────────────────────────────────────────────────────────────────────────

    def exchange(self, commands: Sequence[Command], patience: float, *, is_hurried: bool = False) -> list[Any]:
        """Send commands and a synchronisation point; return the result of each command.

        Raises Refused if the server refused one, and ConnectionLost if the connection broke on the way. Who is in a
        hurry gives the connection up when the time is over; others have the server cancel what takes too long.
        """
        deadline = monotonic() + patience
        self._is_hurried = is_hurried
        try:
            results = self._receive(self._send(commands), deadline)
        except Refused as problem:
            self.is_broken = needs_new_connection(problem.sqlstate)
            raise
        except psycopg.Error as problem:
            self.is_broken = True
            raise ConnectionLost(str(problem).strip()) from problem
        except BaseException:
            self.is_broken = True
            raise
        self.used_at = monotonic()
        return results

    def leave(self, text: bytes) -> None:
        """Send a command whose answer nobody waits for; it is read when the connection is used next."""
        try:
            if self._pgconn.pipeline_status == pq.PipelineStatus.OFF:
                self._pgconn.enter_pipeline_mode()
            self._pgconn.send_query_params(text, None)
            self._pgconn.pipeline_sync()
            self._left += 1
            self._pgconn.flush()
        except psycopg.Error:
            self.is_broken = True

    def rows(self, result: Any) -> list[Row]:
        """Return the rows of a result."""
        self._loader.set_pgresult(result)
        return self._loader.load_rows(0, result.ntuples, tuple)

    def _send(self, commands: Sequence[Command]) -> list[int | bytes]:
        """Return for each result that will come the number of its command, or the name that is being prepared."""
        pgconn = self._pgconn
        if pgconn.pipeline_status == pq.PipelineStatus.OFF:
            pgconn.enter_pipeline_mode()
        slots: list[int | bytes] = []
        for index, (statement, values, formats) in enumerate(commands):
            if self.is_preparing:
                if statement.name not in self._prepared and statement.name not in slots:
                    pgconn.send_prepare(statement.name, statement.text)
                    slots.append(statement.name)
                pgconn.send_query_prepared(statement.name, values, formats, BINARY)
            else:
                pgconn.send_query_params(statement.text, values, None, formats, BINARY)
            slots.append(index)
        pgconn.pipeline_sync()
        return slots

    def _receive(self, slots: list[int | bytes], deadline: float) -> list[Any]:
        self._flush(deadline)
        while self._left:
            self._next_batch(deadline)
            self._left -= 1
        results: list[Any] = []
        for number, result in enumerate(self._next_batch(deadline)):
            if result.status not in _GOOD:
                raise _refused(result, slots[number:])
            slot = slots[number]
            if isinstance(slot, bytes):
                self._prepared.add(slot)
            else:
                results.append(result)
        return results

    def _next_batch(self, deadline: float) -> list[Any]:
        """Read all results up to the next synchronisation point."""
        pgconn = self._pgconn
        found: list[Any] = []
        while True:
            while pgconn.is_busy():
                self._wait(deadline, sending=False)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == pq.ConnStatus.BAD:
                    raise psycopg.OperationalError(pgconn.get_error_message())
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return found
            found.append(result)
            if result.status == pq.ExecStatus.FATAL_ERROR and _is_fatal(result):
                raise psycopg.OperationalError(_message(result))

    def _flush(self, deadline: float) -> None:
        """Push everything out, and take in what comes meanwhile: the server may have to be listened to first."""
        while self._pgconn.flush():
            if self._wait(deadline, sending=True):
                self._pgconn.consume_input()

    def _wait(self, deadline: float, *, sending: bool) -> bool:
        """Wait until the socket can be read, or written; return whether it can be read.

        A statement that takes too long is cancelled, and then refused by the server; a server that does not even do
        that is not there any more.
        """
        readable, writable = wait_for(self._pgconn.socket, sending, max(deadline - monotonic(), 0))
        if not readable and not writable:
            if self._is_hurried:
                raise psycopg.OperationalError("the server did not answer in time")
            self._cancel()
            readable, writable = wait_for(self._pgconn.socket, sending, CANCEL_SECONDS)
            if not readable and not writable:
                raise psycopg.OperationalError("the server has stopped answering")
        return readable

    def _cancel(self) -> None:
        try:
            self.connection.cancel_safe(timeout=CANCEL_SECONDS)
        except psycopg.Error as problem:
            raise psycopg.OperationalError("the server has stopped answering") from problem

    # ── Between two uses ───────────────────────────────────────────────────────────────────────────────────────────

    def is_sound(self) -> bool:
        """Say whether the connection still stands, as far as that can be told without asking the server."""
        try:
            while self._left:
                self._next_batch(monotonic() + CANCEL_SECONDS)
                self._left -= 1
            # A server that went away has left a last word, or closed its end: both can be read.
            while wait_for(self._pgconn.socket, False, 0)[0]:
                self._pgconn.consume_input()
        except psycopg.Error:
            return False
        is_idle = self._pgconn.transaction_status == pq.TransactionStatus.IDLE
        return self._pgconn.status == pq.ConnStatus.OK and is_idle

    def answers(self) -> bool:
        """Ask the server for a sign of life."""
        self.leave(b"")
        return not self.is_broken and self.is_sound()

    def heard(self) -> list[int]:
        """Return who has rung since this was last asked: the numbers of their backends."""
        found: list[int] = []
        try:
            self._pgconn.consume_input()
            while (note := self._pgconn.notifies()) is not None:
                found.append(note.be_pid)
        except psycopg.Error as problem:
            self.is_broken = True
            raise ConnectionLost(str(problem).strip()) from problem
        return found

    def lend(self) -> psycopg.Connection[Any]:
        """Return the connection as its driver knows it, for statements that are not ours."""
        if self._pgconn.pipeline_status != pq.PipelineStatus.OFF:
            self._pgconn.exit_pipeline_mode()
        return self.connection

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is under way, be it one that has failed."""
        return self._pgconn.transaction_status not in (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN)

    def close(self) -> None:
        """Close the connection."""
        self.is_broken = True
        self.connection.close()


def _refused(result: Any, slots: list[int | bytes]) -> Refused:
    """Tell which command was refused; a preparation belongs to the command behind it, nothing to the commit."""
    sqlstate = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    index = next((slot for slot in slots if isinstance(slot, int)), None)
    return Refused(sqlstate.decode(), _message(result), index)


def _is_fatal(result: Any) -> bool:
    """Say whether the server ended the connection; then it may have committed before."""
    return result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC", None)


def _message(result: Any) -> str:
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
    return primary.decode(errors="replace") if primary else str(result.get_error_message()).strip()


def _poll(socket: int, sending: bool, seconds: float) -> tuple[bool, bool]:
    poll = select.poll()
    poll.register(socket, select.POLLIN | (select.POLLOUT if sending else 0))
    events = poll.poll(seconds * 1000)
    if not events:
        return False, False
    event = events[0][1]
    # An error or a hang-up is read like anything else: that is how it is told apart.
    return bool(event & ~select.POLLOUT), bool(event & select.POLLOUT)


def _select(socket: int, sending: bool, seconds: float) -> tuple[bool, bool]:
    readable, writable, _ = select.select([socket], [socket] if sending else [], [], seconds)
    return bool(readable), bool(writable)


# `select` cannot watch sockets with high numbers, and Windows has no `poll`.
wait_for = _select if sys.platform == "win32" else _poll
