"""What the tests of the functional API share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import MemorySaver, Store
from tests.functional.world import World


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind, closed after the test."""
    opened = MemorySaver() if request.param == "memory" else Store.open(f"sqlite:///{tmp_path / 'bide.db'}")
    with opened:
        yield opened


@pytest.fixture
def world() -> World:
    """What tasks do to the world outside."""
    return World()
