"""What the tests of requirements share: a clock that stands still, and a store in memory and in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bide import CompiledGraph, MemorySaver, Store
from bide.clock import Instant
from tests.requirements.graphs import url_of
from tests.runtime.world import StillClock, World
from tests.stores import KINDS, opened_store

MakeWorld = Callable[..., World]


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: Instant = 1_700_000_000_000) -> None:
        self.instant = now

    def now(self) -> Instant:
        """Return the instant it stands at."""
        return self.instant

    def advance(self, *, seconds: int) -> None:
        """Move on."""
        self.instant += seconds * 1000


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    """A store of each kind, closed after the test."""
    opened = MemorySaver(clock=clock) if request.param == "memory" else Store.open(url_of(tmp_path), clock=clock)
    with opened:
        yield opened


@pytest.fixture
def open_file(tmp_path: Path, clock: FakeClock) -> Iterator[Callable[[], Store]]:
    """Opens the same file each time it is called, as another process would; closes the store that was open before."""
    opened: list[Store] = []

    def open_again() -> Store:
        while opened:
            opened.pop().close()
        opened.append(Store.open(url_of(tmp_path), clock=clock))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def noon() -> StillClock:
    """A clock for applications: it stands still until the test moves it, and nobody may sleep by it."""
    return StillClock()


@pytest.fixture(params=KINDS)
def any_store(request: pytest.FixtureRequest, tmp_path: Path, noon: StillClock) -> Iterator[Store]:
    """A store in memory, in a file and in PostgreSQL."""
    with opened_store(request, tmp_path, clock=noon) as opened:
        yield opened


@pytest.fixture
def world(any_store: Store, noon: StillClock) -> MakeWorld:
    """Make an application with these graphs, whose one worker is the test itself."""

    def make(*graphs: CompiledGraph) -> World:
        return World(any_store, noon, list(graphs))

    return make
