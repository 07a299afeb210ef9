"""A server with pages, over a store in memory; what the database decides is tested where it is decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bide import MemorySaver, Store
from bide.testing import FakeClock
from tests.server.pages.desk import Desk, Office


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    with MemorySaver(clock=clock) as opened:
        yield opened


@pytest.fixture
def desk(store: Store, clock: FakeClock) -> Iterator[Desk]:
    with ExitStack() as stack:
        yield Desk(store, clock, stack)


@pytest.fixture
def office(store: Store, clock: FakeClock) -> Iterator[Office]:
    with ExitStack() as stack:
        yield Office(store, clock, stack)
