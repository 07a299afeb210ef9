"""What a durable step cannot do without: one row, one commit, in bare SQLite (WAL, synchronous=FULL)."""

from __future__ import annotations

import os
import sqlite3

from case import report, settings, timing, took
from loop import REPEATS, ROUNDS


def main() -> None:
    asked = settings()
    steps = 3 * asked.amount(ROUNDS, 4)
    body = os.urandom(asked.row_bytes)
    connection = sqlite3.connect(asked.database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE step (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def run() -> None:
        for _ in range(steps):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO step (body) VALUES (?)", (body,))
            connection.execute("COMMIT")

    samples = [took(run) for _ in range(asked.amount(REPEATS, 1))]
    connection.close()
    report(**timing("step", "µs", samples, per=steps))


if __name__ == "__main__":
    main()
