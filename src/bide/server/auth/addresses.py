"""Addresses that nothing can be at: texts that no database keeps are refused before anybody looks for them."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_DETAIL = {"detail": "There is nothing here: an address with a NUL, or with half a character, names nothing."}


class Addresses:
    """Answers 404 where a path or a query holds a NUL, or bytes that are no UTF-8."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if something could be where it leads."""
        if scope["type"] == "http" and _is_odd(scope):
            await JSONResponse(_DETAIL, 404)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_odd(scope: Scope) -> bool:
    path: str = scope["path"]
    return "\0" in path or b"%00" in scope.get("query_string", b"") or any("\ud800" <= one <= "\udfff" for one in path)
