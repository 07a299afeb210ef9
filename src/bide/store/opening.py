"""Which database a URL means: a file, memory, a server, or whatever was opened already."""

from __future__ import annotations

import os
import re
from typing import Any

from bide.errors import StoreUnavailableError, did_you_mean
from bide.store.database import Database
from bide.store.sqlite import SqliteDatabase

MEMORY = (":memory:", "sqlite://", "sqlite:///:memory:", "memory://")
EXAMPLES = (
    "Use 'sqlite:///bide.db' (a file in this folder), 'sqlite:////var/lib/bide.db' (an absolute path), "
    "'postgresql://user:password@host:5432/database', or ':memory:'."
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):?/")
_SETTINGS = re.compile(r"\s*(host|hostaddr|dbname|user|port|service)\s*=")


def open_database(source: Any, *, schema: str | None = None, most_connections: int | None = None) -> Database:
    """Open a database by its URL, or over a pool or a connection that is open. Nothing is ever opened by guessing."""
    if most_connections is not None and most_connections < 1:
        raise StoreUnavailableError(f"most_connections={most_connections} is too few: a store needs one, at least.")
    if not isinstance(source, str | os.PathLike):
        return _over(source, schema, most_connections)
    url = os.fspath(source)
    if is_postgres(url):
        return _postgres(url, schema=schema, most_connections=most_connections)
    if schema is not None or most_connections is not None:
        raise StoreUnavailableError(
            f"schema= and most_connections= are for PostgreSQL, and {_shown(url)} means SQLite. Leave them out."
        )
    return SqliteDatabase(path_of(url))


def is_postgres(url: str) -> bool:
    """Say whether a URL, or a list of settings as libpq knows them, means a PostgreSQL."""
    return url.startswith(("postgresql://", "postgres://")) or _SETTINGS.match(url) is not None


def path_of(url: str) -> str:
    """Return the path in the URL of a SQLite database."""
    if url in MEMORY:
        return ":memory:"
    if url.startswith("sqlite:///") and url != "sqlite:///":
        return url.removeprefix("sqlite:///")
    raise StoreUnavailableError(f"{_shown(url)} is no URL of a store.{_hint(url)} {EXAMPLES}")


def _hint(url: str) -> str:
    """Guess what was meant, for the reader of the error and for nobody else."""
    if url.startswith("sqlite:"):
        return f" Did you mean 'sqlite:///{url.removeprefix('sqlite:').lstrip('/')}'?"
    found = _SCHEME.match(url)
    if found is None:
        return f" Did you mean 'sqlite:///{url}'?" if url.endswith((".db", ".sqlite", ".sqlite3")) else ""
    scheme = found[1].lower()
    if scheme.startswith(("postgresql+", "postgres+")):
        return " Bide brings its own driver: write 'postgresql://' in place of it."
    if scheme.startswith("sqlite+"):
        return " Bide brings its own driver: write 'sqlite:///' in place of it."
    return did_you_mean(scheme, ["sqlite", "postgresql", "postgres"])


def _shown(url: str) -> str:
    """Return a URL without what may be a password."""
    shown = re.sub(r"(://[^:/@]*):.*@", r"\1:…@", url)
    return repr(re.sub(r"(pass\w*\s*=\s*)('[^']*'|\S+)", r"\1…", shown, flags=re.IGNORECASE))


def _check_escaped(url: str) -> None:
    """Refuse a URL whose password would be taken for a host: messages would show it, and nothing could be reached."""
    account, at, _ = url.partition("://")[2].partition("?")[0].rpartition("@")
    if at and any(mark in account for mark in "/@#"):
        raise StoreUnavailableError(
            f"The user or the password in {_shown(url)} holds a character that means something else in a URL. Write "
            f"'/' as %2F, '@' as %40, '#' as %23, ':' as %3A and '%' as %25."
        )


def _over(source: Any, schema: str | None, most_connections: int | None) -> Database:
    if most_connections is not None:
        raise StoreUnavailableError(
            "most_connections= is for connections that the store makes itself; those of a pool are counted by its "
            "max_size. Leave it out."
        )
    module = type(source).__module__.partition(".")[0]
    if module == "sqlite3":
        return _beside(source)
    if module == "psycopg_pool" and not type(source).__name__.startswith("Async"):
        return _postgres(source, schema=schema)
    if module == "psycopg" and not type(source).__name__.startswith("Async"):
        raise StoreUnavailableError(
            "One connection cannot serve several threads at once, and cannot be replaced when it breaks. Give the URL, "
            "or a psycopg_pool.ConnectionPool."
        )
    if module in ("psycopg", "psycopg_pool"):
        raise StoreUnavailableError(
            f"{type(source).__name__} belongs to an event loop. Bide reaches its database from threads, for async "
            f"callers too: give a psycopg_pool.ConnectionPool, or the URL."
        )
    raise StoreUnavailableError(f"{source!r} is no store, no URL of one, and no connection pool. {EXAMPLES}")


def _beside(connection: Any) -> Database:
    """Open the file of a connection to SQLite; the connection itself stays its owner's."""
    path = next((path for _, name, path in connection.execute("PRAGMA database_list") if name == "main"), "")
    if not path:
        raise StoreUnavailableError(
            "This connection is to a SQLite database in memory, which nobody else can open. Use MemorySaver()."
        )
    return SqliteDatabase(path)


def _postgres(source: Any, *, schema: str | None, most_connections: int | None = None) -> Database:
    if isinstance(source, str):
        _check_escaped(source)
    try:
        # Only those who have a PostgreSQL need its driver.
        from bide.store.postgres import MOST_CONNECTIONS, PostgresDatabase
    except ImportError as problem:
        raise StoreUnavailableError(
            f'A store in PostgreSQL needs its driver, which is not installed ({problem}): pip install "bide[postgres]".'
        ) from problem
    return PostgresDatabase(source, schema=schema, most_connections=most_connections or MOST_CONNECTIONS)
