"""Many tasks in one step on LangGraph, in memory or on a SQLite file."""

from __future__ import annotations

import sqlite3

from case import report, settings, timing, took
from fan import REPEATS, graph_of
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


def main() -> None:
    asked = settings()
    if asked.store == "memory":
        saver = InMemorySaver()
    else:
        connection = sqlite3.connect(asked.database, check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute("PRAGMA synchronous = FULL")
    graph = graph_of(StateGraph, START, END, Send, asked.width).compile(checkpointer=saver)

    def run(number: int) -> None:
        done = graph.invoke({"done": []}, {"configurable": {"thread_id": f"fan-{number}"}}, durability="sync")
        assert done["done"] == list(range(asked.width)), done

    samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("fan", "ms", samples))


if __name__ == "__main__":
    main()
