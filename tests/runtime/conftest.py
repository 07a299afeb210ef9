"""A world over a store of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bide import CompiledGraph, Store
from tests.runtime.world import StillClock, World
from tests.stores import KINDS, opened_store

MakeWorld = Callable[..., World]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture
def world(store: Store, clock: StillClock) -> MakeWorld:
    """Make an application with these graphs."""

    def make(*graphs: CompiledGraph) -> World:
        return World(store, clock, list(graphs))

    return make
