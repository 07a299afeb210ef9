"""Threads as they stand: the status of their run, their state, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.errors import UnknownThreadError
from bide.runtime.reading import run_of, wait_of
from bide.runtime.registered import Graphs
from bide.runtime.views import Thread, Wait, moment
from bide.store import Store
from bide.types import RunStatus, WaitStatus


def read_thread(store: Store, graphs: Graphs, thread_id: str) -> Thread:
    """Return a thread as it stands; its state is there when its graph is known here."""
    row = store.thread(thread_id)
    if row is None:
        raise UnknownThreadError(
            f"There is no thread {thread_id!r} in {store.database.path!r}. Check the id, and which database is open."
        )
    runs = store.runs(thread_id, most=1000)
    alive = [run for run in runs if run.status not in _OVER]
    shown = next((run for run in (*(run for run in alive if run.status is not RunStatus.QUEUED), *alive, *runs)), None)
    run = None if shown is None else run_of(thread_id, shown)
    values, next_ = _state(graphs, row.graph, thread_id)
    waits = tuple(_open_waits(store, graphs, thread_id))
    return Thread(
        thread_id,
        row.graph,
        None if run is None else run.status,
        moment(row.created_at),  # type: ignore[arg-type]
        None if run is None else run.updated_at,
        run,
        waits,
        values,
        next_,
        None if run is None else run.error,
        None if shown is None else shown.parent,
    )


_OVER = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)


def _open_waits(store: Store, graphs: Graphs, thread_id: str) -> list[Wait]:
    rows = store.waits_of(thread_id)
    return [wait_of(graphs, row) for row in rows if row.status is WaitStatus.OPEN and not row.is_consumed]


def _state(graphs: Graphs, name: str, thread_id: str) -> tuple[Any, tuple[str, ...]]:
    graph = graphs.find(name)
    if graph is None:
        return None, ()
    snapshot = graph.get_state({"configurable": {"thread_id": thread_id}})
    return snapshot.values, snapshot.next


def list_threads(
    store: Store, *, status: RunStatus | str | None = None, graph: str | None = None, most: int = 100
) -> Sequence[Thread]:
    """List threads, newest first."""
    wanted = None if status is None else RunStatus(status).value
    found: list[Thread] = []
    for row in store.threads(most=100_000 if wanted or graph else most):
        if (wanted is None or row.status == wanted) and (graph is None or row.graph == graph):
            created, updated = moment(row.created_at), moment(row.updated_at)
            shown = None if row.status is None else RunStatus(row.status)
            found.append(Thread(row.thread_id, row.graph, shown, created, updated))  # type: ignore[arg-type]
            if len(found) >= most:
                break
    return found
