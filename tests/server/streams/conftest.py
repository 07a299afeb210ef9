"""Servers over one store, which tell what the graphs of these tests do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bide import Bide, Store
from bide.server import Settings, create_app
from tests.server.conftest import Running
from tests.server.running import running_server
from tests.server.streams.processes import Nursery, opened_nursery
from tests.server.streams.scenes import all_graphs

Serve = Callable[..., Running]


@pytest.fixture(autouse=True)
def own_messages() -> None:
    """LangChain's messages stay: its models tell tokens here."""


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where servers in processes of their own come from."""
    with opened_nursery(tmp_path_factory.mktemp("nursery")) as opened:
        yield opened


@pytest.fixture(params=("file", "postgres"))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, for several processes."""
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'bide.db'}"
    return str(request.getfixturevalue("postgres_database"))


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
