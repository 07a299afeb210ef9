"""Threads as they stand: the status of their run, their state, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import Instant
from bide.errors import GraphError, UnknownThreadError, did_you_mean
from bide.runtime.reading import run_of, wait_of
from bide.runtime.registered import Graphs
from bide.runtime.views import Thread, moment
from bide.store import Store
from bide.store.listing import AFTER_ALL, Filter, ListedThread, list_rows, read_shown
from bide.types import RunStatus


def read_thread(store: Store, graphs: Graphs, thread_id: str) -> Thread:
    """Return a thread as it stands; its state is there when its graph is known here."""
    row = read_shown(store, thread_id)
    if row is None:
        raise _unknown(store, thread_id)
    run = None if row.run is None else run_of(thread_id, row.run)
    values, next_ = _state(graphs, row.graph, thread_id)
    return Thread(
        thread_id,
        row.graph,
        None if run is None else run.status,
        moment(row.created_at),  # type: ignore[arg-type]
        None if run is None else run.updated_at,
        run,
        tuple(wait_of(graphs, wait) for wait in row.waits),
        values,
        next_,
        None if run is None else run.error,
        row.parent,
    )


def _state(graphs: Graphs, name: str, thread_id: str) -> tuple[Any, tuple[str, ...]]:
    graph = graphs.find(name)
    if graph is None:
        return None, ()
    snapshot = graph.get_state({"configurable": {"thread_id": thread_id}})
    return snapshot.values, snapshot.next


def list_threads(
    store: Store,
    *,
    status: RunStatus | str | None = None,
    graph: str | None = None,
    owner: str | None = None,
    parent: str | None = None,
    after: Thread | str | None = None,
    most: int = 100,
) -> Sequence[Thread]:
    """List threads, newest first: those with this status, graph, owner or parent, behind the last one that was seen.

    What they wait for and their state is not read; see `read_thread`.
    """
    chosen = Filter(_status(status), graph, owner, parent)
    return [_listed(row) for row in list_rows(store, chosen, _place(store, after), most)]


def _listed(row: ListedThread) -> Thread:
    return Thread(
        row.thread_id,
        row.graph,
        None if row.status is None else RunStatus(row.status),
        moment(row.created_at),  # type: ignore[arg-type]
        moment(row.updated_at),
        error=row.error,
        parent=row.parent,
    )


def _status(status: RunStatus | str | None) -> RunStatus | None:
    try:
        return None if status is None else RunStatus(status)
    except ValueError:
        known = [one.value for one in RunStatus]
        hint = did_you_mean(status, known)
        raise GraphError(f"status={status!r} is none of a run.{hint} There are {', '.join(known)}.") from None


def _place(store: Store, after: Thread | str | None) -> tuple[Instant, str]:
    """Return where the list goes on: a thread that was listed knows its place, also when it was deleted since."""
    if after is None:
        return AFTER_ALL, ""
    if isinstance(after, Thread):
        return round(after.created_at.timestamp() * 1000), after.thread_id
    row = store.thread(str(after))
    if row is None:
        raise _unknown(store, str(after))
    return row.created_at, row.thread_id


def check_known(store: Store, thread_id: str) -> None:
    """Tell whoever names a thread that is not there: a typo must not look like a thread that is over."""
    if store.thread(thread_id) is None:
        raise _unknown(store, thread_id)


def _unknown(store: Store, thread_id: str) -> UnknownThreadError:
    return UnknownThreadError(
        f"There is no thread {thread_id!r} in {store.database.path!r}. Check the id, and which database is open."
    )
