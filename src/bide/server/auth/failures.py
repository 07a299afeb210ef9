"""Failures of the server itself, answered inside of what marks every response.

Starlette answers them outside of all middleware: such a response would have no id, and a page of another origin could
not even read that something went wrong.
"""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bide.server.auth.refusal import Refused, refuse
from bide.server.observe.requests import route_of

logger = logging.getLogger("bide.server")


class Failures:
    """Turns an exception that nobody has caught into a 500, if nothing was sent yet."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            if has_begun:
                raise  # half of an answer is there: all that is left is to cut it off
            logger.exception("%s %s failed.", scope["method"], route_of(scope), exc_info=error)
            refused = Refused(500, "The server failed to answer; its log says why.")
            await refuse(refused, scope, receive, noted)
