"""Tells open pages that something has changed; what it is, they ask for themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from bide.clock import elapsed
from bide.errors import StoreError
from bide.server.caller import READ, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_thread
from bide.server.pages.look import count_open
from bide.server.pages.page_routes import pages_router
from bide.store.feed import latest_cursor

router = pages_router()

AT_MOST_EVERY = 0.5
"""Seconds between two words to the same page: more often than that nobody can read."""
RETRY = b"retry: 1000\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get("/inbox/live")
async def live(request: Request, server: Server, who: Who, thread: str | None = None) -> Response:
    """Follow everything that is the caller's, or one thread."""
    need(who, READ)
    if thread is not None:
        await run_in_threadpool(owned_thread, server.app, who, thread)
    return StreamingResponse(_told(server, who, thread), media_type="text/event-stream", headers=HEADERS)


async def _told(server: Context, caller: Caller, thread_id: str | None) -> AsyncIterator[bytes]:
    """Say that something has changed whenever it has, and that somebody is still there otherwise."""
    yield RETRY
    known: tuple[object, ...] | None = None
    spoken, has_news = elapsed(), True
    with server.hub.watch(thread_id) as watch:
        while not server.stopping.is_set():
            if has_news:
                pulse = await run_in_threadpool(_pulse, server, caller, thread_id)
                if pulse is not None and pulse != known:
                    known, spoken = pulse, elapsed()
                    yield f"event: changed\ndata: {json.dumps({'waiting': pulse[-1]})}\n\n".encode()
            if elapsed() - spoken >= server.settings.heartbeat:
                spoken = elapsed()
                yield b": still here\n\n"
            has_news = await watch.news(AT_MOST_EVERY)


def _pulse(server: Context, caller: Caller, thread_id: str | None) -> tuple[object, ...] | None:
    """Return as little as tells whether a page is still true; None when the database cannot be asked now."""
    store = server.app.store
    try:
        if thread_id is None:
            return latest_cursor(store), count_open(server.app, caller.owner)
        found = store.database.read(lambda tx: tx.one("peek_thread", {"thread_id": thread_id}))
        return (*(found or ()), count_open(server.app, caller.owner))
    except StoreError:
        return None
