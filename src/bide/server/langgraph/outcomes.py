"""What a run came to, as JSON that may be long in coming: white space keeps the connection open meanwhile."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from anyio.to_thread import run_sync
from fastapi.responses import StreamingResponse

from bide.runtime.views import Run
from bide.server.context import Context
from bide.server.langgraph.shapes import asked, error_shape
from bide.server.langgraph.wire import jsonable
from bide.server.payloads import interrupt_of
from bide.types import RunStatus

INTERRUPT, ERROR = "__interrupt__", "__error__"


def waited(ctx: Context, run: Run, headers: Mapping[str, str], *, cancels: bool = False) -> StreamingResponse:
    """Answer when a run rests: with the state, and what it asks, or with its error."""
    return StreamingResponse(
        _body(ctx, run, cancels=cancels),
        media_type="application/json",
        headers={**headers, "Cache-Control": "no-store"},
    )


async def _body(ctx: Context, run: Run, *, cancels: bool) -> AsyncIterator[bytes]:
    is_over = False
    try:
        async for status in resting(ctx, run.thread_id, run.run_id):
            if status is None:
                yield b" "
                continue
            is_over = True
            yield json.dumps(await run_sync(outcome, ctx, run.thread_id, run.run_id, status)).encode()
            return
        stopping = {"error": "ServerStopping", "message": "The server is stopping; join the run again."}
        yield json.dumps({ERROR: stopping}).encode()
    finally:
        if cancels and not is_over and not ctx.stopping.is_set():
            ctx.hub.later(lambda: ctx.app.cancel(run.thread_id, run_id=run.run_id, reason="its caller has left"))


async def resting(ctx: Context, thread_id: str, run_id: str) -> AsyncIterator[RunStatus | None]:
    """Yield None from time to time, and last how a run rests."""
    with ctx.hub.watch(thread_id) as watch:
        while not ctx.stopping.is_set():
            row = await run_sync(ctx.app.store.run, thread_id, run_id)
            status = RunStatus.CANCELLED if row is None else row.status
            if status.is_at_rest:
                yield status
                return
            if not await watch.news(ctx.settings.heartbeat):
                yield None


def outcome(ctx: Context, thread_id: str, run_id: str, status: RunStatus) -> Any:
    """Return what a run came to."""
    row = ctx.app.store.run(thread_id, run_id)
    if status in (RunStatus.FAILED, RunStatus.BLOCKED, RunStatus.DEAD):
        return {ERROR: error_shape(None if row is None else row.error)}
    thread = ctx.app.store.thread(thread_id)
    graph = None if thread is None else ctx.app.graphs.find(thread.graph)
    if graph is None:
        return {}
    values = jsonable(graph.get_state({"configurable": {"thread_id": thread_id}}).values)
    if status is RunStatus.WAITING:
        asks = [jsonable(interrupt_of(wait)) for _, wait in asked(ctx, thread_id)]
        return {**(values if isinstance(values, dict) else {}), INTERRUPT: asks} if asks else values
    return values
