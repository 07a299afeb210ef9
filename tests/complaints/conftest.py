"""What the tests of the fifty complaints share: a store in a real file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where the database of this test is, or will be."""
    return f"sqlite:///{tmp_path / 'bide.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store in a file, closed after the test."""
    with Store.open(url) as opened:
        yield opened
