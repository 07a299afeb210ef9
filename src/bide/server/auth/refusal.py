"""A request that is turned away before any route has seen it: the same shape as every other error."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

POLICY_VIOLATION = 1008


class Refused(Exception):
    """Why a request is turned away."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def unauthenticated(detail: str, *, scheme: str = "Bearer", error: str = "") -> Refused:
    """Say that nobody known has sent it, and how a caller makes itself known."""
    challenge = f'{scheme} realm="bide"' + (f', error="{error}"' if error else "")
    return Refused(401, detail, {"WWW-Authenticate": challenge})


async def refuse(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that was turned away; of a socket that is not open yet, the handshake."""
    if scope["type"] == "websocket":
        await WebSocketClose(POLICY_VIOLATION, refused.detail[:120])(scope, receive, send)
        return
    response = JSONResponse({"detail": refused.detail}, refused.status, headers=refused.headers)
    await response(scope, receive, send)
