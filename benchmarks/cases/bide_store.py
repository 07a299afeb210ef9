"""The store that a case of Bide runs on."""

from __future__ import annotations

from contextlib import AbstractContextManager

from case import Settings
from databases import Row, rows_in_postgres, rows_in_sqlite

from bide import MemorySaver, Store


def open_store(asked: Settings) -> AbstractContextManager[Store]:
    """Open the store as its page tells a user to; what is durable is so by default."""
    if asked.store == "memory":
        return MemorySaver()
    return Store.open(asked.url if asked.store == "postgres" else f"sqlite:///{asked.database}")


def rows_of(asked: Settings, thread_id: str) -> list[Row]:
    """Return every row that a thread has left behind."""
    if asked.store == "postgres":
        return rows_in_postgres(asked.url, thread_id)
    return rows_in_sqlite(asked.database, thread_id)
