"""A server over a store of each kind, threads that ask, and links to decide with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bide import Store
from bide.testing import FakeClock
from tests.server.links.deciding import World
from tests.stores import opened_store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=("file", "postgres"))
def world(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack.enter_context(opened_store(request, tmp_path, clock=clock)), clock, stack)


@pytest.fixture
def small(clock: FakeClock) -> Iterator[World]:
    """The same in memory, for what has nothing to do with the database."""
    with ExitStack() as stack:
        yield World(stack.enter_context(Store.open(":memory:", clock=clock)), clock, stack)
