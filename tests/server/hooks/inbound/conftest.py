"""A server with hooks, over a store of each kind, and threads that wait for their calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypedDict

import pytest
from starlette.testclient import TestClient

from bide import START, Bide, StateGraph, Store, wait_for
from bide.server import Settings, create_app
from bide.server.settings import HookSettings, LimitSettings
from bide.testing import FakeClock
from bide.waits import webhook
from tests.stores import opened_store

NO_LIMITS = LimitSettings(public_rate=0)


class Waiting(TypedDict, total=False):
    hook: str
    lookback: str
    came: Any


def listen(state: Waiting) -> dict[str, Any]:
    return {"came": wait_for(webhook(state["hook"], lookback=state["lookback"])).value}


class World:
    """An application, its server, and a client of it."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack) -> None:
        self.store, self.clock, self._stack = store, clock, stack
        self.app = Bide(store, [StateGraph(Waiting).add_node(listen).add_edge(START, "listen").compile(name="waits")])

    def serve(self, *hooks: HookSettings, **settings: Any) -> TestClient:
        """Serve these hooks."""
        api = create_app(self.app, Settings(hooks=hooks, **{"limits": NO_LIMITS, "worker": False, **settings}))
        return self._stack.enter_context(TestClient(api))

    def wait(self, hook: str, thread_id: str = "t", *, lookback: str = "24h", owner: str | None = None) -> None:
        """Let a thread wait for a call of a hook."""
        self.app.start("waits", {"hook": hook, "lookback": lookback}, thread_id=thread_id, owner=owner)
        self.settle()

    def settle(self) -> None:
        while self.app.run_ready(most=10):
            pass

    def came(self, thread_id: str = "t") -> Any:
        """What the thread got, once it has gone on."""
        self.settle()
        return self.app.get(thread_id).values.get("came")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=("file", "postgres"))
def world(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[World]:
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(request, tmp_path, clock=clock))
        yield World(store, clock, stack)


@pytest.fixture
def small(tmp_path: Path, clock: FakeClock) -> Iterator[World]:
    """The same in memory, for what has nothing to do with the database."""
    with ExitStack() as stack:
        yield World(stack.enter_context(Store.open(":memory:", clock=clock)), clock, stack)
