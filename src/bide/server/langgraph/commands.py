"""The thread protocol over HTTP and WebSocket: commands in, numbered events out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Query, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from bide.errors import BideError
from bide.runtime.following import Cursor
from bide.server.caller import READ, RUN, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import checked_id, need, owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.protocol_commands import CommandError, perform
from bide.server.langgraph.wire import read_list, thread_place
from bide.server.problems import Problem, not_found
from bide.server.streams.log import Log, Place, check_place, read_place
from bide.server.streams.protocol import Happened, ThreadStory, event_of, told_through
from bide.server.streams.protocol import Subscription as Wanted
from bide.server.streams.sse import HEARTBEAT, STREAMED, EventStream, Pulse, frame, part, streamed, unending
from bide.server.streams.thread_stream import thread_frames

router = APIRouter(tags=["thread protocol"], route_class=PlainJsonRoute)


class Subscribe(BaseModel):
    """What somebody wants to hear of a thread."""

    model_config = ConfigDict(extra="ignore")

    channels: list[str] = Field(default_factory=list, max_length=100)
    namespaces: list[list[str]] | None = Field(None, max_length=1000)
    depth: int | None = Field(None, ge=0)
    since: int | None = Field(None, ge=0)

    def read(self) -> Wanted:
        """Return it as the stream asks it."""
        namespaces = tuple(tuple(one) for one in self.namespaces or ())
        return Wanted(frozenset(self.channels), namespaces, self.depth, self.since or 0)


@router.post("/threads/{thread_id}/commands")
async def command(thread_id: str, request: Request, ctx: Server, who: Who) -> JSONResponse:
    """Do one command: start a run, answer what is asked, ask about the agent."""
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Problem(400, "The command is no JSON.") from None
    return JSONResponse(await _performed(ctx, request, who, thread_id, said))


async def _performed(ctx: Context, request: Any, who: Caller, thread_id: str, said: Any) -> dict[str, Any]:
    if not isinstance(said, dict) or type(said.get("id")) is not int or not isinstance(said.get("method"), str):
        raise Problem(400, "A command is an object with a whole number `id`, a `method`, and `params`.")
    checked_id("thread", thread_id)
    await run_sync(_check_readable, ctx, request, who, thread_id)
    try:
        before = await run_sync(told_through, ctx, thread_id)
        result = await run_sync(perform, ctx, request, who, thread_id, said["method"], said.get("params") or {})
        return {"type": "success", "id": said["id"], "result": result, "meta": {"applied_through_seq": before}}
    except CommandError as refused:
        return _error(said["id"], refused.code, str(refused))
    except Problem as problem:
        return _error(said["id"], "permission_denied" if problem.status == 403 else "invalid_argument", problem.detail)
    except BideError as problem:
        return _error(said["id"], "invalid_argument", str(problem))


def _error(id_: int | None, code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "id": id_, "error": code, "message": message}


@router.post("/threads/{thread_id}/stream/events", response_class=EventStream, responses=STREAMED)
async def stream_events(thread_id: str, body: Subscribe, request: Request, ctx: Server, who: Who) -> StreamingResponse:
    """Stream what happens in a thread across its runs, from its beginning or behind a number; it may not exist yet."""
    checked_id("thread", thread_id)
    await run_sync(_check_readable, ctx, request, who, thread_id)
    return streamed(_events(ctx, who, thread_id, body.read()))


def _check_readable(ctx: Context, request: Any, who: Caller, thread_id: str) -> None:
    owner = ctx.app.store.owner_of(thread_id)
    if owner is not None and owner != who.owner:
        raise not_found("thread", thread_id)
    if owner is not None:
        allow(ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)


async def _events(ctx: Context, who: Caller, thread_id: str, wanted: Wanted) -> AsyncIterator[bytes]:
    pulse = Pulse(ctx.settings.heartbeat)
    async for event in told(ctx, who, thread_id, wanted):
        if event is not None:
            yield frame(part(event["method"], event), str(event["seq"]))
        elif pulse.beat():
            yield HEARTBEAT


async def told(ctx: Context, who: Caller, thread_id: str, wanted: Wanted) -> AsyncIterator[dict[str, Any] | None]:
    """Yield the events of a thread that somebody wants to hear, for ever; None while nothing happens."""
    async for number, happened in _happening(ctx, who, thread_id, wanted.since):
        if happened is None:
            yield None
        elif wanted.wants(number, happened):
            yield event_of(number, thread_id, happened)


async def _happening(
    ctx: Context, who: Caller, thread_id: str, since: int
) -> AsyncIterator[tuple[int, Happened | None]]:
    """Yield what happens in a thread, with its number, for ever; None while nothing happens."""
    async for _ in _appearing(ctx, who, thread_id):
        yield 0, None
    story = ThreadStory(ctx, thread_id, is_new=since == 0)
    story.since = since
    async for entry in Log(ctx, thread_id).live():
        if entry is None:
            yield 0, None
            continue
        for number, happened in await run_sync(story.happened, entry):
            yield number, happened


async def _appearing(ctx: Context, who: Caller, thread_id: str) -> AsyncIterator[None]:
    """Wait for a thread that a client follows before it has begun."""
    with ctx.hub.watch(thread_id) as watch:
        while not ctx.stopping.is_set():
            if await run_sync(_is_there, ctx, who, thread_id):
                return
            yield
            await watch.news(ctx.settings.heartbeat)


def _is_there(ctx: Context, who: Caller, thread_id: str) -> bool:
    """Whether there is such a thread by now, and it is one that the caller may see."""
    if ctx.app.store.owner_of(thread_id) != who.owner:
        return False
    try:
        _check_readable(ctx, who, who, thread_id)
    except Problem:
        return False
    return True


@router.get("/threads/{thread_id}/stream", response_class=EventStream, responses=STREAMED)
async def stream_thread(
    thread_id: str,
    request: Request,
    ctx: Server,
    who: Who,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    stream_modes: Annotated[list[str] | None, Query()] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=200)] = None,
) -> StreamingResponse:
    """Stream all runs of a thread, one after the other; it stays open while the thread waits or is at rest.

    It begins now; with `Last-Event-ID` behind that event, and with `-` at the beginning of the thread.
    """
    await run_sync(owned_thread, ctx.app, who, thread_id)
    await run_sync(allow, ctx, request, "threads", "read", {"thread_id": thread_id}, thread_id)
    modes = tuple(read_list([*(stream_mode or ()), *(stream_modes or ())])) or ("run_modes",)
    unknown = [mode for mode in modes if mode not in ("run_modes", "lifecycle", "state_update")]
    if unknown:
        raise Problem(422, f"There is no mode {unknown[0]!r} of a thread's stream: run_modes, lifecycle, state_update.")
    place = read_place(last_event_id) or (Place(Cursor()) if last_event_id else None)
    await run_sync(check_place, ctx, thread_id, place)
    frames = unending(thread_frames(ctx, thread_id, frozenset(modes), place), ctx.stopping)
    return streamed(frames, {"Location": f"{thread_place(thread_id)}/stream"})


# ── WebSocket ──────────────────────────────────────────────────────────────────────────────────────────────────────


@router.websocket("/threads/{thread_id}/stream/events")
async def socket(websocket: WebSocket, thread_id: str) -> None:
    """Serve commands and subscriptions over one connection."""
    ctx: Context = websocket.app.state.bide
    who: Caller = websocket.scope.get("bide.caller", Caller())
    try:
        need(who, READ)
        checked_id("thread", thread_id)
        await run_sync(_check_readable, ctx, websocket, who, thread_id)
    except Problem as problem:
        await websocket.close(4000 + problem.status, problem.detail[:120])
        return
    await websocket.accept()
    await _Socket(ctx, who, thread_id, websocket).serve()


class _Socket:
    """One open connection."""

    def __init__(self, ctx: Context, who: Caller, thread_id: str, websocket: WebSocket) -> None:
        self.ctx = ctx
        self.who = who
        self.thread_id = thread_id
        self.websocket = websocket
        self._subscriptions: dict[str, Wanted] = {}
        self._made = 0
        self._telling: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Answer until the other side leaves."""
        stopping = asyncio.create_task(self._close_when_stopping())
        try:
            while True:
                await self._answer(await self.websocket.receive_text())
        except WebSocketDisconnect:
            pass
        finally:
            stopping.cancel()
            if self._telling is not None:
                self._telling.cancel()

    async def _close_when_stopping(self) -> None:
        await self.ctx.stopping.wait()
        await self.websocket.close(1012, "The server is stopping.")

    async def _answer(self, text: str) -> None:
        try:
            said = json.loads(text)
        except ValueError:
            await self._send(_error(None, "invalid_argument", "That is no JSON."))
            return
        method = said.get("method") if isinstance(said, dict) else None
        if method in ("subscription.subscribe", "subscription.reconnect"):
            await self._subscribe(said)
        elif method == "subscription.unsubscribe":
            await self._unsubscribe(said)
        else:
            await self._command(said)

    async def _command(self, said: Any) -> None:
        try:
            need(self.who, RUN)
            await self._send(await _performed(self.ctx, self.websocket, self.who, self.thread_id, said))
        except Problem as problem:
            id_ = said.get("id") if isinstance(said, dict) else None
            await self._send(_error(id_, "invalid_argument", problem.detail))

    async def _subscribe(self, said: dict[str, Any]) -> None:
        try:
            wanted = Subscribe(**(said.get("params") or {})).read()
        except (TypeError, ValueError):
            await self._send(_error(said.get("id"), "invalid_argument", "These are no params of a subscription."))
            return
        self._made += 1
        name = f"sub-{self._made}"
        result = {"subscription_id": name, "replayed_events": 0}
        await self._send({"type": "success", "id": said.get("id"), "result": result})
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        self._subscriptions[name] = wanted
        self._telling = asyncio.create_task(self._tell())

    async def _unsubscribe(self, said: dict[str, Any]) -> None:
        name = (said.get("params") or {}).get("subscription_id")
        self._subscriptions.pop(str(name), None)
        await self._send({"type": "success", "id": said.get("id"), "result": {}})

    async def _tell(self) -> None:
        """Tell each what it has not heard, from the beginning: one reader for all, so that events keep their order.

        A client that hears of a run's end by one subscription takes nothing more from the others.
        """
        since = min(wanted.since for wanted in self._subscriptions.values())
        async for number, happened in _happening(self.ctx, self.who, self.thread_id, since):
            if happened is None:
                continue
            hearing = {name: wanted for name, wanted in self._subscriptions.items() if wanted.wants(number, happened)}
            if hearing:
                await self._send(event_of(number, self.thread_id, happened))
            for name in hearing.keys() & self._subscriptions.keys():  # one may have been given up meanwhile
                self._subscriptions[name] = hearing[name]._replace(since=number)

    async def _send(self, sent: dict[str, Any]) -> None:
        await self.websocket.send_text(json.dumps(sent, ensure_ascii=False))
