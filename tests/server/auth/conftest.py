"""What the tests of the door share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bide.store import Store
from tests.server.auth.doors import FakeClock, store_with


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    with store_with(clock) as opened:
        yield opened
