"""`GET /events`: whatever happens in all threads of the caller, in one order; as pages, or as a stream that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from bide.clock import iso
from bide.server.caller import READ, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need
from bide.server.streams.hub import Watch
from bide.server.streams.sse import HEARTBEAT, frame, part
from bide.shape.shown import jsonable
from bide.store.feed import Feed, FeedEvent, latest_cursor, read_feed, read_place

router = APIRouter(tags=["events"])

PAGE, LARGEST_PAGE = 100, 1000
FROM_THE_START = ("-1", "-")
"""What clients say as their last event who have seen none."""
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventShown(BaseModel):
    """One line of a thread's log."""

    id: str
    """Its place among the events of all threads."""
    kind: str
    at: str
    thread_id: str
    graph: str
    run_id: str | None
    number: int
    """Its number in the log of its thread."""
    data: Any


class EventPage(BaseModel):
    """Events, and where to go on."""

    events: list[EventShown]
    cursor: str
    """`since` of the next page."""
    more: bool


@router.get(
    "/events",
    summary="What happens in all threads",
    responses={200: {"model": EventPage, "content": {"text/event-stream": {}}}},
    response_class=JSONResponse,
)
async def events(
    request: Request,
    server: Server,
    caller: Who,
    since: Annotated[str | None, Query(max_length=64, description="The cursor of the last page, or `now`.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = PAGE,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> Response:
    """Tell events behind a cursor. With `Accept: text/event-stream` they are streamed as they happen: from where
    `Last-Event-ID` or `since` says, else from now on."""
    need(caller, READ)
    if "text/event-stream" not in request.headers.get("accept", ""):
        return await run_in_threadpool(_page, server, caller, since, limit)
    start = await run_in_threadpool(_start, server, since, last_event_id)
    return StreamingResponse(
        _stream(server, caller, start, limit), media_type="text/event-stream", headers=STREAM_HEADERS
    )


def _page(ctx: Context, caller: Caller, since: str | None, limit: int) -> Response:
    after = latest_cursor(ctx.app.store) if since == "now" else since or None
    feed = read_feed(ctx.app.store, after, limit, caller.owner)
    page = EventPage(events=[_shown(event) for event in feed.events], cursor=feed.cursor, more=feed.is_more)
    return JSONResponse(page.model_dump())


def _start(ctx: Context, since: str | None, last_event_id: str | None) -> str | None:
    """Return behind which place a stream begins; one that cannot be read is refused before it begins."""
    said = last_event_id or since or "now"
    if said in FROM_THE_START:
        return None
    if said == "now":
        return latest_cursor(ctx.app.store)
    read_feed(ctx.app.store, said, 1)
    return str(read_place(said))


def _shown(event: FeedEvent) -> EventShown:
    return EventShown(
        id=event.cursor,
        kind=event.kind,
        at=iso(event.at),
        thread_id=event.thread_id,
        graph=event.graph,
        run_id=event.run_id,
        number=event.number,
        data=jsonable(event.body),
    )


# ── As a stream ────────────────────────────────────────────────────────────────────────────────────────────────────


async def _stream(ctx: Context, caller: Caller, after: str | None, limit: int) -> AsyncIterator[bytes]:
    """Tell page after page, as fast as the client takes it; nothing is kept for one that is slow."""
    with _listening(ctx) as news:
        while not ctx.stopping.is_set():
            end = ctx.hub.end
            feed: Feed = await run_in_threadpool(read_feed, ctx.app.store, after, limit, caller.owner)
            if feed.events:
                yield b"".join(map(_frame, feed.events))
            after = feed.cursor
            while not feed.is_more and not ctx.stopping.is_set():
                if not await news():
                    yield HEARTBEAT
                if ctx.hub.end != end:
                    break


def _frame(event: FeedEvent) -> bytes:
    return frame(part(event.kind, _shown(event).model_dump()), event.cursor)


@contextmanager
def _listening(ctx: Context) -> Iterator[Any]:
    """Give a function that waits for news, until a heartbeat is due, or until the server stops."""
    stopping = asyncio.ensure_future(ctx.stopping.wait())
    loop = asyncio.get_running_loop()
    due = loop.time() + ctx.settings.heartbeat

    async def news(watch: Watch) -> bool:
        nonlocal due
        waiting = asyncio.ensure_future(watch.news(max(0.0, due - loop.time())))
        try:
            await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        # On a busy server there is news all the time, and perhaps none of it is this caller's.
        if stopping.done() or loop.time() < due:
            return True
        due = loop.time() + ctx.settings.heartbeat
        return False

    try:
        with ctx.hub.watch(None) as watch:
            yield lambda: news(watch)
    finally:
        stopping.cancel()
