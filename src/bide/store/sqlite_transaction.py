"""Named queries on one connection of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from bide.failpoints import ON as FAILPOINTS_ON
from bide.failpoints import failpoint
from bide.store.database import Answer, Otherwise, Row, queries


class SqliteTransaction:
    """A transaction of SQLite: it is in this process, so whatever is asked is done at once."""

    __slots__ = ("connection", "name", "sql")

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.sql = queries()

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect; return how many rows it changed."""
        count = self.connection.execute(self.sql[query], params).rowcount
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:{query}")
        return count

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None. The cursor is run out, so that a RETURNING statement is over."""
        rows = self.connection.execute(self.sql[query], params).fetchall()
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:{query}")
        return rows[0] if rows else None

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        return self.connection.execute(self.sql[query], params).fetchall()

    def send(self, query: str, params: Mapping[str, Any]) -> None:
        """Run a query for its effect."""
        self.run(query, params)

    def expect(self, query: str, params: Mapping[str, Any], otherwise: Otherwise) -> None:
        """Run a query that must change or find a row."""
        cursor = self.connection.execute(self.sql[query], params)
        # A SELECT has no count, and one that finds something has more to say than that.
        is_met = cursor.fetchone() is not None if cursor.rowcount < 0 else cursor.rowcount > 0
        cursor.close()
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:{query}")
        if not is_met:
            raise otherwise(self)

    def ask(self, query: str, params: Mapping[str, Any]) -> Answer:
        """Ask at once, answer when called."""
        rows = self.all(query, params)
        return lambda: rows
