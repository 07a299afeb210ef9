"""What somebody at a terminal asks a store: ids by their beginning, who works, what is late, its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bide.clock import Instant, SystemClock
from bide.store.database import Transaction
from bide.store.sqlite import SqliteDatabase
from bide.store.workers import is_gone

if TYPE_CHECKING:
    from bide.store.store import Store

SHORTEST_PREFIX = 4
_BEYOND_HEX = "g"


class WorkerView(NamedTuple):
    """A process that drives runs, or did."""

    worker_id: str
    host: str
    pid: int
    lease_until: Instant
    is_alive: bool
    holds: int
    """How many runs it is driving."""


def waits_beginning(store: Store, prefix: str, most: int = 10) -> list[str]:
    """Find waits, open or settled, by how their ids begin; nothing for what is too short to mean one."""
    if len(prefix) < SHORTEST_PREFIX or set(prefix) - set("0123456789abcdef"):
        return []
    params = {"first": prefix, "beyond": prefix + _BEYOND_HEX, "most": most}
    return [row[0] for row in store.database.read(lambda tx: tx.all("find_waits_by_prefix", params))]


def threads_beginning(store: Store, prefix: str, most: int = 10) -> list[str]:
    """Find threads by how their ids begin, newest first."""
    params = {"prefix": prefix, "length": len(prefix), "most": most}
    return [row[0] for row in store.database.read(lambda tx: tx.all("find_threads_by_prefix", params))]


def overdue(store: Store, by: int, most: int = 100) -> list[str]:
    """List waits whose deadline was so many milliseconds ago, or longer, and that nobody has settled."""
    params = {"now": store.clock.now() - by, "most": most}
    return [row[0] for row in store.database.read(lambda tx: tx.all("list_due_waits", params))]


def workers(store: Store) -> list[WorkerView]:
    """List who drives runs, and who did and still holds some."""
    now = store.clock.now()

    def read(tx: Transaction) -> list[WorkerView]:
        known = {row[0]: row[1:] for row in tx.all("list_workers", {})}
        lost: dict[str, tuple[str, int, str, int]] = {row[0]: ("", 0, "", 0) for row in tx.all("list_holders", {})}
        found = []
        for worker_id, (host, pid, started, until) in {**lost, **known}.items():
            held = len(tx.all("read_driven", {"worker_id": worker_id}))
            is_alive = bool(host) and not is_gone(host, pid, started, until, now)
            found.append(WorkerView(worker_id, str(host).partition("|")[0], pid, until, is_alive, held))
        return found

    return store.database.read(read)


def clock_skew(store: Store) -> int:
    """Return by how many milliseconds the clock of this machine is ahead of the store's."""
    return SystemClock().now() - store.clock.now()


def settings(store: Store) -> dict[str, str]:
    """Read which database this is, and the settings on which its promises rest."""
    return store.database.read(_of_sqlite if isinstance(store.database, SqliteDatabase) else _of_postgres)


def _of_sqlite(tx: Transaction) -> dict[str, str]:
    import sqlite3

    found = {"engine": "SQLite", "version": sqlite3.sqlite_version}
    for name in ("journal_mode", "synchronous", "page_size"):
        found[name] = str(tx.connection.execute(f"PRAGMA {name}").fetchone()[0])
    found["synchronous"] = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}.get(
        found["synchronous"], found["synchronous"]
    )
    return found


def _of_postgres(tx: Transaction) -> dict[str, str]:
    found = {"engine": "PostgreSQL"}
    names = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "max_connections", "server_encoding")
    for name in names:
        found[name.removeprefix("server_")] = str(tx.connection.execute(f"SHOW {name}").fetchone()[0])
    return found
