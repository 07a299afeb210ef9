"""A server over a store of each kind, with a graph that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from bide import Bide, Store, ask
from bide.server import Settings, create_app
from tests.runtime.world import graph
from tests.stores import KINDS, opened_store


def asking(state: dict[str, Any]) -> dict[str, Any]:
    if state["given"] == "fail":
        raise ValueError("it fails")
    return {"answer": ask("How many?")}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def app(store: Store) -> Bide:
    return Bide(store, [graph(asking, "asks")])


@pytest.fixture
def api(app: Bide) -> FastAPI:
    return create_app(app, Settings())


@pytest.fixture
def client(api: FastAPI) -> Iterator[TestClient]:
    with TestClient(api, raise_server_exceptions=False) as opened:
        yield opened
