"""`store.stats()`: how much of what there is, read in one snapshot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bide.clock import Instant, iso
from bide.store.database import Database, Row, Transaction, queries
from bide.store.sqlite import SqliteDatabase
from bide.store.workers import is_gone

if TYPE_CHECKING:
    from bide.store.store import Store


SOON = 3_600_000
"""An hour, in milliseconds."""


@dataclass(frozen=True)
class StoreStats:
    """What a store holds. `str()` shows it, `as_dict()` gives it to programs."""

    database: str
    schema_version: int
    threads: int
    threads_by_status: Mapping[str, int]
    """By the status of their live run, or else of the latest: waiting, running, done, …; `new` has never run."""
    open_waits: int
    oldest_open_wait: Instant | None
    """Since when the one waits that waits longest."""
    open_waits_by_kind: Mapping[str, int]
    """What they wait for: `question`, `breakpoint`, or the kinds of their conditions; one that waits for several things
    counts for each."""
    due_soon: int
    """What the clock brings within an hour, or should have: instants, deadlines, reminders, delayed runs, schedules."""
    queued_runs: int
    """Runs that stand behind another one of their thread, or are not due yet."""
    runs: int
    checkpoints: int
    events: int
    journal_lines: int
    deliveries: int
    deliveries_pending: int
    """Stored, and not yet brought to everybody who waits for them."""
    deliveries_unmatched: int
    """For whom nobody waited, so far."""
    schedules: int
    schedules_paused: int
    items: int
    cached_results: int
    blobs: int
    blob_bytes: int
    """Of the large values alone, before they are sealed."""
    langgraph_checkpoints: int
    """Of graphs that stay LangGraph's, and use a `BideSaver`."""
    workers: int
    workers_alive: int
    bytes_total: int
    """What the tables and their indexes take in the database."""
    bytes_free: int
    """What of this is free, and filled again before the database grows. PostgreSQL does not tell it cheaply: 0."""
    bytes_log: int
    """SQLite's write-ahead log; PostgreSQL's belongs to the server: 0."""

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """Show it as a table."""
        statuses = _each(self.threads_by_status)
        since = "" if self.oldest_open_wait is None else f" (the oldest since {iso(self.oldest_open_wait)})"
        lines = [
            ("database", f"{self.database}, schema {self.schema_version}"),
            ("size", f"{_bytes(self.bytes_total)} ({_bytes(self.bytes_free)} free, log {_bytes(self.bytes_log)})"),
            ("threads", f"{self.threads}{f' ({statuses})' if statuses else ''}"),
            ("open waits", f"{self.open_waits}{since}"),
            ("waiting for", _each(self.open_waits_by_kind) or "nothing"),
            ("due within an hour", str(self.due_soon)),
            ("runs", f"{self.runs} ({self.queued_runs} queued)"),
            ("checkpoints", str(self.checkpoints)),
            ("events", str(self.events)),
            ("journal lines", str(self.journal_lines)),
            (
                "deliveries",
                f"{self.deliveries} ({self.deliveries_pending} pending, {self.deliveries_unmatched} unmatched)",
            ),
            ("schedules", f"{self.schedules} ({self.schedules_paused} paused)"),
            ("items", str(self.items)),
            ("cached results", str(self.cached_results)),
            ("blobs", f"{self.blobs} ({_bytes(self.blob_bytes)})"),
            ("LangGraph checkpoints", str(self.langgraph_checkpoints)),
            ("workers", f"{self.workers} ({self.workers_alive} alive)"),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def read_stats(store: Store) -> StoreStats:
    """Count, in one snapshot."""
    now = store.clock.now()
    return store.database.read(lambda tx: _counted(tx, store.database, store.version, now))


def _counted(tx: Transaction, database: Database, version: int, now: Instant) -> StoreStats:
    total, free, log = _sizes(tx, database)
    asked = [tx.ask(query, {}) for query in ("count_rows", "count_open_waits", "count_blobs", "list_workers")]
    queue = tx.ask("count_queue", {})
    due = tx.ask("count_due", {"until": now + SOON})
    statuses = tx.all("count_threads", {})
    (counts,), (waits,), (blobs,), workers = (answer() for answer in asked)
    queued, pending, unmatched, schedules, paused = queue()[0]
    runs, checkpoints, events, journal, items, cached, deliveries, saver, threads = counts
    return StoreStats(
        database=database.path,
        schema_version=version,
        threads=threads,
        threads_by_status={str(status): int(count) for status, count in statuses},
        open_waits=waits[0],
        oldest_open_wait=waits[1],
        open_waits_by_kind=_kinds(tx),
        due_soon=due()[0][0],
        queued_runs=queued,
        runs=runs,
        checkpoints=checkpoints,
        events=events,
        journal_lines=journal,
        deliveries=deliveries,
        deliveries_pending=pending,
        deliveries_unmatched=unmatched,
        schedules=schedules,
        schedules_paused=paused,
        items=items,
        cached_results=cached,
        blobs=blobs[0],
        blob_bytes=int(blobs[1]),
        langgraph_checkpoints=saver,
        workers=len(workers),
        workers_alive=sum(not _is_gone(worker, now) for worker in workers),
        bytes_total=total,
        bytes_free=free,
        bytes_log=log,
    )


def _kinds(tx: Transaction) -> dict[str, int]:
    """Count what is waited for."""
    ((questions, breakpoints),) = tx.all("count_plain_waits", {})
    kinds = {"question": int(questions or 0), "breakpoint": int(breakpoints or 0)}
    kinds |= {str(kind): int(count) for kind, count in tx.all("count_open_leaves", {})}
    return {kind: count for kind, count in kinds.items() if count}


def _each(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _is_gone(worker: Row, now: Instant) -> bool:
    _, host, pid, started, lease_until = worker
    return is_gone(host, pid, started, lease_until, now)


def _sizes(tx: Transaction, database: Database) -> tuple[int, int, int]:
    """Return how many bytes there are in the database, free in it, and in its log."""
    if isinstance(database, SqliteDatabase):
        total, free = tx.connection.execute(queries("sqlite")["size_of_file"]).fetchone()
        try:
            return total, free, os.stat(database.path + "-wal").st_size if database.blocking else 0
        except OSError:
            return total, free, 0  # closed by its last user, the log is gone
    from bide.store.postgres_schema import PostgresSchema
    from bide.store.postgres_sql import our_tables

    assert isinstance(database, PostgresSchema)
    tables = ",".join(database.statements.qualified(table) for table in our_tables())
    row = tx.one("size_of_tables", {"tables": tables})
    assert row is not None
    return int(row[0]), 0, 0


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
