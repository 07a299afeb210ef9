"""Servers for tests of the door: a graph that asks, a clock in our hands, and one route for each kind of question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from bide import START, Bide, MemorySaver, StateGraph, interrupt
from bide.server import Settings
from bide.server.auth.protect import protect
from bide.server.context import Context, Who
from bide.server.problems import handle_problems
from bide.server.settings import AuthSettings
from bide.server.streams.hub import Hub
from bide.store import Store

KEYS = Settings(auth=AuthSettings("keys"))
START_OF_TIME = 1_800_000_000_000


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: int = START_OF_TIME) -> None:
        self.instant = now

    def now(self) -> int:
        return self.instant

    def advance(self, seconds: float) -> None:
        self.instant += int(seconds * 1000)


class Asked(TypedDict, total=False):
    answer: str


def ask(state: Asked) -> dict[str, Any]:
    return {"answer": interrupt("May I?")}


def application(store: Store) -> Bide:
    return Bide(store, [StateGraph(Asked).add_node(ask).add_edge(START, "ask").compile(name="asking")])


def store_with(clock: FakeClock | None = None, **options: Any) -> Store:
    return MemorySaver(clock=clock or FakeClock(), **options)


def add_probes(api: FastAPI) -> None:
    """Routes at addresses that the table of needs knows, which say who came in."""

    def told(request: Request, who: Who) -> dict[str, Any]:
        return {"identity": who.identity, "owner": who.owner, "scopes": sorted(who.scopes), "user": dict(who.user)}

    async def echo(request: Request, who: Who) -> dict[str, Any]:
        return {"owner": who.owner, "body": (await request.body()).decode()}

    def fail() -> None:
        raise RuntimeError("broken on purpose")

    def alive() -> str:
        return "ok"

    api.add_api_route("/waits/probe/who", told, methods=["GET"])
    api.add_api_route("/assistants/probe/who", told, methods=["POST"])
    api.add_api_route("/waits/probe/answer", echo, methods=["POST"])
    api.add_api_route("/assistants/probe/echo", echo, methods=["POST"])
    api.add_api_route("/store/probe/fail", fail, methods=["GET"])
    api.add_api_route("/hooks/probe/in", told, methods=["POST"])
    api.add_api_route("/nowhere/in/the/table", told, methods=["GET"])
    api.add_api_route("/health", alive, methods=["GET"])


WHO, RUNS, ANSWERS, ECHO = (
    "/waits/probe/who", "/assistants/probe/who", "/waits/probe/answer", "/assistants/probe/echo",
)  # fmt: skip


def door(store: Store, settings: Settings) -> FastAPI:
    """A server with a door and nothing behind it but what asks who came in: it is made in a moment."""
    api, app = FastAPI(), application(store)
    api.state.bide = Context(app, settings, Hub(store))
    handle_problems(api)
    protect(api, app, settings)
    add_probes(api)
    return api


@contextmanager
def serving(store: Store, settings: Settings | None = None, **options: Any) -> Iterator[TestClient]:
    """Serve an application on this store."""
    with TestClient(door(store, settings or KEYS), **options) as client:
        yield client
