"""Threads and their timelines as the native API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from bide.runtime.views import Event, Run, Thread
from bide.server.native.described import Told
from bide.server.native.resting import Standing, standing
from bide.shape.shown import jsonable

StatusWord = Literal["queued", "ready", "running", "waiting", "blocked", "dead", "done", "failed", "cancelled"]


class ThreadShown(Told):
    """A thread in a list."""

    thread_id: str
    graph: str
    status: Standing
    created_at: datetime
    updated_at: datetime | None
    error: str | None
    parent: str | None


class ThreadPage(Told):
    """Some threads, newest first."""

    threads: list[ThreadShown]
    after: str | None = Field(description="For the next page; null when this was the last.")


class EventShown(Told):
    """One line of a thread's log, or one finished step."""

    id: str
    kind: str
    at: datetime
    run_id: str | None
    data: Any


class Timeline(Told):
    """A part of what happened in a thread, in order."""

    events: list[EventShown]
    since: str | None = Field(description="To go on from here.")
    is_at_end: bool = Field(description="Whether nothing more had happened when this was read.")


class RunShown(Told):
    """One request to advance a thread."""

    run_id: str
    thread_id: str
    graph: str
    status: StatusWord
    created_at: datetime
    updated_at: datetime
    error: str | None


class Ended(Told):
    """What came of a wish to end or to free something, and how the thread stands now."""

    thread_id: str
    is_done: bool = Field(description="Whether this very call did it.")
    status: Standing


def thread_shown(thread: Thread) -> ThreadShown:
    """Show a thread in a list."""
    return ThreadShown(
        thread_id=thread.thread_id,
        graph=thread.graph,
        status=standing(thread.status),
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        error=thread.error,
        parent=thread.parent,
    )


def event_shown(event: Event) -> EventShown:
    """Show an event."""
    return EventShown(id=event.id, kind=event.kind, at=event.at, run_id=event.run_id, data=jsonable(event.data))


def run_shown(run: Run) -> RunShown:
    """Show a run."""
    return RunShown(
        run_id=run.run_id,
        thread_id=run.thread_id,
        graph=run.graph,
        status=run.status.value,
        created_at=run.created_at,
        updated_at=run.updated_at,
        error=run.error,
    )
