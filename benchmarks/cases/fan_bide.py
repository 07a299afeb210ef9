"""Many tasks in one step on Bide, in memory, on SQLite or on PostgreSQL; finished tasks are saved as they come."""

from __future__ import annotations

from bide_store import open_store
from case import report, settings, timing, took
from fan import REPEATS, graph_of

from bide import END, START, Send, StateGraph


def main() -> None:
    asked = settings()
    with open_store(asked) as store:
        graph = graph_of(StateGraph, START, END, Send, asked.width).compile(checkpointer=store)

        def run(number: int) -> None:
            done = graph.invoke({"done": []}, {"configurable": {"thread_id": f"fan-{number}"}})
            assert done["done"] == list(range(asked.width)), done

        samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("fan", "ms", samples))


if __name__ == "__main__":
    main()
