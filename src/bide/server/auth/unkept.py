"""What is said of every answer that does not say otherwise: it is for its caller, and is what it says it is."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAID = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Unkept:
    """Keeps answers out of caches: one that lies between may not know that `x-api-key` makes them private."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SAID.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, marked)
