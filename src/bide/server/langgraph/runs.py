"""Runs: started, listed, waited for, streamed, cancelled; on a thread, or on one that is made for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict

from bide.runtime.views import Run
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.door import owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.cancelling import cancel_run, cancel_several
from bide.server.langgraph.outcomes import waited
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.run_requests import RunBody, modes_in, start_run
from bide.server.langgraph.shapes import RUN_STATUS, run_shape
from bide.server.langgraph.wire import read_bool, read_list, thread_place
from bide.server.problems import Problem, not_found
from bide.server.streams.log import check_place, read_place
from bide.server.streams.run_stream import RunStream
from bide.server.streams.sse import STREAMED, BrokenOff, EventStream, streamed
from bide.server.streams.story import Story
from bide.store.notes import forget_run, run_notes, thread_of_run
from bide.types import RunStatus

router = APIRouter(tags=["runs"], route_class=PlainJsonRoute)

LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)]
Flag = Annotated[str | None, Query(max_length=10)]
Action = Annotated[Literal["interrupt", "rollback"], Query()]


class CancelBody(BaseModel):
    """Which runs are to be cancelled: some of a thread, or all with a status."""

    model_config = ConfigDict(extra="ignore")

    status: Literal["pending", "running", "all"] | None = None
    thread_id: str | None = None
    run_ids: list[str] | None = None


# ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/threads/{thread_id}/runs")
def create_run(thread_id: str, body: RunBody, request: Request, ctx: Server, who: Who) -> Response:
    """Start a run on a thread, and return at once."""
    run = _start(ctx, request, who, thread_id, body)
    return JSONResponse(run_shape(run, run_notes(ctx.app.store, run.thread_id, run.run_id)), headers=_placed(run))


@router.post("/runs")
def create_stateless_run(body: RunBody, request: Request, ctx: Server, who: Who) -> Response:
    """Start a run on a thread of its own, which goes when it has ended."""
    run = _start(ctx, request, who, None, body)
    shape = run_shape(run, run_notes(ctx.app.store, run.thread_id, run.run_id))
    return JSONResponse(shape, headers=_placed(run, stateless=True))


@router.post("/runs/batch")
def create_runs(bodies: list[RunBody], request: Request, ctx: Server, who: Who) -> list[dict[str, Any]]:
    """Start several runs, each on a thread of its own."""
    runs = [_start(ctx, request, who, None, body) for body in bodies]
    return [run_shape(run, run_notes(ctx.app.store, run.thread_id, run.run_id)) for run in runs]


@router.post("/threads/{thread_id}/runs/wait")
async def wait_for_run(thread_id: str, body: RunBody, request: Request, ctx: Server, who: Who) -> Response:
    """Start a run, and answer with the state when it rests."""
    run = await run_sync(_start, ctx, request, who, thread_id, body)
    return waited(ctx, run, _placed(run, "join"), cancels=body.on_disconnect == "cancel")


@router.post("/runs/wait")
async def wait_for_stateless_run(body: RunBody, request: Request, ctx: Server, who: Who) -> Response:
    """Do the same on a thread of its own."""
    run = await run_sync(_start, ctx, request, who, None, body)
    return waited(ctx, run, _placed(run, "join", stateless=True), cancels=body.on_disconnect == "cancel")


@router.post("/threads/{thread_id}/runs/stream", response_class=EventStream, responses=STREAMED)
async def stream_run(thread_id: str, body: RunBody, request: Request, ctx: Server, who: Who) -> StreamingResponse:
    """Start a run, and stream what it tells."""
    run = await run_sync(_start, ctx, request, who, thread_id, body)
    return _streamed(ctx, run, body, _placed(run, "stream"))


@router.post("/runs/stream", response_class=EventStream, responses=STREAMED)
async def stream_stateless_run(body: RunBody, request: Request, ctx: Server, who: Who) -> StreamingResponse:
    """Do the same on a thread of its own."""
    run = await run_sync(_start, ctx, request, who, None, body)
    return _streamed(ctx, run, body, _placed(run, "stream", stateless=True))


def _start(ctx: Context, request: Request, who: Caller, thread_id: str | None, body: RunBody) -> Run:
    value = {"thread_id": thread_id, "assistant_id": body.assistant_id, "metadata": body.metadata or {}}
    value |= {"kwargs": {"input": body.input}, "multitask_strategy": body.multitask_strategy}
    allow(ctx, request, "threads", "create_run", value, thread_id)
    body.metadata = value["metadata"] if isinstance(value["metadata"], dict) else body.metadata
    return start_run(ctx, request, who, thread_id, body)


def _placed(run: Run, what: str | None = None, *, stateless: bool = False) -> dict[str, str]:
    """Say where the run is found again: clients that lose the connection go there."""
    place = f"/runs/{run.run_id}" if stateless else f"{thread_place(run.thread_id)}/runs/{run.run_id}"
    # A thread that nobody has named is found by its run alone nowhere else, so its own address is given to go on.
    again = f"{thread_place(run.thread_id)}/runs/{run.run_id}"
    return {"Content-Location": place, **({} if what is None else {"Location": f"{again}/{what}"})}


def _streamed(ctx: Context, run: Run, body: RunBody, headers: dict[str, str]) -> StreamingResponse:
    subgraphs = bool(body.stream_subgraphs)
    story = Story(ctx, run.thread_id, run.run_id, body.modes, subgraphs=subgraphs, goes_on=body.goes_on)
    return streamed(_frames(ctx, RunStream(ctx, story, None), cancels=body.on_disconnect == "cancel"), headers)


async def _frames(ctx: Context, stream: RunStream, *, cancels: bool) -> AsyncIterator[bytes]:
    """Yield the frames of a stream; a run may ask to be cancelled when its reader leaves."""
    try:
        async for sent in stream.frames():
            yield sent
        if not stream.is_over and ctx.stopping.is_set():
            raise BrokenOff
    finally:
        if cancels and not stream.is_over and not ctx.stopping.is_set():
            story = stream.story
            ctx.hub.later(lambda: ctx.app.cancel(story.thread_id, run_id=story.run_id, reason="its reader has left"))


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/threads/{thread_id}/runs")
def list_runs(
    thread_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    status: Literal["pending", "running", "error", "success", "timeout", "interrupted"] | None = None,
    select: Annotated[list[str] | None, Query()] = None,
) -> list[dict[str, Any]]:
    """List the runs of a thread, newest first."""
    owned_thread(ctx.app, who, thread_id)
    allow(ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)
    runs = [run for run in ctx.app.runs(thread_id, most=10_000) if status is None or RUN_STATUS[run.status] == status]
    wanted = read_list(select or [])
    shown = [run_shape(run, run_notes(ctx.app.store, thread_id, run.run_id)) for run in runs[offset : offset + limit]]
    return [{key: run[key] for key in wanted if key in run} for run in shown] if wanted else shown


@router.get("/threads/{thread_id}/runs/{run_id}")
def get_run(thread_id: str, run_id: str, request: Request, ctx: Server, who: Who) -> dict[str, Any]:
    """Return a run."""
    run = _found(ctx, request, who, thread_id, run_id)
    return run_shape(run, run_notes(ctx.app.store, thread_id, run_id))


@router.delete("/threads/{thread_id}/runs/{run_id}", status_code=204)
def delete_run(thread_id: str, run_id: str, request: Request, ctx: Server, who: Who) -> None:
    """Forget a run that is over; one that is alive is cancelled first. What it has done stays."""
    run = _found(ctx, request, who, thread_id, run_id, "delete")
    if run.status not in (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED):
        ctx.app.cancel(thread_id, run_id=run_id, reason="deleted", by=who.identity)
    forget_run(ctx.app.store, thread_id, run_id)


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(
    thread_id: str, run_id: str, request: Request, ctx: Server, who: Who, cancel_on_disconnect: Flag = None
) -> Response:
    """Answer with the state when a run rests."""
    run = await run_sync(_found, ctx, request, who, thread_id, run_id)
    return waited(ctx, run, _placed(run, "join"), cancels=read_bool(cancel_on_disconnect))


@router.get("/threads/{thread_id}/runs/{run_id}/stream", response_class=EventStream, responses=STREAMED)
async def join_stream(
    thread_id: str,
    run_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: Flag = None,
    last_event_id: LastId = None,
) -> StreamingResponse:
    """Stream a run from its beginning, or from behind the last event that was seen; one that is over is replayed."""
    run = await run_sync(_found, ctx, request, who, thread_id, run_id)
    return await run_sync(_joined, ctx, run, stream_mode, read_bool(cancel_on_disconnect), last_event_id)


@router.get("/runs/{run_id}/stream", response_class=EventStream, responses=STREAMED)
async def join_stateless_stream(
    run_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: Flag = None,
    last_event_id: LastId = None,
) -> StreamingResponse:
    """Do the same for a run whose thread the client does not know."""
    run = await run_sync(_found_alone, ctx, request, who, run_id)
    return await run_sync(_joined, ctx, run, stream_mode, read_bool(cancel_on_disconnect), last_event_id)


@router.get("/runs/{run_id}/join")
async def join_stateless_run(run_id: str, request: Request, ctx: Server, who: Who) -> Response:
    """Answer with the state when a run rests whose thread the client does not know."""
    run = await run_sync(_found_alone, ctx, request, who, run_id)
    return waited(ctx, run, _placed(run, "join"))


def _joined(
    ctx: Context, run: Run, stream_mode: list[str] | None, cancels: bool, last_event_id: str | None
) -> StreamingResponse:
    notes = run_notes(ctx.app.store, run.thread_id, run.run_id)
    asked = notes.get("kwargs") or {}
    modes = modes_in(read_list(stream_mode or []) or asked.get("stream_mode"))
    subgraphs, goes_on = bool(asked.get("stream_subgraphs")), bool(notes.get("goes_on"))
    story = Story(ctx, run.thread_id, run.run_id, modes, subgraphs=subgraphs, goes_on=goes_on)
    place = read_place(last_event_id)
    check_place(ctx, run.thread_id, place)
    stream = RunStream(ctx, story, place)
    return streamed(_frames(ctx, stream, cancels=cancels), _placed(run, "stream"))


# ── Cancelling ─────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/threads/{thread_id}/runs/{run_id}/cancel", responses={202: {"description": "It is going to stop."}})
async def cancel(
    thread_id: str,
    run_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    wait: Flag = None,
    action: Action = "interrupt",
) -> Response:
    """Cancel a run; with `wait`, answer when it has stopped. `rollback` also takes back what it has done."""
    run = await run_sync(_found, ctx, request, who, thread_id, run_id, "update")
    await run_sync(cancel_run, ctx, who, run, action)
    return JSONResponse({}) if read_bool(wait) else Response(status_code=202)


@router.post("/runs/cancel", status_code=204)
def cancel_runs(body: CancelBody, request: Request, ctx: Server, who: Who, action: Action = "interrupt") -> None:
    """Cancel several runs: some of a thread, or all of the caller's with a status."""
    if body.thread_id is not None:
        owned_thread(ctx.app, who, body.thread_id)
        allow(ctx, request, "threads", "update", {"thread_id": body.thread_id}, body.thread_id)
    cancel_several(ctx, who, body.thread_id, body.run_ids, body.status, action)


def _found(ctx: Context, request: Request, who: Caller, thread_id: str, run_id: str, action: str = "read") -> Run:
    """Return a run of a thread of the caller's."""
    owned_thread(ctx.app, who, thread_id)
    allow(ctx, request, "threads", action, {"thread_id": thread_id, "run_id": run_id}, thread_id)
    run = ctx.app.run(thread_id, run_id)
    if run is None:
        raise not_found("run", run_id)
    return run


def _found_alone(ctx: Context, request: Request, who: Caller, run_id: str) -> Run:
    thread_id = thread_of_run(ctx.app.store, run_id)
    try:
        return _found(ctx, request, who, thread_id or "", run_id)
    except Problem as problem:
        # Which thread it belongs to is not told to whoever may not see it.
        raise not_found("run", run_id) if problem.status == 404 else problem from None
