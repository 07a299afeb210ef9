"""What a durable step cannot do without: one row, one commit.

In bare SQLite (WAL, synchronous=FULL) that is BEGIN, INSERT, COMMIT; in PostgreSQL one INSERT in autocommit, which is
one round trip to the server and one wait for its disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from case import Settings, report, settings
from databases import postgres
from loop import REPEATS, STOPWATCH, rounds_of


@contextmanager
def writing(asked: Settings) -> Iterator[Callable[[bytes], None]]:
    """Give what commits one row."""
    if asked.store == "postgres":
        with postgres(asked.url) as server:
            server.execute("CREATE TABLE step (id BIGSERIAL PRIMARY KEY, body BYTEA NOT NULL)")
            yield lambda body: server.execute("INSERT INTO step (body) VALUES (%s)", (body,))
        return
    connection = sqlite3.connect(asked.database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def write(body: bytes) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO step (body) VALUES (?)", (body,))
        connection.execute("COMMIT")

    yield write
    connection.close()


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    body = os.urandom(asked.row_bytes)
    with writing(asked) as write:

        def run() -> None:
            for number in range(1, rounds + 1):
                STOPWATCH.passed(number)
                for _ in range(3):
                    write(body)

        for _ in range(asked.amount(REPEATS, 1)):
            STOPWATCH.time(run)
    report(**STOPWATCH.metrics())


if __name__ == "__main__":
    main()
