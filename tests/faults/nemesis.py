"""Somebody who ends all connections to a database, again and again, while others work."""

from __future__ import annotations

from threading import Event, Thread
from typing import Self

import psycopg

from tests.faults.server import terminate_all

SECONDS = 60


class Nemesis:
    """Terminates every backend of a database so many times a second, in a thread of its own."""

    def __init__(self, dsn: str, times_a_second: float) -> None:
        self.rounds = 0
        self.terminated = 0
        self.has_done_enough = Event()
        self._dsn = dsn
        self._pause = 1 / times_a_second
        self._enough = 0
        self._stop = Event()
        self._thread = Thread(target=self._rage, name="nemesis", daemon=True)

    def rage(self, rounds: int) -> Self:
        """Begin, and say `has_done_enough` after so many rounds that hit somebody."""
        self._enough = rounds
        return self

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(SECONDS)

    def _rage(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.wait(self._pause):
                hit = terminate_all(connection)
                self.terminated += hit
                self.rounds += hit > 0
                if self.rounds >= self._enough:
                    self.has_done_enough.set()
