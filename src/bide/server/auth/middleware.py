"""The door: before any route sees a request, it is known who has sent it, and whether it may be sent at all."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bide.errors import BideError
from bide.server.auth.access import PUBLIC, need_of
from bide.server.auth.credentials import Credential, credential_of
from bide.server.auth.gate import Gate, OpenGate
from bide.server.auth.holding import serve_while
from bide.server.auth.paths import path_of
from bide.server.auth.rate_limit import Limiter, too_many
from bide.server.auth.refusal import Refused, refuse
from bide.server.auth.sessions import Sessions, cookie_of
from bide.server.auth.sharing import check_shared
from bide.server.auth.standing import Standings
from bide.server.auth.strangers import check_csrf, check_host, check_origin
from bide.server.caller import Caller
from bide.server.problems import status_of
from bide.server.settings import Settings
from bide.store import Store

CALLER, CSRF = "bide.caller", "bide.csrf"
NOBODY = Caller(identity="nobody", scopes=frozenset())
"""Who comes through a door without a key: it may do nothing but what that door is for."""


class Authentication:
    """Puts the caller into the scope, or turns the request away."""

    def __init__(
        self, app: ASGIApp, *, store: Store, gate: Gate, sessions: Sessions, settings: Settings, limiter: Limiter
    ) -> None:
        self.app = app
        self.store = store
        self.gate = gate
        self.sessions = sessions
        self.settings = settings
        self.limiter = limiter
        self.standings = Standings(gate, store.clock, settings.heartbeat)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on together with who has sent it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        read = Reread(receive)
        try:
            scope[CALLER], credential = await self._admitted(scope, read)
        except Refused as refused:
            await self._turn_away(refused, scope, receive, send)
            return
        except BideError as problem:
            status = status_of(problem)
            headers = {"Retry-After": "1"} if status == 503 else {}
            await refuse(Refused(status, str(problem), headers), scope, receive, send)
            return
        if credential is None:
            await self.app(scope, read.again, send)
        else:
            await serve_while(self.standings.of(credential), self.app, scope, read.again, send)

    async def _admitted(self, scope: Scope, read: Reread) -> tuple[Caller, Credential | None]:
        need = need_of(scope.get("method", "GET"), path_of(scope))
        is_open = isinstance(self.gate, OpenGate)
        if need.scope == PUBLIC:
            return (self.gate.everybody if isinstance(self.gate, OpenGate) else NOBODY), None
        is_socket = scope["type"] == "websocket"
        asked = {**scope, "type": "http", "method": "GET"} if is_socket else scope
        request = Request(asked, _nothing if is_socket else read)
        credential = None if is_open else await self._credential(scope)
        if credential is None or credential.is_ambient:
            check_origin(scope, self.settings)
        if is_open:
            check_host(scope, self.settings)
        if credential is not None and credential.is_ambient:
            await check_csrf(request, credential.csrf)
            scope[CSRF] = credential.csrf
        caller = await self.gate.caller(request, credential)
        if not caller.may(need.scope):
            raise Refused(403, f"This key may not do that: it needs the scope {need.scope!r}.")
        await check_shared(self.store, caller, scope)
        return caller, credential

    async def _credential(self, scope: Scope) -> Credential | None:
        """Return what the headers show; the cookie counts only where they show nothing."""
        cookie = cookie_of(scope)
        shown = credential_of(scope)
        if shown is not None or not cookie:
            return shown
        return await run_in_threadpool(self.sessions.opened, cookie)

    async def _turn_away(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if refused.status == 401:
            if _is_for_a_person(scope):
                here = quote(path_of(scope), safe="/")
                response = RedirectResponse(f"/login?next={here}", 303, {"Cache-Control": "no-store"})
                await response(scope, receive, send)
                return
            # Whoever is let in is not counted here: one who shares an address with a guesser is not kept out.
            taken = self.limiter.of_address(scope, "unknown")
            refused = refused if taken is None or taken.is_allowed else too_many(taken)
        await refuse(refused, scope, receive, send)


def _is_for_a_person(scope: Scope) -> bool:
    """Whether somebody has typed an address or followed a link, and can sign in."""
    headers = Headers(scope=scope)
    is_page = scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.get("accept", "")
    return is_page and headers.get("sec-fetch-mode", "navigate") == "navigate" and credential_of(scope) is None


async def _nothing() -> Message:
    """Be the body of a request that has none: what comes through a socket is not for the door."""
    return {"type": "http.request", "body": b"", "more_body": False}


class Reread:
    """A request's body that was looked at before the route: what was read of it is given again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen: list[Message] = []

    async def __call__(self) -> Message:
        """Read, and remember."""
        message: MutableMapping[str, Any] = await self._receive()
        self._seen.append(message)
        return message

    async def again(self) -> Message:
        """Give what was read before, in its order, and then go on."""
        return self._seen.pop(0) if self._seen else await self._receive()
