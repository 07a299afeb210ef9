"""The fixtures that users import into their own conftest, and graphs to try them on."""

from __future__ import annotations

import pytest

from bide.testing.fixtures import VARIABLE, memory_store, postgres_store, sqlite_store

__all__ = ["memory_store", "postgres_store", "sqlite_store"]


@pytest.fixture(params=["memory_store", "sqlite_store", "postgres_store"])
def any_store(request: pytest.FixtureRequest):
    """A store of each kind; where the PostgreSQL is, is said as a user says it."""
    if request.param == "postgres_store":
        url = request.getfixturevalue("postgres_dsn")
        request.getfixturevalue("monkeypatch").setenv(VARIABLE, url)
    return request.getfixturevalue(request.param)
