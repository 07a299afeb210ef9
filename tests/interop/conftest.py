"""What the tests of the LangGraph saver share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide.interop.langgraph import BideSaver


@pytest.fixture(autouse=True)
def own_messages() -> None:
    """LangChain's messages, which LangGraph has loaded: here nobody takes them out of sight."""


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a saver keeps its threads."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_database")
        return found
    return ":memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'app.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def lasting_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a second saver finds what the first one has written."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_database")
        return found
    return f"sqlite:///{tmp_path / 'app.db'}"


@pytest.fixture
def saver(url: str) -> Iterator[BideSaver]:
    """A saver on each kind of store, closed after the test."""
    with BideSaver(url) as opened:
        yield opened
