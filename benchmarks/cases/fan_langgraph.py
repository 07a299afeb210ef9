"""Many tasks in one step on LangGraph, in memory, on a SQLite file or on PostgreSQL."""

from __future__ import annotations

from case import report, settings, timing, took
from fan import REPEATS, graph_of
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from langgraph_saver import open_saver


def main() -> None:
    asked = settings()
    with open_saver(asked) as saver:
        graph = graph_of(StateGraph, START, END, Send, asked.width).compile(checkpointer=saver)

        def run(number: int) -> None:
            done = graph.invoke({"done": []}, {"configurable": {"thread_id": f"fan-{number}"}}, durability="sync")
            assert done["done"] == list(range(asked.width)), done

        samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("fan", "ms", samples))


if __name__ == "__main__":
    main()
