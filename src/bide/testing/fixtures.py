"""Stores for tests, as pytest fixtures. Import those that you want into your `conftest.py`.

    from bide.testing.fixtures import memory_store, postgres_store, sqlite_store

Each is empty, has a `FakeClock` (`memory_store.clock`), and is closed after the test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

try:
    import pytest
except ImportError as problem:  # pragma: no cover — whoever comes here without pytest is told
    raise ImportError(
        "The fixtures of bide.testing need pytest, which is not installed: pip install pytest"
    ) from problem

from bide.errors import StoreUnavailableError
from bide.store import Store
from bide.store.database import queries
from bide.testing.clock import FakeClock

VARIABLE = "BIDE_TEST_PG_DSN"


@pytest.fixture
def memory_store() -> Iterator[Store]:
    """A store in memory."""
    with Store.open(":memory:", clock=FakeClock()) as store:
        yield store


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """A store in a file."""
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=FakeClock()) as store:
        yield store


@pytest.fixture
def postgres_store() -> Iterator[Store]:
    """A store in PostgreSQL, in a schema of its own that is dropped after the test.

    Where the server is, is told by the environment: BIDE_TEST_PG_DSN=postgresql://user:password@host/database.
    """
    url = os.environ.get(VARIABLE)
    if not url:
        raise StoreUnavailableError(
            f"The fixture postgres_store needs a PostgreSQL to make a schema in, and nobody said where it is. Set "
            f"{VARIABLE}=postgresql://user:password@host/database."
        )
    schema = f"bide_test_{uuid4().hex[:12]}"
    try:
        with Store.open(url, schema=schema, clock=FakeClock()) as store:
            yield store
    finally:
        _drop_schema(url, schema)


def _drop_schema(url: str, schema: str) -> None:
    # Only those who have a PostgreSQL need its driver.
    import psycopg

    from bide.store.postgres_sql import quoted

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(queries("postgres")["drop_schema"].replace(":schema", quoted(schema)).encode())
