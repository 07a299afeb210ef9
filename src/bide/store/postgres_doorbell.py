"""A doorbell over LISTEN and NOTIFY: one thread and one connection, for as long as somebody rings or waits."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

from bide.clock import elapsed
from bide.errors import BideError
from bide.store.database import Row, queries
from bide.store.doorbell import InnerDoorbell
from bide.store.postgres_connections import Connections
from bide.store.postgres_sql import statement_of
from bide.store.postgres_wire import Command, ConnectionLost, Refused, Wire

LEAST_BETWEEN = 0.01
"""Seconds between two rings that are sent on: what comes in between is one ring."""
PATIENCE = 5.0
SILENCE = 30.0
"""Seconds after which the server is asked whether it still hears us: routers forget, too."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
LAST_PATIENCE = 2.0


class PostgresDoorbell(InnerDoorbell):
    """Rings for every process that has this schema open.

    A pooler in between hands each transaction to another connection of the server: what is listened for there would be
    heard by anybody. So behind one nothing is listened for, and whoever waits looks by itself; rings are still sent.
    """

    def __init__(self, connections: Connections, schema: str | None) -> None:
        super().__init__()
        self._connections = connections
        self._channel = f"bide_{blake2b((schema or '').encode(), digest_size=8).hexdigest()}"
        self._process = os.getpid()
        self._has_to_ring = False
        self._has_to_listen = False
        self._next_ring_at = 0.0
        self._nudged, self._nudge = socket.socketpair()
        self._nudged.setblocking(False)
        self._nudge.setblocking(False)
        self._closing = Event()
        self._thread: Thread | None = None

    def ring(self) -> None:
        """Wake all who wait here, and let the thread tell the others."""
        if self._process != os.getpid():
            return
        self._sound()
        if not self._has_to_ring:
            self._has_to_ring = True
            self._call_thread()

    def wait(self, seconds: float, after: int | None = None) -> bool:
        """Wait for a ring; the first to do so has the thread listen."""
        if not self._has_to_listen:
            self._has_to_listen = True
            self._call_thread()
        return super().wait(seconds, after)

    def close(self) -> None:
        """Send on what was rung, wake all who wait here, and let go of the connection."""
        super().close()
        self._closing.set()
        with self._changed:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._wake_thread()
            thread.join(LAST_PATIENCE)
        if thread is None or not thread.is_alive():
            self._nudge.close()
            self._nudged.close()

    def _call_thread(self) -> None:
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._serve, name="bide-doorbell", daemon=True)
                self._thread.start()
        self._wake_thread()

    def _wake_thread(self) -> None:
        # If it is full, the thread will be woken in any case.
        with suppress(OSError):
            self._nudge.send(b".")

    # ── In the thread ──────────────────────────────────────────────────────────────────────────────────────────────

    def _serve(self) -> None:
        pause = FIRST_PAUSE
        while not self._closing.is_set() or self._has_to_ring:
            try:
                with _Attendance(self._connections, self._nudged) as attendance:
                    pause = FIRST_PAUSE
                    self._attend(attendance)
            except (ConnectionLost, Refused, BideError, OSError):
                # A ring that was not sent on, or not heard, costs whoever waits the time until its next look.
                self._has_to_ring = False
                if self._closing.wait(pause):
                    return
                pause = min(pause * 2, LONGEST_PAUSE)

    def _attend(self, attendance: _Attendance) -> None:
        """Ring and listen until the bell is closed, or the connection breaks."""
        is_listening = False
        while True:
            if self._has_to_ring and elapsed() >= self._next_ring_at:
                self._has_to_ring = False
                self._next_ring_at = elapsed() + LEAST_BETWEEN
                attendance.ring(self._channel)
            if self._closing.is_set() and not self._has_to_ring:
                return
            if self._has_to_listen and not is_listening:
                is_listening = True
                attendance.listen(self._channel)
                # Somebody may have rung while nobody listened.
                self._sound()
            longest = self._next_ring_at - elapsed() if self._has_to_ring else SILENCE
            if attendance.hears_others(longest):
                self._sound()


class _Attendance:
    """One connection, and whatever there is to hear on it."""

    def __init__(self, connections: Connections, nudged: socket.socket) -> None:
        self._connections = connections
        self._nudged = nudged
        self._wire: Wire = connections.alone(PATIENCE)
        self._wire.is_preparing = False
        self._mine = self._wire.connection.pgconn.backend_pid
        self._selector = selectors.DefaultSelector()
        self._selector.register(nudged, selectors.EVENT_READ)
        self._selector.register(self._wire.connection.fileno(), selectors.EVENT_READ)

    def __enter__(self) -> _Attendance:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        self._connections.drop_alone(self._wire)

    def ring(self, channel: str) -> None:
        """Ring; a server that has no such thing refuses, and then nobody hears."""
        with suppress(Refused):
            self._run(queries("postgres")["ring"], {"channel": channel})

    def listen(self, channel: str) -> None:
        """Listen, unless there is a pooler: those make up a number for the process that serves a connection."""
        with suppress(Refused):
            (row,) = self._run(queries("postgres")["read_backend"])
            if row[0] == self._mine:
                self._run(queries("postgres")["listen"].replace(":channel", channel))

    def _run(self, sql: str, params: Mapping[str, Any] = MappingProxyType({})) -> Sequence[Row]:
        """Run one statement by itself, and return its rows."""
        statement = statement_of(sql)
        (result,) = self._wire.exchange([Command(statement, *statement.bind(params))], PATIENCE, is_hurried=True)
        return self._wire.rows(result)

    def hears_others(self, seconds: float) -> bool:
        """Wait until there is something to do, or a ring of somebody else is heard; return whether one is."""
        # What came in together with the answer to a statement makes the socket readable no more.
        if self._is_rung():
            return True
        if not self._selector.select(max(seconds, 0)) and seconds >= SILENCE:
            self._run(queries("postgres")["read_backend"])
        with suppress(BlockingIOError):
            while self._nudged.recv(4096):
                continue
        return self._is_rung()

    def _is_rung(self) -> bool:
        return any(backend != self._mine for backend in self._wire.heard())
