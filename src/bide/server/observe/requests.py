"""One line, one count and one span for each request: around everything else that is done with it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from bide.clock import elapsed
from bide.runtime.about import concerning

if TYPE_CHECKING:
    from bide.server.observe.metrics import Metrics
    from bide.server.observe.tracing import Tracing

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("bide.access")

REQUEST_ID = "bide.request_id"
"""Where the id of a request is in its scope; whoever gives it one is further inside."""
NO_ROUTE = "(none)"
"""What a request is called that fits no route: its address may hold anything, and there are endlessly many."""
QUIET = frozenset({"/health", "/ready", "/metrics", "/ok"})
"""Asked every few seconds by machines: nobody wants to read that."""
_SHOWN = ("thread_id", "run_id", "wait_id")
"""What of an address is safe to be shown, because it is an id; a token is not."""


def route_of(scope: Scope) -> str:
    """Return the template of the route that a request came to, as `/threads/{thread_id}`: it holds no secret."""
    return str(getattr(scope.get("route"), "path", NO_ROUTE))


class Observed:
    """ASGI middleware that sees every request begin and end."""

    def __init__(self, app: App, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self.app = app
        self.metrics = metrics
        self.tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope, self.metrics)
        with concerning(request.about):
            try:
                if self.tracing is None:
                    await self.app(scope, receive, request.sending(send))
                else:
                    with self.tracing.request(scope, request):
                        await self.app(scope, receive, request.sending(send))
            except Exception:
                request.begin_answer(500)
                raise
            finally:
                request.log()


class Request:
    """A request under way."""

    def __init__(self, scope: Scope, metrics: Metrics) -> None:
        self.scope = scope
        self.status = 0
        self._metrics = metrics
        self._began = elapsed()

    @property
    def method(self) -> str:
        """Its verb."""
        return str(self.scope["method"])

    @property
    def route(self) -> str:
        """Its route, once that is found."""
        return route_of(self.scope)

    def about(self) -> dict[str, Any]:
        """Return what is known of it by now."""
        caller = self.scope.get("bide.caller")
        given = self.scope.get("path_params") or {}
        known = {name: given[name] for name in _SHOWN if name in given}
        named = {"request_id": self.scope.get(REQUEST_ID), "caller": getattr(caller, "identity", None)}
        return {**named, "route": self.route, **known}

    def sending(self, send: Send) -> Send:
        """Look at the answer on its way."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.begin_answer(int(message["status"]))
            await send(message)

        return told

    def begin_answer(self, status: int) -> None:
        """Count it. A stream goes on for hours: what is measured is how long its first byte took."""
        if not self.status:
            self.status = status
            self._metrics.count_request(self.route, self.method, status, elapsed() - self._began)

    def log(self) -> None:
        """Write its line, when all of it is over."""
        spent = (elapsed() - self._began) * 1000
        quiet = self.route in QUIET and self.status < 400
        about = {"method": self.method, "status": self.status or None, "duration_ms": round(spent, 1)}
        logger.log(
            logging.DEBUG if quiet else logging.INFO,
            "%s %s %s in %.1f ms",
            self.method,
            self.route,
            self.status or "without an answer",
            spent,
            extra={"about": about},
        )
