"""What has happened, as receivers outside are told: a run that ended, a question that was asked, or was answered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from bide.clock import iso
from bide.errors import BideError
from bide.runtime import Bide
from bide.runtime.reading import run_of, wait_of
from bide.runtime.views import Wait
from bide.server.langgraph.shapes import run_shape
from bide.server.payloads import interrupt_of
from bide.shape.shown import jsonable
from bide.store.feed import FeedEvent
from bide.store.queue_rows import RunView
from bide.store.rows import checkpoint_id
from bide.types import RunStatus, WaitStatus

logger = logging.getLogger("bide.server.webhooks")

LARGEST_STATE = 4 * 1024 * 1024
"""Characters of JSON that a state may have to be sent along."""


def finished_run(app: Bide, event: FeedEvent, status: str) -> dict[str, Any]:
    """Tell that a run has ended, and how. Its state is not in it: whoever may see that asks for it."""
    run = None if event.run_id is None else app.store.run(event.thread_id, event.run_id)
    return {
        "thread_id": event.thread_id,
        "run_id": event.run_id,
        "graph": event.graph,
        "owner": event.owner,
        "status": status,
        "error": _error(event, run),
        "created_at": None if run is None else iso(run.created_at),
        "ended_at": iso(event.at),
    }


def created_waits(app: Bide, event: FeedEvent) -> list[dict[str, Any]]:
    """Tell each question that was asked in a pause; those that were open before it are not told again."""
    asks = event.body.get("asks", ()) if isinstance(event.body, dict) else ()
    rows = [app.store.wait(str(ask["id"])) for ask in asks]
    fresh = [row for row in rows if row is not None and row.created_at == event.at]
    return [_wait(event, wait_of(app.graphs, row)) for row in fresh]


def answered_waits(app: Bide, event: FeedEvent) -> list[dict[str, Any]]:
    """Tell each question that was answered, by whom and through what; what the answer was is not in it."""
    if event.kind == "wait.answered":
        rows = [app.store.wait(str(event.body["wait"]))] if isinstance(event.body, dict) else []
        winner = event.body.get("winner") if isinstance(event.body, dict) else None
    else:
        rows = [row for row in app.store.waits_of(event.thread_id) if row.answered_at == event.at]
        winner = None
    shown = [wait_of(app.graphs, row) for row in rows if row is not None and row.status is WaitStatus.ANSWERED]
    return [
        {
            **_wait(event, wait),
            "answered_at": None if wait.answered_at is None else wait.answered_at.isoformat(),
            "answered_by": wait.answered_by,
            "answered_via": wait.answered_via,
            "winner": winner,
        }
        for wait in shown
    ]


def _wait(event: FeedEvent, wait: Wait) -> dict[str, Any]:
    return {
        "wait_id": wait.id,
        "thread_id": wait.thread_id,
        "run_id": wait.run_id,
        "graph": wait.graph,
        "owner": event.owner,
        "node": wait.node,
        "kind": wait.kind,
        "title": wait.title,
        "waiting_for": wait.waiting_for,
        "question": wait.question,
        "schema": wait.schema,
        "assignees": list(wait.assignees),
        "tags": list(wait.tags),
        "created_at": wait.created_at.isoformat(),
        "deadline": None if wait.deadline is None else wait.deadline.isoformat(),
    }


# ── As LangGraph's clients know a run ──────────────────────────────────────────────────────────────────────────────


def run_as_clients_know_it(app: Bide, event: FeedEvent, status: str, notes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Tell a run with its status at that line, when it ran, and the state that it came to; None if it is gone."""
    row = None if event.run_id is None else app.store.run(event.thread_id, event.run_id)
    if row is None:
        return None
    error = _error(event, row)
    then = row._replace(status=RunStatus(status), updated_at=event.at, error=error)
    return {
        **run_shape(run_of(event.thread_id, then), notes),
        "run_started_at": iso(row.created_at),
        "run_ended_at": iso(event.at),
        "webhook_sent_at": iso(app.store.clock.now()),
        "values": _state(app, event, row.uid),
    }


def _state(app: Bide, event: FeedEvent, uid: str) -> Any:
    """Return the state that a run came to, at the checkpoint that its line names."""
    graph = app.graphs.find(event.graph)
    if graph is None or event.seq == 0:
        return None
    place = {"thread_id": event.thread_id, "checkpoint_id": checkpoint_id(uid, event.seq)}
    try:
        snapshot = graph.get_state({"configurable": place})
    except BideError as problem:
        logger.warning("The state of thread %s cannot be sent along: %s", event.thread_id, problem)
        return None
    values = jsonable(snapshot.values)
    if snapshot.interrupts and isinstance(values, dict):
        values = {**values, "__interrupt__": [_question(app, asked) for asked in snapshot.interrupts]}
    if len(str(values)) > LARGEST_STATE:
        logger.warning("The state of thread %s is too large to be sent along.", event.thread_id)
        return None
    return values


def _question(app: Bide, asked: Any) -> Any:
    row = app.store.wait(asked.id)
    return jsonable(asked if row is None else interrupt_of(wait_of(app.graphs, row)))


def _error(event: FeedEvent, run: RunView | None) -> str | None:
    said = event.body.get("error") if isinstance(event.body, dict) else None
    if said is None and event.kind in ("run.failed", "run.dead") and run is not None:
        said = run.error
    return None if said is None else str(said)
