"""How large a request may be, also one that does not say how large it is."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bide.server.auth.access import need_of
from bide.server.auth.paths import path_of
from bide.server.auth.refusal import Refused, refuse
from bide.server.caller import RESOLVE
from bide.server.settings import LimitSettings

MOST_DIGITS = 19
"""Of a Content-Length: nobody means more, and Python reads numbers of thousands of digits only when it is asked to."""


class BodyLimit:
    """Refuses requests of too many bytes: those that say so at once, the others when they have sent too much."""

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count what is read of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self._most(scope)
        said = Headers(scope=scope).get("content-length", "0")
        if not (said.isascii() and said.isdigit()):
            await refuse(Refused(400, f"Content-Length is {said[:40]!r}, and no number."), scope, receive, send)
            return
        if len(said) > MOST_DIGITS or int(said) > most:
            await refuse(Refused(413, _too_large(most), {"Connection": "close"}), scope, receive, send)
            return
        has_begun = False
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise _TooLarge(413, _too_large(most), {"Connection": "close"})
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except _TooLarge as problem:
            if has_begun:
                raise
            await refuse(Refused(413, problem.detail, problem.headers), scope, receive, send)

    def _most(self, scope: Scope) -> int:
        path = path_of(scope)
        # An answer is read by people and kept for good; whoever has a link has not even a key.
        is_answer = path.startswith("/w/") or need_of(scope["method"], path).scope == RESOLVE
        return min(self.limits.answer, self.limits.body) if is_answer else self.limits.body


class _TooLarge(HTTPException):
    """Too much was sent. It is one of Starlette's own, since FastAPI makes a 400 of all others on the way."""


def _too_large(most: int) -> str:
    return f"The request is too large: at most {most} bytes are read here. Send less, or a reference to it."
