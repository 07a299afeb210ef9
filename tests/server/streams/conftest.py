"""Servers over one store, which tell what the graphs of these tests do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bide import Bide, Store
from bide.server import Settings, create_app
from tests.server.conftest import Running
from tests.server.running import running_server
from tests.server.streams.scenes import all_graphs

Serve = Callable[..., Running]


@pytest.fixture(autouse=True)
def own_messages() -> None:
    """LangChain's messages stay: its models tell tokens here."""


@pytest.fixture
def serve(served_store: Store) -> Iterator[Serve]:
    """Start a server, with a worker or without; all share the store."""
    with ExitStack() as until_the_end:

        def start(settings: Settings | None = None, *, worker: bool = True) -> Running:
            app = Bide(served_store, all_graphs())
            if worker:
                until_the_end.enter_context(app.worker(poll=0.05))
            settings = settings or Settings()
            api = create_app(app, settings)
            url = until_the_end.enter_context(running_server(api))
            return Running(url, app, settings, api)

        yield start
