"""What a case asks a database beside the subject's back: how large it is, and which rows a thread has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES_OF_THREADS = """
SELECT format('%I.%I', table_schema, table_name) FROM information_schema.columns
WHERE column_name = 'thread_id' AND table_schema NOT IN ('pg_catalog', 'information_schema')
"""
BYTES_OF_TABLES = "SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_stat_user_tables"


@dataclass(frozen=True)
class Row:
    """A row that belongs to a thread, and where it lies."""

    table: str
    columns: tuple[str, ...]
    values: tuple[Any, ...]


@contextmanager
def postgres(url: str) -> Iterator[Any]:
    """Connect to PostgreSQL in autocommit; the driver is imported by whoever needs it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def bytes_in_postgres(url: str) -> int:
    """Return the size of all tables with their indexes and their large values; the write-ahead log is not counted."""
    with postgres(url) as connection:
        return int(connection.execute(BYTES_OF_TABLES).fetchone()[0])


def rows_in_postgres(url: str, thread_id: str) -> list[Row]:
    """Return every row of a thread, in all tables."""
    with postgres(url) as connection:
        tables = [table for (table,) in connection.execute(TABLES_OF_THREADS).fetchall()]
        return [row for table in tables for row in _rows(connection, table, thread_id, "%s")]


def rows_in_sqlite(path: Path, thread_id: str) -> list[Row]:
    """Return every row of a thread, in all tables."""
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [
        table
        for (table,) in names
        if any(column[1] == "thread_id" for column in connection.execute(f"PRAGMA table_info({table})"))
    ]
    found = [row for table in tables for row in _rows(connection, table, thread_id, "?")]
    connection.close()
    return found


def _rows(connection: Any, table: str, thread_id: str, mark: str) -> list[Row]:
    cursor = connection.execute(f"SELECT * FROM {table} WHERE thread_id = {mark}", (thread_id,))  # noqa: S608
    columns = tuple(column[0] for column in cursor.description)
    return [Row(table, columns, tuple(values)) for values in cursor.fetchall()]


def stored_bytes(value: object) -> int:
    """Return how many bytes a column takes in SQLite's record format, but for its one-byte header."""
    if isinstance(value, int):
        return (value.bit_length() + 8) // 8
    return len(value.encode()) if isinstance(value, str) else len(value or b"")
