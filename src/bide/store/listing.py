"""Threads as they are listed and shown: each with its live run, or else its newest."""

from __future__ import annotations

from typing import NamedTuple

from bide.clock import Instant
from bide.store.database import Transaction
from bide.store.facts import read_run_row, read_wait_row
from bide.store.queue_rows import RunView, WaitView
from bide.store.store import Store
from bide.types import RunStatus

AFTER_ALL = 1 << 62
FEW = (
    RunStatus.QUEUED,
    RunStatus.READY,
    RunStatus.RUNNING,
    RunStatus.BLOCKED,
    RunStatus.DEAD,
    RunStatus.FAILED,
)
"""Statuses that few runs have at a time, each with an index of its own. Most threads have one of the others: these are
looked for among all, newest first."""
WINDOW = 5000
"""So many threads are read at once, at most, when one of those is looked for."""


class ListedThread(NamedTuple):
    """A line of the list."""

    thread_id: str
    owner: str
    graph: str
    parent: str | None
    created_at: Instant
    run_id: str | None
    status: str | None
    updated_at: Instant | None
    error: str | None


class ShownThread(NamedTuple):
    """A thread with its run and its open waits, from one snapshot."""

    thread_id: str
    graph: str
    parent: str | None
    created_at: Instant
    run: RunView | None
    waits: tuple[WaitView, ...]


class Filter(NamedTuple):
    """Which threads are listed."""

    status: RunStatus | None = None
    graph: str | None = None
    owner: str | None = None
    parent: str | None = None


def list_rows(
    store: Store, chosen: Filter, after: tuple[Instant, str] = (AFTER_ALL, ""), most: int = 100
) -> list[ListedThread]:
    """List threads, newest first, behind (created_at, thread_id) of the last one that was seen."""
    if chosen.parent is None and chosen.status in FEW:
        return _page(store, "list_threads_by_status", chosen, after, most)
    query = "list_threads_by_age" if chosen.parent is None else "list_threads_of_parent"
    found: list[ListedThread] = []
    size = most
    while len(found) < most:
        page = _page(store, query, chosen, after, size)
        found += [row for row in page if chosen.status is None or row.status == chosen.status.value]
        if len(page) < size:
            break
        after = (page[-1].created_at, page[-1].thread_id)
        size = min(size * 2, WINDOW)
    return found[:most]


def _page(store: Store, query: str, chosen: Filter, after: tuple[Instant, str], most: int) -> list[ListedThread]:
    created_at, thread_id = after
    params = {
        "created_at": created_at,
        "after": thread_id,
        "status": "" if chosen.status is None else chosen.status.value,
        "graph": chosen.graph or "",
        "is_owned": int(chosen.owner is not None),
        "owner": chosen.owner or "",
        "parent": chosen.parent or "",
        "most": most,
    }
    return [ListedThread(*row) for row in store.database.read(lambda tx: tx.all(query, params))]


def read_shown(store: Store, thread_id: str) -> ShownThread | None:
    """Read one thread as it stands."""

    def read(tx: Transaction) -> ShownThread | None:
        key = {"thread_id": thread_id}
        asked = tx.ask("list_open_waits_of_thread", key)
        thread = tx.one("read_thread_shown", key)
        if thread is None:
            return None
        _, _, graph, parent, created_at, run_id = thread
        run = None if run_id is None else tx.one("read_run", {**key, "run_id": run_id})
        waits = tuple(read_wait_row(store.bodies, tx, row) for row in asked())
        return ShownThread(thread_id, graph, parent, created_at, None if run is None else read_run_row(run), waits)

    return store.database.read(read)
