"""Pause and resume as bare SQL: the rows that one pair leaves behind, inserted in as many commits as Bide makes.

The rows are taken from a real pair and inserted under other names into the same tables, with all their indexes. Bide
also reads the thread twice and updates rows on the way; that is part of what is compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from approval import config_of, graph_of, new_order
from bide_store import open_store, rows_of
from case import Settings, report, settings, timing, took
from databases import Row, postgres

from bide import END, START, Command, StateGraph, interrupt

COMMITS = 5
"""Start, pause, answer, the step that asked, the last step."""
OWN_NAMES = {"thread_id", "uid", "run_id", "wait_id"}
"""Columns that hold something that only one thread has."""
GIVEN_BY_THE_DATABASE = {"position", "tx"}


Insert = tuple[str, Sequence[Any]]
"""A statement and its values."""


def rows_of_a_pair(asked: Settings) -> list[Row]:
    """Make one pair; return the rows that it leaves behind."""
    graph = graph_of(StateGraph, START, END, interrupt)
    with open_store(asked) as store:
        graph.compile(checkpointer=store).invoke(new_order(), config_of(0))
        graph.compile(checkpointer=store).invoke(Command(resume=True), config_of(0))
    return rows_of(asked, config_of(0)["configurable"]["thread_id"])


def insert_of(row: Row, number: int, mark: str) -> Insert:
    """Return what writes a row again, for another thread."""
    pairs = [pair for pair in zip(row.columns, row.values, strict=True) if pair[0] not in GIVEN_BY_THE_DATABASE]
    values = [f"{value}-{number}" if name in OWN_NAMES and value is not None else value for name, value in pairs]
    columns = ", ".join(name for name, _ in pairs)
    return f"INSERT INTO {row.table} ({columns}) VALUES ({', '.join([mark] * len(values))})", values  # noqa: S608


@contextmanager
def committing(asked: Settings) -> Iterator[Callable[[Sequence[Insert]], None]]:
    """Give what writes some rows in one transaction."""
    if asked.store == "postgres":
        with postgres(asked.url) as server:

            def save(inserts: Sequence[Insert]) -> None:
                with server.transaction():
                    for text, values in inserts:
                        server.execute(text, values)

            yield save
        return
    connection = sqlite3.connect(asked.database, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")

    def commit(inserts: Sequence[Insert]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for text, values in inserts:
            connection.execute(text, values)
        connection.execute("COMMIT")

    yield commit
    connection.close()


def main() -> None:
    asked = settings()
    rows, pairs, mark = rows_of_a_pair(asked), asked.amount(60, 2), "%s" if asked.store == "postgres" else "?"
    work = [[insert_of(row, pair, mark) for row in rows] for pair in range(pairs)]
    with committing(asked) as commit:

        def run() -> None:
            for inserts in work:
                for number in range(COMMITS):
                    commit(inserts[number::COMMITS])

        sample = took(run)
    report(**timing("pair", "µs", [sample], per=pairs))


if __name__ == "__main__":
    main()
