"""An application over a store of each kind, whose world outside listens on loopback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Bide, Store, ask
from tests.runtime.world import StillClock, graph
from tests.server.outgoing.outside import Receiver, receiving
from tests.stores import KINDS, opened_store


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


def answering(state: dict[str, Any]) -> dict[str, Any]:
    if state["given"] == "fail":
        raise ValueError("it fails")
    return {"answer": state["given"] * 2}


def asking(state: dict[str, Any]) -> dict[str, Any]:
    return {"answer": ask("How many?", title="A number", schema=int)}


@pytest.fixture
def app(store: Store) -> Bide:
    return Bide(store, [graph(answering, "answers"), graph(asking, "asks")])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture
def trap() -> Iterator[Receiver]:
    """Somebody who must never be called."""
    with receiving() as opened:
        yield opened
        assert opened.connections == 0


_connected: list[Any] = []
_is_watching = False


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _is_watching:
        _connected.append(args[1])


sys.addaudithook(_hear)


@pytest.fixture
def connections() -> Iterator[list[Any]]:
    """Whatever this process has tried to connect to, as Python's own audit tells it."""
    global _is_watching
    _connected.clear()
    _is_watching = True
    yield _connected
    _is_watching = False
