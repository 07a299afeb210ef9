"""Clients of LangGraph against our server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Bide, Store
from bide.server import Settings, create_app
from tests.server.conftest import SERVED, Running
from tests.server.langgraph.clients import KINDS, opened_client
from tests.server.langgraph.gates import GATES, road, telling
from tests.server.langgraph.twin_graphs import all_twins
from tests.server.running import running_server
from tests.stores import SCHEMA


@pytest.fixture(autouse=True)
def own_messages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own messages, but for graphs that both libraries run: those hold LangChain's."""
    if "twins" not in request.fixturenames:
        monkeypatch.delitem(sys.modules, "langchain_core.messages", raising=False)


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, server: Running) -> Iterator[Any]:
    """The SDK's client, sync or async, called in the same way."""
    with opened_client(request.param, server.url) as opened:
        yield opened


@pytest.fixture(scope="module", params=SERVED)
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the graphs that both libraries can run, for all tests of a file: each has threads of its own."""
    with _store(request, tmp_path_factory.mktemp("twins")) as store:
        app = Bide(store, [*all_twins(), road(), telling()])
        settings = Settings(heartbeat=0.5)
        with app.worker(poll=0.05, concurrency=8), running_server(create_app(app, settings)) as url:
            yield Running(url, app, settings)
            for gate in GATES.values():
                gate.set()


def _store(request: pytest.FixtureRequest, folder: Path) -> Store:
    if request.param == "file":
        return Store.open(f"sqlite:///{folder / 'bide.db'}")
    dsn, wipe = request.getfixturevalue("shared_postgres")
    wipe()
    return Store.open(dsn, schema=SCHEMA)


@pytest.fixture(scope="module", params=KINDS)
def sdk(request: pytest.FixtureRequest, twins: Running) -> Iterator[Any]:
    """The SDK's client of that server, sync or async, called in the same way."""
    with opened_client(request.param, twins.url) as opened:
        yield opened
