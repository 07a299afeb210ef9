"""A store of each kind, for tests whose promises hold in every database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bide import MemorySaver, Store
from bide.store.postgres_sql import our_tables

KINDS = ("memory", "file", "postgres")
SCHEMA = "bide"
LASTING = ("migrations", "correlation_locks")
"""Tables whose rows are there from the beginning."""

# Takes away what the test before has left: our rows, and tables that it made for itself. Kept as a function, since the
# server plans its statements once.
MAKE_WIPE = f"""
CREATE SCHEMA testing;
CREATE FUNCTION testing.wipe() RETURNS void LANGUAGE plpgsql AS $$
DECLARE found record;
BEGIN
    {" ".join(f'DELETE FROM "{SCHEMA}".{table};' for table in our_tables() if table not in LASTING)}
    FOR found IN
        SELECT schemaname, tablename
        FROM pg_tables
        WHERE schemaname = 'public'
        OR schemaname = '{SCHEMA}' AND NOT tablename = ANY ('{{{",".join(our_tables())}}}')
    LOOP
        EXECUTE format('DROP TABLE %I.%I CASCADE', found.schemaname, found.tablename);
    END LOOP;
END $$
"""


@contextmanager
def wiping(dsn: str) -> Iterator[Callable[[], None]]:
    """Give a function that empties the store in a database."""
    # Imported here, so that a test which needs no PostgreSQL does not load its driver.
    import psycopg

    Store.open(dsn, schema=SCHEMA).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MAKE_WIPE)
        yield lambda: connection.execute("SELECT testing.wipe()") and None


@contextmanager
def opened_store(request: pytest.FixtureRequest, tmp_path: Path, **options: Any) -> Iterator[Store]:
    """Open an empty store of the kind that the fixture is asked for, and close it."""
    if request.param == "memory":
        opened = MemorySaver(**options)
    elif request.param == "file":
        opened = Store.open(f"sqlite:///{tmp_path / 'bide.db'}", **options)
    else:
        opened = Store.open(request.getfixturevalue("postgres_url"), schema=SCHEMA, **options)
    with opened:
        yield opened
