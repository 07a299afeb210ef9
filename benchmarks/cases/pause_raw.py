"""Pause and resume as bare SQL: the rows that one pair leaves behind, inserted in as many commits as Bide makes.

The rows are taken from a real pair and inserted under other names into the same tables, with all their indexes. Bide
also reads the thread twice and updates rows on the way; that is part of what is compared.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from approval import config_of, graph_of, new_order
from case import report, settings, timing, took

from bide import END, START, Command, StateGraph, Store, interrupt

COMMITS = 5
"""Start, pause, answer, the step that asked, the last step."""
OWN_NAMES = {"thread_id", "uid", "run_id", "wait_id"}
"""Columns that hold something that only one thread has."""


def inserts_of_a_pair(path: Path) -> list[tuple[str, list[str], list[Any]]]:
    """Make one pair; return the statement, the columns and the values that write each of its rows again."""
    graph = graph_of(StateGraph, START, END, interrupt)
    with Store.open(f"sqlite:///{path}") as store:
        graph.compile(checkpointer=store).invoke(new_order(), config_of(0))
        graph.compile(checkpointer=store).invoke(Command(resume=True), config_of(0))
    connection = sqlite3.connect(path)
    found = []
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608
        columns = [column[0] for column in cursor.description]
        statement = f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
        found += [(statement, columns, list(row)) for row in cursor if "thread_id" in columns]
    connection.close()
    return found


def renamed(columns: list[str], values: list[Any], number: int) -> list[Any]:
    """Give a row to another thread."""
    pairs = zip(columns, values, strict=True)
    return [f"{value}-{number}" if name in OWN_NAMES and value is not None else value for name, value in pairs]


def main() -> None:
    asked = settings()
    rows, pairs = inserts_of_a_pair(asked.database), asked.amount(60, 2)
    work = [[(text, renamed(columns, values, pair)) for text, columns, values in rows] for pair in range(pairs)]
    connection = sqlite3.connect(asked.database, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")

    def run() -> None:
        for inserts in work:
            for commit in range(COMMITS):
                connection.execute("BEGIN IMMEDIATE")
                for text, values in inserts[commit::COMMITS]:
                    connection.execute(text, values)
                connection.execute("COMMIT")

    sample = took(run)
    connection.close()
    report(**timing("pair", "µs", [sample], per=pairs))


if __name__ == "__main__":
    main()
