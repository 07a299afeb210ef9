"""Addresses that nothing can be at: texts that no database keeps are refused before anybody looks for them."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_NOTHING = {"detail": "There is nothing here: an address with a NUL, or with half a character, names nothing."}
_ASKED = {"detail": "The query holds a NUL, which no text here has. Leave it out."}


class Addresses:
    """Answers 404 where a path holds a NUL or half a character, and 400 where a query holds a NUL."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if something could be where it leads."""
        if scope["type"] == "http" and _is_odd(scope["path"]):
            await JSONResponse(_NOTHING, 404)(scope, receive, send)
        elif scope["type"] == "http" and b"%00" in scope.get("query_string", b""):
            await JSONResponse(_ASKED, 400)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _is_odd(path: str) -> bool:
    return "\0" in path or any("\ud800" <= letter <= "\udfff" for letter in path)
