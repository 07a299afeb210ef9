"""The loop on Bide: without a store, in memory, or on SQLite or PostgreSQL, which wait for the disk (its default)."""

from __future__ import annotations

from contextlib import nullcontext

from bide_store import open_store, rows_of
from case import Settings, metric, report, settings
from databases import stored_bytes
from loop import REPEATS, STOPWATCH, graph_of, rounds_of

from bide import END, START, StateGraph


def bytes_per_step(asked: Settings, thread_id: str, steps: int) -> float:
    """Add up every column of every row that the thread has, in all tables, and divide by its steps."""
    return sum(stored_bytes(value) for row in rows_of(asked, thread_id) for value in row.values) / steps


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    with nullcontext() if asked.store == "none" else open_store(asked) as store:
        graph = graph_of(StateGraph, START, END).compile(checkpointer=store, durability="sync")

        def run(number: int) -> None:
            config = {"configurable": {"thread_id": f"loop-{number}"}, "recursion_limit": 10 * rounds}
            done = graph.invoke({"n": 0, "limit": rounds, "text": ""}, config)
            assert done["n"] == rounds, done

        for number in range(asked.amount(REPEATS, 1)):
            STOPWATCH.time(lambda number=number: run(number))
    metrics = STOPWATCH.metrics()
    if asked.store in ("sqlite", "postgres"):
        metrics["row_bytes"] = metric("B", [bytes_per_step(asked, "loop-0", 3 * rounds)])
    report(**metrics)


if __name__ == "__main__":
    main()
