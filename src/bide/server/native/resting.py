"""Waiting for a thread to rest, without holding a thread of the server meanwhile, and how it rests then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from anyio.to_thread import run_sync
from pydantic import Field

from bide.clock import elapsed
from bide.runtime import Bide
from bide.runtime.views import Thread, Wait
from bide.server.context import Context
from bide.server.native.described import Told
from bide.server.payloads import interrupt_of
from bide.shape.shown import jsonable
from bide.store.listing import read_shown
from bide.types import RunStatus

LONGEST = 300
"""Seconds that a client may wait in one request."""
_LOOK = 2.0
"""Seconds after which one looks also if nobody has told of anything."""

Standing = Literal["new", "queued", "running", "waiting", "blocked", "dead", "done", "failed", "cancelled"]


_STANDINGS: Mapping[RunStatus, Standing] = {
    RunStatus.QUEUED: "queued",
    RunStatus.READY: "queued",
    RunStatus.RUNNING: "running",
    RunStatus.WAITING: "waiting",
    RunStatus.BLOCKED: "blocked",
    RunStatus.DEAD: "dead",
    RunStatus.DONE: "done",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "cancelled",
}


class Rest(Told):
    """How a thread stands: what it asks, or what has come out."""

    status: Standing
    thread_id: str
    run_id: str | None = None
    message: str | None = Field(default=None, description="What it asks, says, or failed with, in words.")
    interrupts: list[Any] = Field(default=[], description="Open questions, as interrupts.")
    values: Any = Field(default=None, description="Its state.")
    error: str | None = None


def standing(status: RunStatus | None) -> Standing:
    """Return the status of a thread as it is told: one that is ready is queued for a worker."""
    return "new" if status is None else _STANDINGS[status]


async def until_rest(server: Context, thread_id: str, seconds: float) -> bool:
    """Wait until nobody drives a thread any more, or so many seconds; return whether it rests."""
    ends = elapsed() + min(seconds, LONGEST)
    with server.hub.watch(thread_id) as watch:
        while not await run_sync(is_at_rest, server.app, thread_id):
            left = ends - elapsed()
            if left <= 0 or server.stopping.is_set():
                return False
            await watch.news(min(left, _LOOK))
    return True


def is_at_rest(app: Bide, thread_id: str) -> bool:
    """Whether nobody drives a thread, or is about to."""
    found = read_shown(app.store, thread_id)
    return found is None or found.run is None or found.run.status.is_at_rest


def rest_of(app: Bide, thread_id: str) -> Rest:
    """Return how a thread stands now."""
    thread = app.get(thread_id)
    values = jsonable(thread.values)
    return Rest(
        status=standing(thread.status),
        thread_id=thread_id,
        run_id=None if thread.run is None else thread.run.run_id,
        message=_message(thread, values),
        interrupts=[jsonable(interrupt_of(wait)) for wait in thread.waits],
        values=values,
        error=thread.error,
    )


def _message(thread: Thread, values: Any) -> str | None:
    if thread.status is RunStatus.WAITING:
        return " ".join(asked_by(wait) for wait in thread.waits) or None
    if thread.status is RunStatus.FAILED:
        return thread.error
    return _said(values) if isinstance(values, Mapping) else None


def asked_by(wait: Wait) -> str:
    """Return what a wait asks in words, as a person would be asked."""
    if isinstance(wait.question, str):
        return wait.question
    if isinstance(wait.question, Mapping):
        for name in ("question", "message", "prompt", "title"):
            if isinstance(wait.question.get(name), str):
                return str(wait.question[name])
    return wait.title or sentence(f"Waits for {wait.waiting_for}")


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends as it is: what others said may be cut off, or be a question."""
    return text if text.endswith((".", "…", "?", "!")) else f"{text}."


def _said(values: Mapping[str, Any]) -> str | None:
    """Return the last words of a conversation: of its messages, or under the usual names."""
    messages = values.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], Mapping):
        content = messages[-1].get("content")
        return content if isinstance(content, str) else None
    found = (values.get(name) for name in ("message", "reply", "output"))
    return next((text for text in found if isinstance(text, str)), None)


_WAIT = re.compile(r"\bwait\s*=\s*\"?([0-9]{1,6})")


def preferred_wait(header: str | None, default: float) -> float:
    """Return how many seconds a client prefers to wait: `Prefer: wait=10`."""
    found = _WAIT.search(header or "")
    return default if found is None else min(float(found[1]), LONGEST)
