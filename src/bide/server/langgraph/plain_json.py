"""JSON whatever it calls itself: some clients in browsers send it as plain text, or do not say what they send."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

_JSON = (b"content-type", b"application/json")


class PlainJsonRoute(APIRoute):
    """A route that reads JSON also where a request says that it is plain text, or nothing.

    What keeps strangers' pages out looks at where a request comes from, never at what it calls its body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answered = super().get_route_handler()

        async def answer(request: Request) -> Response:
            said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if said not in ("", "text/plain"):
                return await answered(request)
            headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
            return await answered(Request({**request.scope, "headers": [*headers, _JSON]}, request.receive))

        return answer
