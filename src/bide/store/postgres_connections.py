"""Connections to PostgreSQL: made when they are needed, kept for the next one, given out one at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock
from time import monotonic
from typing import Any, Protocol
from weakref import finalize

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bide.errors import StoreBusyError, StoreUnavailableError, did_you_mean
from bide.store.postgres_wire import ConnectionLost, Wire

SETTINGS: dict[str, Any] = {
    "connect_timeout": 10,
    # A connection to a machine that vanished is noticed in half a minute, and not after two hours.
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "UTF8",
    "fallback_application_name": "bide",
}


def impatient(seconds: float) -> dict[str, Any]:
    """Return settings of a connection that must not be silent for longer without anybody noticing."""
    whole = max(int(seconds), 1)
    return {
        "connect_timeout": max(whole, 2),
        "keepalives": 1,
        "keepalives_idle": whole,
        "keepalives_interval": max(whole // 3, 1),
        "keepalives_count": 3,
        "tcp_user_timeout": int(seconds * 1000),
    }


TRUSTED_SECONDS = 60.0
"""How long a connection may lie idle before the server is asked whether it still knows it: routers forget, too."""


class Connections(Protocol):
    """Where wires come from."""

    name: str
    """What the database is called in messages, without a password."""

    @contextmanager
    def lend(self, patience: float) -> Iterator[Wire]:
        """Give out a wire for the length of a block; a broken one is not given out again."""
        ...

    def spare(self, patience: float) -> AbstractContextManager[Wire]:
        """Give out a wire that stands already and that nobody uses; ConnectionLost if there is none."""
        ...

    def alone(self, patience: float) -> Wire:
        """Make a wire beside all others, which are perhaps in use; ConnectionLost if there is none to be had."""
        ...

    def drop_alone(self, wire: Wire) -> None:
        """Close a wire that was made by `alone`."""
        ...

    def close(self) -> None:
        """Close what is ours."""
        ...


class OwnConnections:
    """As many connections as are needed at once, up to a limit; the one that was used last is taken first."""

    def __init__(self, conninfo: str, most: int) -> None:
        try:
            given = conninfo_to_dict(conninfo)
        except psycopg.Error as problem:
            # The driver's own words may hold what was given, and with it the password.
            raise StoreUnavailableError(
                f"The URL of the store is no URL that PostgreSQL understands.{_unknown_word(str(problem), conninfo)} "
                f"Write it as postgresql://user:password@host:5432/database, with special characters in the password "
                f"as %XX."
            ) from (None if "password" in str(problem) or "@" in conninfo else problem)
        self.name = _name_of(given)
        self._conninfo = make_conninfo(**{**SETTINGS, **given})
        self._most = most
        self._idle: list[Wire] = []
        self._alone: list[Wire] = []
        self._count = 0
        self._is_closed = False
        self._changed = Condition()
        # A store that nobody closes is closed when it is collected, or when the process ends.
        self._forgotten = finalize(self, _close_forgotten, (self._idle, self._alone), os.getpid())

    def alone(self, patience: float) -> Wire:
        """Make a wire beside all others."""
        conninfo = make_conninfo(self._conninfo, **impatient(patience))
        try:
            wire = Wire(psycopg.connect(conninfo, autocommit=True, prepare_threshold=None))
        except psycopg.Error as problem:
            raise ConnectionLost(str(problem)) from problem
        self._alone.append(wire)
        return wire

    def drop_alone(self, wire: Wire) -> None:
        """Close a wire that was made by `alone`."""
        wire.close()
        if wire in self._alone:
            self._alone.remove(wire)

    @contextmanager
    def lend(self, patience: float) -> Iterator[Wire]:
        """Give out a wire for the length of a block."""
        with self._in_use(self._take(monotonic() + patience, patience)) as wire:
            yield wire

    @contextmanager
    def spare(self, patience: float) -> Iterator[Wire]:
        """Give out a wire that stands already; whether it is sound shows when it is used."""
        with self._changed:
            if not self._idle:
                raise ConnectionLost("no connection is free")
            wire = self._idle.pop()
        with self._in_use(wire):
            yield wire

    @contextmanager
    def _in_use(self, wire: Wire) -> Iterator[Wire]:
        try:
            yield wire
        except BaseException:
            # Whoever was interrupted in the middle of a transaction leaves it in the middle.
            wire.is_broken = wire.is_broken or wire.is_in_transaction
            raise
        finally:
            self._give_back(wire)

    def _take(self, deadline: float, patience: float) -> Wire:
        while True:
            wire = self._idle_or_place(deadline, patience)
            if wire is None:
                return self._connect()
            if wire.is_sound() and (monotonic() - wire.used_at < TRUSTED_SECONDS or wire.answers()):
                return wire
            self._drop(wire)

    def _idle_or_place(self, deadline: float, patience: float) -> Wire | None:
        """Return a wire that nobody uses, or None when one more may be made; wait until there is either."""
        with self._changed:
            while not self._idle and self._count >= self._most:
                if not self._changed.wait(deadline - monotonic()):
                    raise StoreBusyError(
                        f"All {self._most} connections of this store to {self.name} were in use for {patience:.0f} "
                        f"seconds. Nothing was written. Open the store with more of them (most_connections=…), or do "
                        f"less in step(effect='tx'), which holds one while it runs."
                    )
            if self._idle:
                return self._idle.pop()
            self._count += 1
            return None

    def _connect(self) -> Wire:
        try:
            # Statements of `step(effect="tx")` are not prepared: behind a pooler they would not be found again.
            return Wire(psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None))
        except BaseException as problem:
            self._leave_place()
            if isinstance(problem, psycopg.Error):
                raise ConnectionLost(str(problem)) from problem
            raise

    def _give_back(self, wire: Wire) -> None:
        with self._changed:
            if not wire.is_broken and not self._is_closed:
                self._idle.append(wire)
                self._changed.notify()
                return
        self._drop(wire)

    def _drop(self, wire: Wire) -> None:
        wire.close()
        self._leave_place()

    def _leave_place(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def close(self) -> None:
        """Close the idle ones now, and those in use when they come back."""
        with self._changed:
            self._is_closed = True
            idle = self._idle[:]
            self._idle.clear()
        for wire in idle:
            self._drop(wire)


class BorrowedPool:
    """The connections of a pool that is not ours, and is not closed by us."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._wires: dict[Any, Wire] = {}
        self._lock = Lock()
        kwargs = pool.kwargs if isinstance(pool.kwargs, dict) else {}
        conninfo = pool.conninfo if isinstance(pool.conninfo, str) else ""
        self.name = _name_of(conninfo_to_dict(make_conninfo(conninfo, **_known(kwargs))))

    @contextmanager
    def lend(self, patience: float) -> Iterator[Wire]:
        """Borrow a connection for the length of a block, and give it back as it was."""
        connection = self._take(patience)
        try:
            with self._at_work(connection) as wire:
                yield wire
        finally:
            self._pool.putconn(connection)

    @contextmanager
    def _at_work(self, connection: Any) -> Iterator[Wire]:
        """Set a connection up for us, and then as it was; a broken one is closed."""
        wire = self._wire_of(connection)
        was_autocommit = connection.autocommit
        try:
            if not was_autocommit:
                connection.autocommit = True
            yield wire
        except BaseException:
            wire.is_broken = wire.is_broken or wire.is_in_transaction
            raise
        finally:
            if wire.is_broken or not wire.is_sound():
                connection.close()
            else:
                wire.lend().autocommit = was_autocommit

    def _wire_of(self, connection: Any) -> Wire:
        """Return the wire that was made for a connection: it knows what is prepared there."""
        with self._lock:
            wire = self._wires.get(connection)
            if wire is None:
                # The pool may have put others in the place of those that were closed.
                self._wires = {known: wire for known, wire in self._wires.items() if not known.closed}
                wire = self._wires[connection] = Wire(connection)
            return wire

    def spare(self, patience: float) -> AbstractContextManager[Wire]:
        """Borrow a connection: how many stand is the pool's own affair."""
        return self.lend(patience)

    def alone(self, patience: float) -> Wire:
        """Make a wire beside the pool, in the way in which it makes its own."""
        conninfo, kwargs = _value(self._pool.conninfo), _value(self._pool.kwargs) or {}
        given = {**kwargs, **impatient(patience), "autocommit": True}
        try:
            return Wire(self._pool.connection_class.connect(conninfo, **given))
        except psycopg.Error as problem:
            raise ConnectionLost(str(problem)) from problem

    def drop_alone(self, wire: Wire) -> None:
        """Close a wire that was made by `alone`."""
        wire.close()

    def _take(self, patience: float) -> Any:
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            for _ in range(self._pool.max_size + 1):
                connection = self._pool.getconn(timeout=patience)
                wire = self._wires.get(connection)
                if wire is not None and not wire.is_sound():
                    connection.close()
                    self._pool.putconn(connection)
                    continue
                return connection
        except PoolTimeout as problem:
            raise StoreBusyError(
                f"The pool that was given for {self.name} had no connection for {patience:.0f} seconds: all are in "
                f"use, or the server cannot be reached. Nothing was written. Give it a larger max_size."
            ) from problem
        except PoolClosed as problem:
            raise StoreUnavailableError(
                f"The pool that was given for {self.name} is not open. Open it first (pool.open()), and close it after "
                f"the store."
            ) from problem
        raise ConnectionLost("every connection of the pool is broken")

    def close(self) -> None:
        """Leave the pool to whoever made it."""
        with self._lock:
            self._wires.clear()


def _close_forgotten(forgotten: tuple[list[Wire], ...], process: int) -> None:
    """Close what nobody closed; not in a forked child, whose connections are its parent's."""
    if process == os.getpid():
        for wires in forgotten:
            for wire in wires:
                wire.close()


def _name_of(given: dict[str, Any]) -> str:
    """Return what the database is called in messages: no password, and nothing else that is secret."""
    user, host, port = given.get("user"), given.get("host") or given.get("hostaddr"), given.get("port")
    place = f"{user}@" if user else ""
    # A folder is where the server's socket is.
    place += "" if not host or str(host).startswith("/") else str(host)
    place += f":{port}" if port else ""
    return f"postgresql://{place}/{given.get('dbname') or user or ''}"


def _unknown_word(problem: str, conninfo: str) -> str:
    """Say which setting is unknown, with a space before it, unless it may be a piece of a password; else ""."""
    found = re.search(r'invalid (?:connection option|URI query parameter:?) "(\w+)"', problem)
    if found is None:
        return ""
    before, _, after = conninfo.rpartition(found[1])
    if "@" in after or "password" in before.lower():
        return ""
    known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()]
    return f" It knows no setting {found[1]!r}.{did_you_mean(found[1], known)}"


def _value(given: Any) -> Any:
    """Return what a pool was given, or what the function returns that it was given."""
    return given() if callable(given) else given


def _known(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return what of a pool's arguments names the server."""
    return {name: kwargs[name] for name in ("user", "host", "hostaddr", "port", "dbname") if name in kwargs}
