"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """A real PostgreSQL; a machine without one fails the test, since a skipped test proves nothing."""
    # Imported here, so that a test which needs no PostgreSQL does not load its driver.
    from tests.postgres import running_postgres

    with running_postgres() as dsn:
        yield dsn


@pytest.fixture
def postgres_database(postgres_dsn: str) -> Iterator[str]:
    """An empty database on that PostgreSQL, for one test."""
    from tests.postgres import fresh_database

    with fresh_database(postgres_dsn) as dsn:
        yield dsn
