"""The checkpointer that a case of LangGraph runs on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from case import Settings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

CONNECTIONS = 10


@contextmanager
def open_saver(asked: Settings, *, in_flight: bool = False) -> Iterator[Any]:
    """Open the checkpointer that was asked for, set to lose nothing at a power cut."""
    if asked.store == "memory":
        yield InMemorySaver()
    elif asked.store == "sqlite":
        connection = sqlite3.connect(asked.database, check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute("PRAGMA synchronous = FULL")
        yield saver
        connection.close()
    else:
        with _pooled(asked.url) if in_flight else PostgresSaver.from_conn_string(asked.url) as saver:
            saver.setup()
            yield saver


@contextmanager
def _pooled(url: str) -> Iterator[PostgresSaver]:
    # What from_conn_string asks of its one connection is asked of each.
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=CONNECTIONS, max_size=CONNECTIONS, kwargs=options) as pool:
        yield PostgresSaver(pool)


def of_its_own(saver: Any) -> Any:
    """Return a checkpointer for one call: one that is shared lets its callers in one by one, whatever the pool has."""
    return PostgresSaver(saver.conn) if isinstance(saver, PostgresSaver) else saver
