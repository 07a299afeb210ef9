"""The loop on Bide: without a store, in memory, or on a SQLite file with synchronous=FULL (its default)."""

from __future__ import annotations

import sqlite3

from case import Settings, metric, report, settings
from loop import REPEATS, STOPWATCH, graph_of, rounds_of

from bide import END, START, MemorySaver, StateGraph, Store


def open_store(asked: Settings) -> Store | None:
    if asked.store == "none":
        return None
    return MemorySaver() if asked.store == "memory" else Store.open(f"sqlite:///{asked.database}")


def stored_bytes(value: object) -> int:
    """Return how many bytes a column takes in SQLite's record format, but for its one-byte header."""
    if isinstance(value, int):
        return (value.bit_length() + 8) // 8
    return len(value.encode()) if isinstance(value, str) else len(value or b"")


def bytes_per_step(asked: Settings, thread_id: str, steps: int) -> float:
    """Add up every column of every row that the thread has, in all tables, and divide by its steps."""
    with sqlite3.connect(asked.database) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        of_threads = [
            table
            for table in tables
            if any(column[1] == "thread_id" for column in connection.execute(f"PRAGMA table_info({table})"))
        ]
        rows = [
            row
            for table in of_threads
            for row in connection.execute(f"SELECT * FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608
        ]
    connection.close()
    return sum(stored_bytes(value) for row in rows for value in row) / steps


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    store = open_store(asked)
    graph = graph_of(StateGraph, START, END).compile(checkpointer=store, durability="sync")

    def run(number: int) -> None:
        config = {"configurable": {"thread_id": f"loop-{number}"}, "recursion_limit": 10 * rounds}
        done = graph.invoke({"n": 0, "limit": rounds, "text": ""}, config)
        assert done["n"] == rounds, done

    for number in range(asked.amount(REPEATS, 1)):
        STOPWATCH.time(lambda number=number: run(number))
    metrics = STOPWATCH.metrics()
    if store is not None:
        store.close()
    if asked.store == "sqlite":
        metrics["row_bytes"] = metric("B", [bytes_per_step(asked, "loop-0", 3 * rounds)])
    report(**metrics)


if __name__ == "__main__":
    main()
