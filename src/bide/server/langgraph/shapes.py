"""Threads, states and runs as clients of LangGraph know them, with what is ours beside it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bide.runtime.views import Run, Wait
from bide.server.context import Context
from bide.server.langgraph.wire import iso, jsonable
from bide.server.payloads import interrupt_of
from bide.store.notes import NotedThread
from bide.store.rows import checkpoint_id
from bide.types import RunStatus, StateSnapshot, TaskSnapshot

THREAD_STATUS: Mapping[RunStatus | None, str] = {
    None: "idle",
    RunStatus.QUEUED: "busy",
    RunStatus.READY: "busy",
    RunStatus.RUNNING: "busy",
    RunStatus.WAITING: "interrupted",
    RunStatus.BLOCKED: "error",
    RunStatus.DEAD: "error",
    RunStatus.FAILED: "error",
    RunStatus.DONE: "idle",
    RunStatus.CANCELLED: "idle",
}
RUN_STATUS: Mapping[RunStatus, str] = {
    RunStatus.QUEUED: "pending",
    RunStatus.READY: "pending",
    RunStatus.RUNNING: "running",
    RunStatus.WAITING: "success",
    RunStatus.BLOCKED: "error",
    RunStatus.DEAD: "error",
    RunStatus.FAILED: "error",
    RunStatus.DONE: "success",
    RunStatus.CANCELLED: "interrupted",
}
"""A run that has paused is over, to them: who answers starts another. One that was cancelled is `interrupted`."""


def thread_shape(ctx: Context, thread: NotedThread) -> dict[str, Any]:
    """Return a thread, with its state and what it asks."""
    waits = asked(ctx, thread.thread_id) if thread.status is RunStatus.WAITING else []
    values = None if thread.run_id is None and not thread.graph else state_values(ctx, thread)
    interrupts: dict[str, list[Any]] = {}
    for task_id, wait in waits:
        # A question from inside belongs to the task that a client sees in the state.
        interrupts.setdefault(task_id.partition("|")[0], []).append(jsonable(interrupt_of(wait)))
    return {
        "thread_id": thread.thread_id,
        "created_at": iso(thread.created_at),
        "updated_at": iso(thread.updated_at),
        "state_updated_at": iso(thread.changed_at),
        "metadata": jsonable(thread.metadata),
        "status": THREAD_STATUS[thread.status],
        "config": {"configurable": {}},
        "values": values,
        "error": error_shape(thread.error) if THREAD_STATUS[thread.status] == "error" else None,
        "interrupts": interrupts,
        "graph_id": thread.graph or None,
        "run_status": None if thread.status is None else thread.status.value,
        "waiting_for": [wait.waiting_for for _, wait in waits],
    }


def asked(ctx: Context, thread_id: str) -> list[tuple[str, Wait]]:
    """Return what a thread asks, each with the task that asks; pauses that nobody asked for are left out."""
    rows = [row for row in ctx.app.store.waits_of(thread_id) if row.status == "open" and not row.is_consumed]
    return [(row.task_id, ctx.app.wait(row.wait_id)) for row in rows if row.kind not in ("before", "after")]


def state_values(ctx: Context, thread: NotedThread) -> Any:
    """Return the state of a thread whose graph is known here."""
    graph = ctx.app.graphs.find(thread.graph)
    if graph is None:
        return None
    return jsonable(graph.get_state({"configurable": {"thread_id": thread.thread_id}}).values)


def error_shape(error: str | None) -> dict[str, str]:
    """Return an error as it was written down, "Class: text", taken apart."""
    name, colon, text = (error or "").partition(": ")
    if not colon or not name.isidentifier():
        return {"error": "Error", "message": error or ""}
    return {"error": name, "message": text}


def raised(error: str) -> str:
    """Return an error as Python shows it: `ValueError('text')`."""
    shape = error_shape(error)
    return f"{shape['error']}({shape['message']!r})"


def read_raised(shown: str) -> dict[str, str]:
    """Return an error as Python shows it, taken apart."""
    name, opened, rest = shown.partition("(")
    if not opened or not rest.endswith(")") or not name.isidentifier():
        return error_shape(shown)
    try:
        text = ast.literal_eval(rest[:-1])
    except (ValueError, SyntaxError):
        text = rest[:-1]
    return {"error": name, "message": str(text)}


# ── States ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def state_shape(ctx: Context, snapshot: StateSnapshot) -> dict[str, Any]:
    """Return a state; every key is there, since clients take them for granted."""
    checkpoint, parent = checkpoint_shape(snapshot.config), parent_shape(snapshot)
    return {
        "values": jsonable(snapshot.values),
        "next": list(snapshot.next),
        "tasks": [task_shape(ctx, task) for task in snapshot.tasks],
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "checkpoint_id": checkpoint["checkpoint_id"],
        "parent_checkpoint_id": None if parent is None else parent["checkpoint_id"],
        "metadata": jsonable(snapshot.metadata or {}),
        "created_at": snapshot.created_at,
        "interrupts": [question_shape(ctx, one) for one in snapshot.interrupts],
    }


def parent_shape(snapshot: StateSnapshot) -> dict[str, Any] | None:
    """Return where a state comes from. The first comes from the empty one, from which clients begin anew when somebody
    edits what was said first; a state that is none comes from nowhere."""
    if snapshot.parent_config is not None:
        return checkpoint_shape(snapshot.parent_config)
    checkpoint = checkpoint_shape(snapshot.config)
    uid, _, number = str(checkpoint["checkpoint_id"] or "").rpartition("-")
    if not uid or checkpoint["checkpoint_ns"] or not int(number):
        return None
    return {**checkpoint, "checkpoint_id": checkpoint_id(uid, 0)}


def task_shape(ctx: Context, task: TaskSnapshot) -> dict[str, Any]:
    """Return a task of a state."""
    inner = task.state
    is_place = isinstance(inner, Mapping)
    return {
        "id": task.id,
        "name": task.name,
        "path": jsonable(task.path),
        "error": None if task.error is None else raised(str(task.error)),
        "interrupts": [question_shape(ctx, one) for one in task.interrupts],
        "checkpoint": checkpoint_shape(inner) if is_place else None,
        "state": state_shape(ctx, inner) if isinstance(inner, StateSnapshot) else None,
        "result": jsonable(task.result),
    }


def question_shape(ctx: Context, question: Any) -> dict[str, Any]:
    """Return a question; one that is stored as a wait with what is known of that."""
    row = ctx.app.store.wait(question.id)
    told: dict[str, Any] = jsonable(question if row is None else interrupt_of(ctx.app.wait(question.id)))
    return told


def checkpoint_shape(config: Any) -> dict[str, Any]:
    """Return a config that leads to a checkpoint as clients name it."""
    inner = dict((config or {}).get("configurable") or {})
    return {
        "thread_id": inner.get("thread_id"),
        "checkpoint_ns": inner.get("checkpoint_ns") or "",
        "checkpoint_id": inner.get("checkpoint_id"),
        "checkpoint_map": None,
    }


# ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_shape(run: Run, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run, with what its client asked for."""
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "assistant_id": notes.get("assistant_id") or run.graph,
        "created_at": _text(run.created_at),
        "updated_at": _text(run.updated_at),
        "status": RUN_STATUS[run.status],
        "metadata": jsonable(notes.get("metadata") or {}),
        "kwargs": _kwargs(run, jsonable(notes.get("kwargs") or {})),
        "multitask_strategy": notes.get("multitask_strategy") or "enqueue",
        "cancel_reason": run.error if run.status is RunStatus.CANCELLED else None,
        "error": error_shape(run.error) if RUN_STATUS[run.status] == "error" else None,
        "run_status": run.status.value,
    }


def _kwargs(run: Run, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return what a run was asked with, and where that is at home."""
    config = dict(kwargs.get("config") or {})
    inner = {**(config.get("configurable") or {}), "run_id": run.run_id, "thread_id": run.thread_id}
    return {**kwargs, "config": {**config, "configurable": inner}}


def _text(then: datetime) -> str:
    return iso(round(then.timestamp() * 1000))
