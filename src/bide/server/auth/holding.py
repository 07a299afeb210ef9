"""Connections that stay open: they are cut when whoever has opened them is let in no more.

A stream sends something at every heartbeat at least, so that is when it is looked at. A socket may be quiet for days:
it is looked at as often, and whatever comes through it counts as a request of its own.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bide.server.auth.refusal import POLICY_VIOLATION
from bide.server.auth.standing import Standing


class ShutOut(Exception):
    """Whoever had something open may not come in any more."""


async def serve_while(standing: Standing, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a request for as long as whoever has sent it would be let in."""
    serve = _socket if scope["type"] == "websocket" else _answer
    await serve(standing, app, scope, receive, send)


async def _answer(standing: Standing, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    is_read, cut = False, asyncio.Event()

    async def received() -> Message:
        nonlocal is_read
        if is_read:  # what is left to be heard is that the other side is gone
            return await _unless(cut, receive)
        message = await receive()
        is_read = not message.get("more_body", False)
        return message

    async def sent(message: Message) -> None:
        is_more = message.get("more_body", False)
        if cut.is_set():
            if is_more:
                await asyncio.sleep(standing.seconds)
                raise ShutOut  # nobody listens
        elif not is_more or await standing.holds():
            await send(message)
        else:
            cut.set()  # whoever listens for the end stops what is told, wherever that waits

    try:
        await app(scope, received, sent)
    except Exception:
        # Left without a proper end, which a client would take for that of the run: it comes back, and is refused.
        if not cut.is_set():
            raise


async def _unless(cut: asyncio.Event, receive: Receive) -> Message:
    """Wait for what comes next; once it is cut, that is the end."""
    waiting, cutting = asyncio.ensure_future(receive()), asyncio.ensure_future(cut.wait())
    try:
        await asyncio.wait({waiting, cutting}, return_when=asyncio.FIRST_COMPLETED)
        return {"type": "http.disconnect"} if cut.is_set() else waiting.result()
    finally:
        waiting.cancel()
        cutting.cancel()


async def _socket(standing: Standing, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    is_cut = False

    async def received() -> Message:
        nonlocal is_cut
        message = await _next(standing, receive)
        if message is not None:
            return message
        is_cut = True
        return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    await app(scope, received, send)
    if is_cut:
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "Its key opens nothing any more."})


async def _next(standing: Standing, receive: Receive) -> Message | None:
    """Wait for what comes through a socket; None when whoever has opened it is let in no more."""
    waiting = asyncio.ensure_future(receive())
    try:
        while not (await asyncio.wait({waiting}, timeout=standing.seconds))[0]:
            if not await standing.holds():
                return None
        message = await waiting
    finally:
        waiting.cancel()
    is_said = message["type"] == "websocket.receive"
    return message if not is_said or await standing.holds(at_once=True) else None
