"""PostgreSQL: one round trip for each write, and an answer also when the connection dies in the middle of a commit."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, local
from time import monotonic
from typing import Any, TypeVar

import psycopg

from bide.clock import elapsed
from bide.errors import BideError, StoreError
from bide.failpoints import ON as FAILPOINTS_ON
from bide.failpoints import failpoint
from bide.store.database import Transaction
from bide.store.postgres_clock import PostgresClock, Reading
from bide.store.postgres_connections import BorrowedPool, Connections, OwnConnections
from bide.store.postgres_doorbell import PostgresDoorbell
from bide.store.postgres_errors import (
    NOT_PREPARED,
    explain,
    explain_connecting,
    explain_doubt,
    is_hopeless,
    is_passing,
    is_read_only,
)
from bide.store.postgres_lifeline import PostgresLifeline
from bide.store.postgres_outcomes import Slot, new_slots
from bide.store.postgres_schema import PostgresSchema
from bide.store.postgres_sql import Statements
from bide.store.postgres_transaction import PostgresTransaction, Unmet
from bide.store.postgres_wire import Command, ConnectionLost, Refused, Wire

T = TypeVar("T")

MOST_CONNECTIONS = 10
PATIENCE = 60.0
"""Seconds for which a server that restarts, or a lock that another transaction holds, is waited for."""
LAST_PATIENCE = 2.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 2.0

logger = logging.getLogger("bide.store")


class PostgresDatabase(PostgresSchema):
    """One PostgreSQL database, or one schema in it, shared by any number of processes.

    Connections are made when they are needed, and none is held while a node runs. Everything that a write does is sent
    at once, in one transaction. When the connection breaks, the write is looked for, and done again if it is not there.
    """

    blocking = True

    def __init__(
        self,
        source: Any,
        *,
        schema: str | None = None,
        most_connections: int = MOST_CONNECTIONS,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(Statements(schema))
        self._connections: Connections = (
            OwnConnections(source, most_connections) if isinstance(source, str) else BorrowedPool(source)
        )
        self.path = self._connections.name + (f" (schema {schema})" if schema else "")
        self._patience = patience
        self._slots = new_slots()
        self._clock: PostgresClock | None = None
        self._is_preparing = True
        self._was_reached = False
        self._has_tidied = False
        self._process = os.getpid()
        self._closed = Event()
        self._here = local()

    # ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction; when this returns, it is durable."""
        return self._try(lambda wire: self._write_once(wire, name, work))

    def write_alone(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work`, which is not ours, in a transaction; every transaction here has a connection to itself."""
        return self.write(name, work)

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        """Run one statement, which is a transaction by itself; return how many rows it changed."""
        statement = self.statements.plain(query)
        command = Command(statement, *statement.bind(params))
        tries = 0

        def once(wire: Wire) -> int:
            nonlocal tries
            tries += 1
            if FAILPOINTS_ON:
                failpoint(f"{name}:begun")
            try:
                count = int(wire.exchange([command], self._patience)[0].command_tuples or 0)
            except ConnectionLost as problem:
                raise Unsure(str(problem)) from problem
            if FAILPOINTS_ON:
                failpoint(f"{name}:committed")
            if count == 0 and tries > 1 and self._transaction(wire, name, "").one(proof, params) is not None:
                # It was applied the first time, and only the reply was lost.
                return 1
            return count

        return self._try(once)

    def _write_once(self, wire: Wire, name: str, work: Callable[[Transaction], T]) -> T:
        slot = self._slots.take()
        tx = self._transaction(wire, name)
        tx.expect("note_outcome", {"slot": slot.name, "token": slot.token}, _too_late)
        if not self._has_tidied:
            self._has_tidied = True
            tx.send("forget_outcomes", {})
        try:
            if FAILPOINTS_ON:
                failpoint(f"{name}:begun")
            value = work(tx)
            _commit(tx, slot, value)
        except Doubt:
            # The slot is not used again: it is closed by whoever asks how this ended.
            raise
        except Unmet as problem:
            self._take_back(tx, wire, slot)
            raise problem.otherwise(self._transaction(wire, name, "")) from None
        except BaseException:
            self._take_back(tx, wire, slot)
            raise
        self._slots.give_back(slot)
        return value

    def _take_back(self, tx: PostgresTransaction, wire: Wire, slot: Slot) -> None:
        tx.take_back()
        if not wire.is_broken:
            # Else the server may hold the slot for a while, before it knows that we are gone.
            self._slots.give_back(slot)

    def _was_applied(self, slot: Slot) -> bool:
        """Find out whether the last write of a slot was applied, and see to it that it is not applied later."""
        try:
            token = self._try(lambda wire: self._transaction(wire, "ask", "").one("close_slot", {"slot": slot.name}))
        except StoreError as problem:
            raise explain_doubt(self.path, self._patience) from problem
        return token is not None and token[0] == slot.token

    def _transaction(self, wire: Wire, name: str, begin: str = "begin") -> PostgresTransaction:
        return PostgresTransaction(wire, self.statements, name, self._patience, begin)

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot."""
        return self._try(lambda wire: self._read_once(wire, work))

    def _read_once(self, wire: Wire, work: Callable[[Transaction], T]) -> T:
        tx = self._transaction(wire, "read", "begin_snapshot")
        try:
            value = work(tx)
        except BaseException:
            tx.take_back()
            raise
        tx.end_reading(wait=FAILPOINTS_ON)
        return value

    # ── Between processes ──────────────────────────────────────────────────────────────────────────────────────────

    def clock(self) -> PostgresClock:
        """Return the clock of the server."""
        if self._clock is None:
            self._clock = PostgresClock(lambda: self._try(self._read_clock))
        return self._clock

    def _read_clock(self, wire: Wire) -> Reading:
        statement = self.statements.plain("read_clock")
        sent_at = elapsed()
        (told,) = wire.exchange([Command(statement, *statement.bind({}))], self._patience)
        return Reading(sent_at, wire.rows(told)[0][0], elapsed())

    def lifeline(self, lease: float) -> PostgresLifeline:
        """Return a way to renew a lease that has a connection to itself."""
        return PostgresLifeline(self._connections, self.statements, lease, lambda: self._clock)

    def doorbell(self) -> PostgresDoorbell:
        """Return a bell that every process hears which has this schema open."""
        return PostgresDoorbell(self._connections, self.statements.schema)

    # ── Trying again ───────────────────────────────────────────────────────────────────────────────────────────────

    def _try(self, once: Callable[[Wire], T]) -> T:
        """Do something on a connection, again and again while what goes wrong may pass."""
        course = _Course(self._patience)
        while True:
            try:
                return self._do(once)
            except Doubt as problem:
                if self._was_applied(problem.slot):
                    value: T = problem.value
                    return value
                # The server has just answered, however long the broken connection was silent before.
                if not course.allows_a_last_try():
                    raise explain_connecting(problem.__cause__, self.path) from problem
            except Refused as problem:
                self._consider(problem, course)
            except ConnectionLost as problem:
                course.is_unsure = course.is_unsure or isinstance(problem, Unsure)
                is_hopeful = self._is_worth_waiting_for(problem) and course.allows_another_try()
                if not is_hopeful and not (course.is_unsure and course.allows_a_last_try()):
                    raise self._explain_lost(problem, course) from problem
            self._closed.wait(course.next_pause())

    def _explain_lost(self, problem: ConnectionLost, course: _Course) -> BideError:
        if course.is_unsure:
            return explain_doubt(self.path, self._patience)
        return explain_connecting(problem, self.path)

    def _do(self, once: Callable[[Wire], T]) -> T:
        with self._inside(), self._connections.lend(self._patience) as wire:
            self._was_reached = True
            wire.is_preparing = self._is_preparing
            try:
                value = once(wire)
            except psycopg.Error as problem:
                # It comes from a statement that was not sent by the wire: a script, or step(effect="tx").
                if wire.connection.closed:
                    wire.is_broken = True
                    raise ConnectionLost(str(problem)) from problem
                raise Refused(problem.sqlstate or "", str(problem), None) from problem
        return value

    def _consider(self, problem: Refused, course: _Course) -> None:
        """Raise, unless what the server refused may be accepted next time."""
        if problem.sqlstate in NOT_PREPARED:
            # A pooler is in between, and each transaction may be on another server: nothing is prepared any more.
            self._is_preparing = False
        elif not is_passing(problem.sqlstate) or (is_read_only(problem.sqlstate) and not self._is_opened):
            course.deadline = 0
        if not course.allows_another_try():
            if course.is_unsure:
                raise explain_doubt(self.path, self._patience) from problem
            raise explain(problem.sqlstate, problem, self.path, self._patience) from problem

    def _is_worth_waiting_for(self, problem: ConnectionLost) -> bool:
        """Say whether a server that cannot be reached may come back: it has been there, or says that it is coming."""
        return not is_hopeless(problem) and (self._was_reached or "starting up" in str(problem))

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self.check_present()
        if getattr(self._here, "is_inside", False):
            raise StoreError(
                "The store was used inside one of its own transactions, and might wait for itself. In "
                "step(effect='tx') use the connection that is given to the function, and nothing else of the store."
            )
        self._here.is_inside = True
        try:
            yield
        finally:
            self._here.is_inside = False

    # ── Closing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_present(self) -> None:
        """Refuse to go on with a store that was closed, or is another process's."""
        if self._closed.is_set():
            raise StoreError(f"The store {self.path} has been closed. Open it again: Store.open(…).")
        if self._process != os.getpid():
            raise StoreError(
                f"The store {self.path} was opened before this process was forked. A database connection cannot be "
                f"shared with a child; open the store in the child: Store.open(…)."
            )

    def stop_waiting(self) -> None:
        """Give a server that is gone no more than a moment: whoever closes a store wants to leave."""
        self._patience = min(self._patience, LAST_PATIENCE)

    def close(self) -> None:
        """Let go of the database; a pool that was given stays open."""
        self._closed.set()
        self._connections.close()


class _Course:
    """How long something is tried, and what is known by now."""

    def __init__(self, patience: float) -> None:
        self.deadline = monotonic() + patience
        self.is_unsure = False
        """Whether a statement was sent by itself of which nobody knows whether it was done."""
        self._pause = FIRST_PAUSE
        self._is_last = False

    def allows_another_try(self) -> bool:
        return monotonic() <= self.deadline

    def allows_a_last_try(self) -> bool:
        """Allow one try beyond the deadline: a connection that only fell silent has used up all of the time."""
        if monotonic() <= self.deadline:
            return True
        was_last, self._is_last = self._is_last, True
        return not was_last

    def next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.5)


class Unsure(ConnectionLost):
    """The connection broke while the server may have done a statement that is a transaction by itself."""


class Doubt(Exception):
    """The connection broke while the server may have been committing."""

    def __init__(self, slot: Slot, value: Any) -> None:
        super().__init__()
        self.slot = slot
        self.value = value


def _commit(tx: PostgresTransaction, slot: Slot, value: object) -> None:
    try:
        tx.commit()
    except ConnectionLost as problem:
        raise Doubt(slot, value) from problem


def _too_late(_: Transaction) -> Exception:
    return ConnectionLost("the write came too late")
