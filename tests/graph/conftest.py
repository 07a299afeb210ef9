"""What the tests of the graph share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import Store
from tests.stores import KINDS, opened_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind, closed after the test."""
    with opened_store(request, tmp_path) as opened:
        yield opened
