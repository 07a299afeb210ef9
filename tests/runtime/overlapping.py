"""Two transactions that overlap on PostgreSQL: one stops in its middle until the other has run into it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import psycopg

from bide import Bide
from bide.testing.crashing import MortalDatabase
from tests.store.waiting import holds_at_last

PATIENCE = 60


class StoppingDatabase(MortalDatabase):
    """Stops in the middle of a transaction, at a place that was aimed at, until it may go on."""

    def __init__(self, inner: Any, point: str) -> None:
        super().__init__(inner)
        self.aim(point)
        self.point = point
        self.is_there, self.may_go_on = Event(), Event()

    def visit(self, point: str) -> None:
        if point == self.point and not self.is_there.is_set():
            self.is_there.set()
            assert self.may_go_on.wait(PATIENCE), "nobody lets it go on"


def wait_until_blocked(url: str) -> None:
    """Return when a transaction waits for the lock of another."""
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
    with psycopg.connect(url, autocommit=True) as connection:
        is_blocked = holds_at_last(lambda: connection.execute(blocked).fetchone() != (0,), PATIENCE)
    assert is_blocked, "nobody waits for a lock"


def race(url: str, stopped: Bide, point: str, first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """Let the first story stop in a transaction, let the second one run into it, and both come to their end."""
    stopped.store.database = database = StoppingDatabase(stopped.store.database, point)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(first)
        assert database.is_there.wait(PATIENCE), f"never came to {point}"
        other = threads.submit(second)
        try:
            wait_until_blocked(url)
            assert not other.done()
        finally:
            database.may_go_on.set()
        one.result(PATIENCE)
        other.result(PATIENCE)
    stopped.store.database = database.inner
