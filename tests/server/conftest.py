"""A real server on loopback, over a store of each kind, with a worker: `server`, or `serve(settings)` for another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI

from bide import Bide, CompiledGraph, Store
from bide.server import Settings, create_app
from tests.server.graphs import all_graphs
from tests.server.running import running_server
from tests.stores import opened_store

SERVED = ("file", "postgres")


@dataclass
class Running:
    """A server that runs."""

    url: str
    app: Bide
    settings: Settings
    api: FastAPI | None = None


Serve = Callable[..., Running]
Graphs = Callable[[], list[CompiledGraph]]


@pytest.fixture(params=SERVED)
def served_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The store under the server."""
    with opened_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def served_graphs() -> Graphs:
    """What makes the graphs of a server; a folder of tests may have its own."""
    return all_graphs


@pytest.fixture
def serve(served_store: Store, served_graphs: Graphs) -> Iterator[Serve]:
    """Start a server with these settings, with a worker or without; several share the store."""
    with ExitStack() as until_the_end:

        def start(settings: Settings | None = None, *, worker: bool = True) -> Running:
            app = Bide(served_store, served_graphs())
            if worker:
                until_the_end.enter_context(app.worker(poll=0.05))
            settings = settings or Settings()
            api = create_app(app, settings)
            url = until_the_end.enter_context(running_server(api))
            return Running(url, app, settings, api)

        yield start


@pytest.fixture
def server(serve: Serve) -> Running:
    """A server without authentication, and a worker."""
    return serve()
