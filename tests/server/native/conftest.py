"""A server of the native API over each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bide import Store
from bide.testing import FakeClock
from tests.server.native.world import Office, World
from tests.stores import opened_store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=("memory", "postgres"))
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture
def world(store: Store, clock: FakeClock) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(store, clock, stack)


@pytest.fixture
def office(store: Store, clock: FakeClock) -> Iterator[Office]:
    with ExitStack() as stack:
        yield Office(store, clock, stack)
