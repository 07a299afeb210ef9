"""What the tests of robustness share: a clock that moves by itself when slept on, and stores that go by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import MemorySaver, Store
from tests.robustness.clocks import SleepyClock


@pytest.fixture
def clock() -> SleepyClock:
    return SleepyClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SleepyClock) -> Iterator[Store]:
    """A store of each kind that goes by the test's clock, closed after the test."""
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    opened = MemorySaver(clock) if request.param == "memory" else Store.open(url, clock=clock)
    with opened:
        yield opened
