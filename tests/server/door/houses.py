"""Two owners at one server, in each way of telling callers apart, and every route that there is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from langgraph_sdk import Auth
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.testclient import TestClient

from bide import Bide, Store
from bide.clock import SystemClock
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.auth.paths import routes_of
from bide.server.caller import READ, RESOLVE, RUN, SCOPES
from bide.server.settings import AuthSettings, LimitSettings
from tests.server.household import Things, furnish, graphs

LIMITS = LimitSettings(rate=0, public_rate=0)
JWT = {"issuer": "https://issuer.example", "audience": "bide", "secret": "a secret that is long enough for HS256"}
SOCKET = "SOCKET"

Header = dict[str, str]


def routes() -> list[tuple[str, str]]:
    """Every method and path that the server knows, as it is put together: no list that somebody must keep."""
    store = Store.open(":memory:")
    found = {one for route in routes_of(create_app(Bide(store, graphs()))) for one in _ways(route)}
    store.close()
    return sorted(found)


def _ways(route: BaseRoute) -> Iterator[tuple[str, str]]:
    if isinstance(route, WebSocketRoute):
        yield SOCKET, route.path
    for method in getattr(route, "methods", None) or ():
        yield method, route.path  # type: ignore[attr-defined]


@dataclass
class House:
    """A server with an owner who has one of everything, and a stranger."""

    app: Bide
    file: Path
    ours: TestClient
    theirs: TestClient
    things: Things
    is_shared: bool = False
    """Whether both have one owner, and only filters of the application's handlers keep them apart."""

    def dump(self) -> set[tuple[Any, ...]]:
        """Everything that is in the database, row by row, but for what changes by being called."""
        with sqlite3.connect(self.file) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                (table, *row)
                for table in tables
                if table not in ("api_keys", "workers", "audit", "sqlite_sequence")
                for row in connection.execute(f'SELECT * FROM "{table}"')
            }


def _by_keys(store: Store) -> tuple[AuthSettings, Callable[[str], Header]]:
    def key(owner: str) -> Header:
        return {"x-api-key": create_key(store, owner, owner, SCOPES)[0]}

    return AuthSettings("keys"), key


def _by_tokens(store: Store) -> tuple[AuthSettings, Callable[[str], Header]]:
    def token(owner: str) -> Header:
        now = SystemClock().now() // 1000
        claims = {"sub": f"{owner}-ada", "org": owner, "iss": JWT["issuer"], "aud": "bide", "exp": now + 3600}
        scopes = " ".join(SCOPES)
        return {"Authorization": f"Bearer {jwt.encode({**claims, 'scope': scopes}, JWT['secret'], 'HS256')}"}

    return AuthSettings("jwt", jwt={**JWT, "owner_claim": "org"}), token


def _by_handlers(store: Store) -> tuple[AuthSettings, Callable[[str], Header]]:
    auth = Auth()

    @auth.authenticate
    async def who(authorization: str | None) -> dict[str, Any]:
        return {"identity": (authorization or "").removeprefix("Bearer "), "permissions": [READ, RUN, RESOLVE]}

    @auth.on
    async def own(ctx: Auth.types.AuthContext, value: Any) -> Any:
        if ctx.resource == "store":
            value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
            return None
        if ctx.action in ("create", "create_run", "update") and isinstance(value.get("metadata"), dict):
            value["metadata"]["owner"] = ctx.user.identity
        return {"owner": ctx.user.identity}

    return AuthSettings("custom", handler=auth), lambda owner: {"Authorization": f"Bearer {owner}"}


WAYS = {"keys": _by_keys, "tokens": _by_tokens, "handlers": _by_handlers}


@contextmanager
def house(folder: Path, way: str, **settings: Any) -> Iterator[House]:
    """Open a server, furnish it for one owner, and let a stranger in."""
    file = folder / "bide.db"
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(f"sqlite:///{file}"))
        auth, header = WAYS[way](store)
        app = Bide(store, graphs())
        said = {"limits": LIMITS, "worker": False, "heartbeat": 0.05, **settings}
        api = create_app(app, Settings(auth=auth, **said))
        stack.enter_context(TestClient(api))  # it begins, and ends
        ours = TestClient(api, headers=header("acme"), follow_redirects=False)
        theirs = TestClient(api, headers=header("rival"), follow_redirects=False)
        is_shared = way == "handlers"
        owner = "" if is_shared else "acme"
        things = furnish(app, ours, owner, "acme", {"owner": "acme"} if is_shared else {})
        yield House(app, file, ours, theirs, things, is_shared)
