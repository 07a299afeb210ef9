"""How often somebody may call: each caller for each kind of request, each address at doors without a key."""

from __future__ import annotations

from collections.abc import Hashable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bide.clock import Clock
from bide.server.auth.access import DOOR, FREE, need_of
from bide.server.auth.buckets import Buckets, Rate, Taken
from bide.server.auth.paths import address_of, path_of
from bide.server.auth.refusal import Refused, refuse
from bide.server.caller import ANONYMOUS, Caller
from bide.server.settings import LimitSettings


class Limiter:
    """Counts requests; shared by what refuses them and by what has turned a caller away."""

    def __init__(self, limits: LimitSettings, clock: Clock) -> None:
        self.clock = clock
        self.buckets = Buckets()
        self.callers = Rate(limits.rate, max(limits.burst, 1))
        self.addresses = Rate(limits.public_rate, max(limits.public_burst, 1))

    def of_caller(self, caller: Caller, kind: str) -> Taken | None:
        """Count a request of a caller; None where nothing is limited."""
        return self._take(("caller", caller.owner, caller.identity, kind), self.callers)

    def of_address(self, scope: Scope, kind: str) -> Taken | None:
        """Count a request of somebody who is known by an address alone."""
        return self._take(("address", address_of(scope), kind), self.addresses)

    def _take(self, key: Hashable, rate: Rate) -> Taken | None:
        return self.buckets.take(key, rate, self.clock.now()) if rate.per_second > 0 else None


class RateLimit:
    """Turns away whoever calls too often, for as long as it takes; runs when it is known who calls."""

    def __init__(self, app: ASGIApp, limiter: Limiter) -> None:
        self.app = app
        self.limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if its caller's bucket is not empty."""
        taken = self._taken(scope) if scope["type"] in ("http", "websocket") else None
        if taken is None:
            await self.app(scope, receive, send)
            return
        if not taken.is_allowed:
            await refuse(too_many(taken), scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(taken.headers())
            await send(message)

        await self.app(scope, receive, told)

    def _taken(self, scope: Scope) -> Taken | None:
        kind = need_of(scope.get("method", "GET"), path_of(scope)).kind
        if kind == FREE:
            return None
        if kind == DOOR:
            return self.limiter.of_address(scope, kind)
        caller: Caller = scope.get("bide.caller", ANONYMOUS)
        # Without authentication everybody is the machine's own user: there is nobody to protect from somebody else.
        return self.limiter.of_caller(caller, kind) if caller.is_authenticated else None


def too_many(taken: Taken) -> Refused:
    """Say when to come again. Clients repeat a 429 by themselves, so nothing is refused for good with it."""
    return Refused(429, f"Too many requests: try again in {taken.retry_after} s.", taken.headers())
