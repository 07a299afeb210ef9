"""Stores under the names that LangGraph's users know. Each is a `Store`; its tables are made when it is opened."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, Unpack

from bide.errors import StoreUnavailableError
from bide.store.opening import MEMORY, is_postgres, open_database
from bide.store.options import StoreOptions
from bide.store.sqlite import SqliteDatabase
from bide.store.store import Store


class _Saver(Store):
    """What all of them have beside what a store has."""

    def setup(self) -> None:
        """Do nothing: the tables were made when the store was opened."""


class MemorySaver(_Saver):
    """A store that forgets everything when the process ends."""

    def __init__(self, **options: Unpack[StoreOptions]) -> None:
        super().__init__(SqliteDatabase(":memory:"), **options)


InMemorySaver = MemorySaver


class SqliteSaver(_Saver):
    """A store in a file: `SqliteSaver.from_conn_string("bide.db")`, with or without `with`."""

    def __init__(self, conn: Any, **options: Unpack[StoreOptions]) -> None:
        super().__init__(open_database(_file_url(conn)), **options)

    @classmethod
    def from_conn_string(cls, conn_string: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> Self:
        """Open a file by its path, or `":memory:"`."""
        return cls(conn_string, **options)


class PostgresSaver(_Saver):
    """A store in PostgreSQL: `PostgresSaver.from_conn_string("postgresql://…")`, with or without `with`."""

    def __init__(
        self,
        conn: Any,
        *,
        schema: str | None = None,
        most_connections: int | None = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        if isinstance(conn, str) and not is_postgres(conn):
            raise StoreUnavailableError(
                "PostgresSaver needs the URL of a PostgreSQL, as postgresql://user:password@host:5432/database, or a "
                "psycopg_pool.ConnectionPool. For a file use SqliteSaver."
            )
        super().__init__(open_database(conn, schema=schema, most_connections=most_connections), **options)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        schema: str | None = None,
        most_connections: int | None = None,
        **options: Unpack[StoreOptions],
    ) -> Self:
        """Open a store by its URL."""
        return cls(conn_string, schema=schema, most_connections=most_connections, **options)


class _Async(_Saver):
    """For code that was written for an event loop: `async with`, and `await saver.setup()`.

    A store serves both kinds of callers in any case; here it is also opened and closed off the loop.
    """

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: Any, **options: Any) -> AsyncIterator[Self]:
        """Open a store for the length of an `async with` block."""
        from asyncio import to_thread  # a fifth of the time of `import bide`, which sync callers need not spend

        make: Any = cls
        saver = await to_thread(make, conn_string, **options)
        try:
            yield saver
        finally:
            await to_thread(saver.close)

    async def __aenter__(self) -> Self:
        """Use the store in an `async with` block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the store."""
        from asyncio import to_thread

        await to_thread(self.close)

    async def setup(self) -> None:  # type: ignore[override]
        """Do nothing: the tables were made when the store was opened."""


class AsyncSqliteSaver(_Async, SqliteSaver):  # type: ignore[misc]
    """The same store: `async with AsyncSqliteSaver.from_conn_string("bide.db") as saver`."""


class AsyncPostgresSaver(_Async, PostgresSaver):  # type: ignore[misc]
    """The same store: `async with AsyncPostgresSaver.from_conn_string("postgresql://…") as saver`."""


def _file_url(given: Any) -> Any:
    """Turn a path into a URL; what is a URL already, or a connection, stays."""
    if not isinstance(given, str | os.PathLike):
        return given
    path = os.fspath(given)
    if path in MEMORY or path.startswith("sqlite:"):
        return path
    if "://" in path or is_postgres(path):
        # What was given may hold a password, so it is not shown.
        raise StoreUnavailableError(
            "SqliteSaver needs the path of a file, as 'bide.db', or 'sqlite:///bide.db', or ':memory:', and was given "
            "the URL of something else. Nothing was made. For PostgreSQL use PostgresSaver, which takes its URL."
        )
    return f"sqlite:///{path}"
