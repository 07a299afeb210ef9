"""Finding threads by what was said about them, by how they stand, and by what is in their state."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bide.server.auth.filters import Filter, matches
from bide.server.context import Context
from bide.server.door import may_be_kept
from bide.server.langgraph.choosing import holds
from bide.server.langgraph.shapes import THREAD_STATUS, state_values, thread_shape
from bide.store.notes import NotedThread, is_word, noted_thread, noted_threads

Status = Literal["idle", "busy", "interrupted", "error"]
_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")


class SearchBody(BaseModel):
    """Which threads are wanted, and what of them."""

    model_config = ConfigDict(extra="ignore")

    ids: list[str] | None = Field(None, max_length=1000)
    metadata: dict[str, Any] | None = None
    values: dict[str, Any] | None = None
    status: Status | None = None
    limit: int | None = Field(10, ge=1, le=1000)
    offset: int | None = Field(0, ge=0)
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None
    extract: dict[str, str] | None = None


def found_threads(ctx: Context, owner: str, body: SearchBody, filter_: Filter | None) -> list[NotedThread]:
    """Return the threads that are meant, sorted."""
    wanted = body.metadata or {}
    candidates = _candidates(ctx, owner, body, wanted)
    found = [
        thread
        for thread in candidates
        if holds(thread.metadata, wanted)
        and matches(filter_, thread.metadata)
        and (body.status is None or THREAD_STATUS[thread.status] == body.status)
    ]
    if body.values:
        found = [thread for thread in found if holds(state_values(ctx, thread) or {}, body.values)]
    found.sort(key=_order(body.sort_by), reverse=body.sort_order != "asc")
    return found


def _candidates(ctx: Context, owner: str, body: SearchBody, wanted: Mapping[str, Any]) -> Sequence[NotedThread]:
    if body.ids is not None:
        kept = filter(may_be_kept, dict.fromkeys(body.ids))
        named = (noted_thread(ctx.app.store, owner, thread_id) for thread_id in kept)
        return [thread for thread in named if thread is not None]
    word = next(((name, value) for name, value in wanted.items() if is_word(value)), None)
    return noted_threads(ctx.app.store, owner, word)


def _order(sort_by: str | None) -> Callable[[NotedThread], Any]:
    if sort_by == "thread_id":
        return lambda thread: thread.thread_id
    if sort_by == "status":
        return lambda thread: (THREAD_STATUS[thread.status], thread.created_at, thread.thread_id)
    if sort_by == "created_at":
        return lambda thread: (thread.created_at, thread.thread_id)
    if sort_by == "state_updated_at":
        return lambda thread: (thread.changed_at, thread.thread_id)
    return lambda thread: (thread.updated_at, thread.thread_id)


def found_shape(ctx: Context, thread: NotedThread, body: SearchBody) -> dict[str, Any]:
    """Return a thread that was found: all of it, or what was asked for."""
    shape = thread_shape(ctx, thread)
    extracted = {name: extracted_at(shape, path) for name, path in (body.extract or {}).items()}
    if body.select:
        shape = {key: shape[key] for key in body.select if key in shape}
    return {**shape, "extracted": extracted} if body.extract else shape


def extracted_at(shape: Any, path: str) -> Any:
    """Return what is at a path as `values.messages[-1].content`; None if nothing is."""
    for name, number in _STEP.findall(path):
        try:
            shape = shape[int(number)] if number else shape[name]
        except (LookupError, TypeError, ValueError):
            return None
    return shape
