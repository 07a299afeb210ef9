"""The order of `order.py` with its thread, and the shop's own table, in one schema of a PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from bide.store.postgres import PostgresDatabase
from tests.stories.programs.order import THREAD, Watched


class OnServer:
    """A folder for the ledger, and a schema for everything else."""

    def __init__(self, folder: Path, dsn: str, schema: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self.schema = schema
        self.create_bookings = f"CREATE TABLE IF NOT EXISTS {schema}.bookings (what TEXT NOT NULL)"
        self.insert_booking = f"INSERT INTO {schema}.bookings (what) VALUES (%s)"

    def watched(self) -> Watched:
        return WatchedSchema(self.dsn, self.schema)


class WatchedSchema(Watched):
    """One schema of a server; who looks at it passes no point, because it looks through a connection of its own."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.database = PostgresDatabase(dsn, schema=schema)
        self.own = psycopg.connect(dsn, autocommit=True)
        self.query = sql.SQL("SELECT name FROM {}.journal WHERE thread_id = %s AND kind = 'result'").format(
            sql.Identifier(schema)
        )
        close = self.database.close

        def close_both() -> None:
            self.own.close()
            close()

        self.database.close = close_both  # type: ignore[method-assign]
        super().__init__()

    def finished_tasks(self) -> set[str]:
        return {name for (name,) in self.own.execute(self.query, [THREAD])}
