"""A real PostgreSQL for the tests: private to one test session, reachable through a socket in a folder of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tools.needs import SYSTEM_NEEDS, find_postgres
from tools.postgres import serving

SETTINGS = {
    "listen_addresses": "",  # nothing outside this machine, and no port to fight over
    "fsync": "off",  # the tests that pull the plug start their own server
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "timezone": "UTC",
}


@contextmanager
def running_postgres(settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """Give the DSN of a PostgreSQL: the caller's own ($BIDE_TEST_PG_DSN), or one that is started here and stopped."""
    found = find_postgres()
    if found is None:
        raise RuntimeError(f"The tests need a PostgreSQL server and there is none. {SYSTEM_NEEDS[0].advice}")
    if found == os.environ.get("BIDE_TEST_PG_DSN"):
        yield found
        return
    # A socket's path must stay under 108 characters: not every TMPDIR is that short.
    home = Path(tempfile.mkdtemp(prefix="bide-pg-", dir="/tmp"))
    try:
        with serving(Path(found), home, settings) as dsn:
            yield dsn
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def fresh_database(dsn: str) -> Iterator[str]:
    """Give the DSN of an empty database on that server, and drop it at the end."""
    name = f"bide_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield make_conninfo(dsn, dbname=name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
