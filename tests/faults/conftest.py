"""What the tests of faults share: a schema for each, and a ledger beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.faults.ledger import Ledger


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a schema that nobody else has; in the database that tests share it is dropped at the end."""
    name = f"f_{uuid4().hex[:12]}"
    yield name
    if "postgres_url" in request.fixturenames:
        with psycopg.connect(request.getfixturevalue("postgres_url")) as database:
            database.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")
