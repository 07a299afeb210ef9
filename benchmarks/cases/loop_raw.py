"""What a durable step cannot do without: one row, one commit, in bare SQLite (WAL, synchronous=FULL)."""

from __future__ import annotations

import os
import sqlite3

from case import report, settings
from loop import REPEATS, STOPWATCH, rounds_of


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    body = os.urandom(asked.row_bytes)
    connection = sqlite3.connect(asked.database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def run() -> None:
        for number in range(1, rounds + 1):
            STOPWATCH.passed(number)
            for _ in range(3):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO step (body) VALUES (?)", (body,))
                connection.execute("COMMIT")

    for _ in range(asked.amount(REPEATS, 1)):
        STOPWATCH.time(run)
    connection.close()
    report(**STOPWATCH.metrics())


if __name__ == "__main__":
    main()
