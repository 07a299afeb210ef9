"""Threads: made, found, changed, copied, deleted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from bide.clock import uuid7
from bide.errors import ThreadExistsError
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.door import checked_id, owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.shapes import thread_shape
from bide.server.langgraph.thread_search import SearchBody, found_shape, found_threads
from bide.server.langgraph.wire import iso, paged, read_list
from bide.server.problems import Problem, not_found
from bide.store.notes import NotedThread, make_thread, name_graph, note_thread, noted_thread
from bide.types import StateUpdate

router = APIRouter(tags=["threads"], route_class=PlainJsonRoute)


class TtlBody(BaseModel):
    """How many minutes a thread lives after it was last spoken of."""

    model_config = ConfigDict(extra="ignore")

    ttl: float = Field(gt=0, le=10 * 366 * 1440)
    strategy: Literal["delete", "keep_latest"] = "delete"


class ThreadBody(BaseModel):
    """A thread to be made."""

    model_config = ConfigDict(extra="ignore")

    thread_id: str | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: TtlBody | None = None
    supersteps: list[dict[str, Any]] | None = None


class PatchBody(BaseModel):
    """What is said about a thread, beside what was said before."""

    model_config = ConfigDict(extra="ignore")

    metadata: dict[str, Any] | None = None
    ttl: TtlBody | None = None


class PruneBody(BaseModel):
    """Which threads are to be let go, and how."""

    model_config = ConfigDict(extra="ignore")

    thread_ids: list[str] = Field(max_length=1000)
    strategy: Literal["delete", "keep_latest"] = "delete"


@router.post("/threads")
def create_thread(body: ThreadBody, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Make a thread; with `supersteps`, with a state."""
    value: dict[str, Any] = {"thread_id": body.thread_id, "metadata": dict(body.metadata or {})}
    allow(ctx, request, "threads", "create", value)
    thread_id = None if body.thread_id is None else checked_id("thread", body.thread_id)
    ttl = None if body.ttl is None else body.ttl.model_dump()
    try:
        name = make_thread(ctx.app.store, who.owner, thread_id, value["metadata"], ttl)
    except ThreadExistsError:
        if body.if_exists != "do_nothing" or ctx.app.store.owner_of(thread_id or "") != who.owner:
            raise
        allow(ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)
        return thread_shape(ctx, _noted(ctx, who, thread_id or ""))
    if body.supersteps:
        _fill(ctx, name, value["metadata"].get("graph_id"), body.supersteps)
    return thread_shape(ctx, _noted(ctx, who, name))


def _fill(ctx: Context, thread_id: str, graph_id: Any, supersteps: list[dict[str, Any]]) -> None:
    """Write a state by hand, as if nodes had."""
    graph = ctx.app.graphs.find(str(graph_id))
    if graph is None:
        ctx.app.store.delete_thread(thread_id)
        raise Problem(422, "supersteps need to know the graph: give metadata.graph_id the name of one.")
    name_graph(ctx.app.store, thread_id, graph.name)
    steps = [
        [StateUpdate(update.get("values"), update.get("as_node")) for update in step.get("updates") or ()]
        for step in supersteps
    ]
    graph.bulk_update_state({"configurable": {"thread_id": thread_id}}, steps)


@router.post("/threads/search")
def search_threads(
    body: SearchBody, request: Request, response: Response, ctx: Server, who: Who
) -> list[dict[str, Any]]:
    """Find threads by metadata, status, ids, or what is in their state."""
    value = body.model_dump(exclude_unset=True)
    filter_ = allow(ctx, request, "threads", "search", value)
    found = found_threads(ctx, who.owner, body, filter_)
    offset, limit = body.offset or 0, body.limit or 10
    paged(response, len(found), offset, limit)
    return [found_shape(ctx, thread, body) for thread in found[offset : offset + limit]]


@router.post("/threads/count")
def count_threads(body: SearchBody, request: Request, ctx: Server, who: Who) -> int:
    """Count the threads that a search would find."""
    filter_ = allow(ctx, request, "threads", "search", body.model_dump(exclude_unset=True))
    return len(found_threads(ctx, who.owner, body, filter_))


@router.post("/threads/prune")
def prune_threads(body: PruneBody, request: Request, ctx: Server, who: Who) -> dict[str, int]:
    """Let threads go, or all but their newest checkpoint; those that are not the caller's are passed over."""
    pruned = 0
    for thread_id in dict.fromkeys(body.thread_ids):
        try:
            owned_thread(ctx.app, who, thread_id)
            allow(ctx, request, "threads", "delete", {"thread_id": thread_id}, thread_id)
        except Problem as problem:
            if problem.status != 404:
                raise
            continue
        if body.strategy == "delete":
            ctx.app.store.delete_thread(thread_id)
        else:
            ctx.app.store.prune(keep_last=1, thread_id=thread_id)
        pruned += 1
    return {"pruned_count": pruned}


@router.get("/threads/{thread_id}")
def get_thread(
    thread_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    include: Annotated[list[str] | None, Query()] = None,
) -> dict[str, Any]:
    """Return a thread, with its state and what it asks."""
    allow(ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)
    thread = _noted(ctx, who, thread_id)
    shape = thread_shape(ctx, thread)
    return {**shape, "ttl": _ttl_shape(thread)} if "ttl" in read_list(include or []) else shape


@router.patch(
    "/threads/{thread_id}",
    response_model=None,
    responses={200: {"model": dict[str, Any]}, 204: {"description": "Noted; `Prefer: return=minimal`."}},
)
def patch_thread(
    thread_id: str,
    body: PatchBody,
    request: Request,
    ctx: Server,
    who: Who,
    prefer: Annotated[str | None, Header(max_length=100)] = None,
) -> dict[str, Any] | Response:
    """Add to what was said about a thread."""
    _note(ctx, request, who, thread_id, body)
    if prefer is not None and "return=minimal" in prefer:
        return Response(status_code=204)
    return thread_shape(ctx, _noted(ctx, who, thread_id))


@router.patch("/threads/{thread_id}/state")
def patch_state(thread_id: str, body: PatchBody, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Add to the metadata of a thread; an old name for it."""
    _note(ctx, request, who, thread_id, body)
    return {}


def _note(ctx: Context, request: Request, who: Caller, thread_id: str, body: PatchBody) -> None:
    owned_thread(ctx.app, who, thread_id)
    value: dict[str, Any] = {"thread_id": thread_id, "metadata": dict(body.metadata or {})}
    allow(ctx, request, "threads", "update", value, thread_id)
    ttl = None if body.ttl is None else body.ttl.model_dump()
    note_thread(ctx.app.store, who.owner, thread_id, value["metadata"], ttl=ttl)


@router.delete("/threads/{thread_id}", status_code=204)
def delete_thread(thread_id: str, request: Request, ctx: Server, who: Who) -> None:
    """Delete a thread, and all that belongs to it."""
    owned_thread(ctx.app, who, thread_id)
    allow(ctx, request, "threads", "delete", {"thread_id": thread_id}, thread_id)
    ctx.app.store.delete_thread(thread_id)


@router.post("/threads/{thread_id}/copy")
def copy_thread(thread_id: str, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Copy a thread with its whole past; what it waits for, the copy waits for as well."""
    thread = _noted(ctx, who, thread_id)
    allow(ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)
    value: dict[str, Any] = {"thread_id": None, "metadata": dict(thread.metadata)}
    allow(ctx, request, "threads", "create", value)
    store = ctx.app.store
    if thread.run_id is None and not thread.graph:
        return thread_shape(ctx, _noted(ctx, who, make_thread(store, who.owner, None, value["metadata"], None)))
    name = uuid7(store.clock.now())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "thread.bide"
        store.export_thread(thread_id, file)
        store.import_thread(file, thread_id=name, owner=who.owner)
    note_thread(store, who.owner, name, value["metadata"])
    return thread_shape(ctx, _noted(ctx, who, name))


def _noted(ctx: Context, who: Caller, thread_id: str) -> NotedThread:
    thread = noted_thread(ctx.app.store, who.owner, thread_id)
    if thread is None:
        raise not_found("thread", thread_id)
    return thread


def _ttl_shape(thread: NotedThread) -> dict[str, Any] | None:
    if thread.ttl is None or thread.expires_at is None:
        return None
    return {"strategy": thread.ttl["strategy"], "ttl_minutes": thread.ttl["ttl"], "expires_at": iso(thread.expires_at)}
