"""A name for every request, so that a line of a log and a complaint can be put together."""

from __future__ import annotations

import re
from secrets import token_hex

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
KEY = "bide.request_id"
"""Where it is in an ASGI scope."""
_SANE = re.compile(r"[A-Za-z0-9._:@/+=-]{1,128}")


class RequestIds:
    """Gives each request an id, or takes over the caller's, and says it in the response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its id."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        # Whatever else a caller sends would be written into our logs by a stranger.
        name = scope[KEY] = given if _SANE.fullmatch(given) else token_hex(16)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        await self.app(scope, receive, named)
