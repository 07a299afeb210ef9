"""DBOS, launched on the database that a case was given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from case import Settings
from dbos import DBOS, DBOSConfig

THREADS = 64
POLLING_SECONDS = 0.001
"""On SQLite it looks for messages again and again, by default once a second; this is the shortest that it allows."""


@contextmanager
def launched(asked: Settings) -> Iterator[None]:
    """Launch DBOS, as durable as everybody else: on SQLite with WAL and FULL, on PostgreSQL as the server is set."""
    if asked.store == "sqlite":
        connection = sqlite3.connect(asked.database)
        connection.execute("PRAGMA journal_mode = WAL")  # stays with the file; FULL is SQLite's own default
        connection.close()
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": asked.url if asked.store == "postgres" else f"sqlite:///{asked.database}",
        "log_level": "ERROR",
        "max_executor_threads": THREADS,
    }
    if asked.store == "sqlite":
        config["notification_listener_polling_interval_sec"] = POLLING_SECONDS
    DBOS(config=config)
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=0)
