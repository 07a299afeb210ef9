"""Servers for tests of the door: a graph that asks, a clock in our hands, and one route for each kind of question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from bide import START, Bide, MemorySaver, StateGraph, interrupt
from bide.server import Settings, create_app
from bide.server.context import Who
from bide.server.settings import AuthSettings
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

    # In front of whatever else is served there.
    here = len(api.router.routes)
    api.add_api_route("/waits/probe/who", told, methods=["GET"])
    api.add_api_route("/assistants/probe/who", told, methods=["POST"])
    api.add_api_route("/waits/probe/answer", echo, methods=["POST"])
    api.add_api_route("/assistants/probe/echo", echo, methods=["POST"])
    api.add_api_route("/store/probe/fail", fail, methods=["GET"])
    api.add_api_route("/hooks/probe/in", told, methods=["POST"])
    api.add_api_route("/nowhere/in/the/table", told, methods=["GET"])
    api.router.routes[:0] = api.router.routes[here:]
    del api.router.routes[-7:]


WHO, RUNS, ANSWERS, ECHO = (
    "/waits/probe/who", "/assistants/probe/who", "/waits/probe/answer", "/assistants/probe/echo",
)  # fmt: skip


@contextmanager
def serving(store: Store, settings: Settings | None = None, **options: Any) -> Iterator[TestClient]:
    """Serve an application on this store."""
    api = create_app(application(store), settings or KEYS)
    add_probes(api)
    with TestClient(api, **options) as client:
        yield client
