"""What the tests of robustness share: a clock that moves by itself when slept on, and stores that go by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import Store
from tests.robustness.clocks import SleepyClock
from tests.stores import KINDS, opened_store


@pytest.fixture
def clock() -> SleepyClock:
    return SleepyClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SleepyClock) -> Iterator[Store]:
    """A store of each kind that goes by the test's clock, closed after the test."""
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened
