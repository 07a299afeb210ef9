"""The state of a thread: read, edited, and as it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from bide.errors import ThreadBusyError
from bide.graph.compiled import CompiledGraph
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.door import owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.shapes import checkpoint_shape, state_shape
from bide.server.langgraph.wire import read_bool, read_list
from bide.server.problems import Problem
from bide.store.listing import read_shown
from bide.store.rows import checkpoint_id
from bide.types import RunStatus, StateSnapshot

router = APIRouter(tags=["threads"], route_class=PlainJsonRoute)

Select = Annotated[list[str] | None, Query()]
Flag = Annotated[str | None, Query(max_length=10)]


class CheckpointBody(BaseModel):
    """A checkpoint as clients name it; without an id, the newest."""

    model_config = ConfigDict(extra="ignore")

    checkpoint: dict[str, Any] | None = None
    subgraphs: bool | None = False
    select: list[str] | None = None


class StateBody(BaseModel):
    """An edit of a thread's state."""

    model_config = ConfigDict(extra="ignore")

    values: Any = None
    as_node: str | None = None
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = None


class HistoryBody(BaseModel):
    """How much of the past is wanted."""

    model_config = ConfigDict(extra="ignore")

    limit: int | None = Field(10, ge=1, le=1000)
    before: str | dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    select: list[str] | None = None


@router.get("/threads/{thread_id}/state")
def get_state(
    thread_id: str, request: Request, ctx: Server, who: Who, subgraphs: Flag = None, select: Select = None
) -> dict[str, Any]:
    """Return the state as it stands."""
    return _state(ctx, request, who, thread_id, {}, read_bool(subgraphs), read_list(select or []))


@router.post("/threads/{thread_id}/state/checkpoint")
def get_state_at(thread_id: str, body: CheckpointBody, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Return the state at a checkpoint, of the thread's own graph or of one inside it."""
    return _state(ctx, request, who, thread_id, body.checkpoint or {}, bool(body.subgraphs), body.select or [])


@router.get("/threads/{thread_id}/state/{checkpoint_id}")
def get_state_by_id(
    thread_id: str,
    checkpoint_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    subgraphs: Flag = None,
    select: Select = None,
) -> dict[str, Any]:
    """Return the state at a checkpoint."""
    place = {"checkpoint_id": checkpoint_id}
    return _state(ctx, request, who, thread_id, place, read_bool(subgraphs), read_list(select or []))


@router.post("/threads/{thread_id}/state")
def update_state(thread_id: str, body: StateBody, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Edit the state of a thread that does not run. `as_node="__end__"` lets it be over."""
    graph = _graph(ctx, request, who, thread_id, "update")
    if graph is None:
        raise Problem(422, f"Thread {thread_id!r} has no graph yet: start a run on it, or make it with a graph_id.")
    _check_at_rest(ctx, thread_id)
    place = dict(body.checkpoint or {})
    if body.checkpoint_id:
        place["checkpoint_id"] = body.checkpoint_id
    config = graph.update_state(_config(thread_id, place), body.values, as_node=body.as_node)
    named = checkpoint_shape(config)
    return {"checkpoint": named, "configurable": named, "checkpoint_id": named["checkpoint_id"]}


@router.get("/threads/{thread_id}/history")
def get_history(
    thread_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    before: Annotated[str | None, Query(max_length=200)] = None,
) -> list[dict[str, Any]]:
    """Return the past of a thread, newest first."""
    return post_history(thread_id, HistoryBody(limit=limit, before=before), request, ctx, who)


@router.post("/threads/{thread_id}/history")
def post_history(thread_id: str, body: HistoryBody, request: Request, ctx: Server, who: Who) -> list[dict[str, Any]]:
    """Return the past of a thread, newest first: before a checkpoint, or where the metadata fits."""
    graph = _graph(ctx, request, who, thread_id)
    if graph is None:
        return []
    place = dict(body.checkpoint or {})
    before = {"checkpoint_id": body.before} if isinstance(body.before, str) else body.before
    at = None if not before else _config(thread_id, _place_in(before))
    place.pop("checkpoint_id", None)
    found = graph.get_state_history(_config(thread_id, place), filter=body.metadata, before=at, limit=body.limit or 10)
    return [_selected(state_shape(ctx, snapshot), body.select or []) for snapshot in found]


def _state(
    ctx: Context,
    request: Request,
    who: Caller,
    thread_id: str,
    place: Mapping[str, Any],
    subgraphs: bool,
    select: Sequence[str],
) -> dict[str, Any]:
    graph = _graph(ctx, request, who, thread_id)
    config = _config(thread_id, place)
    if graph is None or _is_before_all(ctx, thread_id, place):
        snapshot = StateSnapshot({}, (), config, None, None, None, (), ())
    else:
        snapshot = graph.get_state(config, subgraphs=subgraphs)
    return _selected(state_shape(ctx, snapshot), select)


def _is_before_all(ctx: Context, thread_id: str, place: Mapping[str, Any]) -> bool:
    """Whether the empty state is meant that the first one comes from."""
    uid = ctx.app.store.uid_of(thread_id)
    return uid is not None and place.get("checkpoint_id") == checkpoint_id(uid, 0)


def _graph(ctx: Context, request: Request, who: Caller, thread_id: str, action: str = "read") -> CompiledGraph | None:
    """Return the graph of a thread of the caller's; None for one that has none yet."""
    owned_thread(ctx.app, who, thread_id)
    allow(ctx, request, "threads", action, {"thread_id": thread_id}, thread_id)
    thread = ctx.app.store.thread(thread_id)
    name = "" if thread is None else thread.graph
    graph = ctx.app.graphs.find(name)
    if graph is None and name:
        raise Problem(
            409,
            f"Thread {thread_id!r} is one of graph {name!r}, which this server does not serve. Ask one that does. "
            f"Graphs: {ctx.app.graphs.listed()}.",
        )
    return graph


def _config(thread_id: str, place: Mapping[str, Any]) -> dict[str, Any]:
    inner = {"thread_id": thread_id}
    for key in ("checkpoint_id", "checkpoint_ns"):
        if place.get(key):
            inner[key] = str(place[key])
    return {"configurable": inner}


def _place_in(before: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the checkpoint in what clients send: bare, or as a config."""
    inner = before.get("configurable")
    return inner if isinstance(inner, Mapping) else before


def _check_at_rest(ctx: Context, thread_id: str) -> None:
    shown = read_shown(ctx.app.store, thread_id)
    run = None if shown is None else shown.run
    if run is not None and run.status in (RunStatus.READY, RunStatus.RUNNING):
        raise ThreadBusyError(
            f"Thread {thread_id!r} is busy with run {run.run_id}. Nothing was written. Wait for it, or cancel it."
        )


def _selected(shape: dict[str, Any], select: Sequence[str]) -> dict[str, Any]:
    return {key: shape[key] for key in select if key in shape} if select else shape
