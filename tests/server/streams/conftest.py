"""Servers over one store, which tell what the graphs of these tests do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import Graphs, Serve
from tests.server.streams.processes import Nursery, opened_nursery
from tests.server.streams.scenes import all_graphs

__all__ = ["Serve"]


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
def served_graphs() -> Graphs:
    """The graphs of these tests."""
    return all_graphs
