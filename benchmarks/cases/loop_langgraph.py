"""The loop on LangGraph: without a checkpointer, with InMemorySaver, or with SqliteSaver and synchronous=FULL."""

from __future__ import annotations

import sqlite3
from typing import Any

from case import Settings, report, settings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from loop import REPEATS, STOPWATCH, graph_of, rounds_of


def open_saver(asked: Settings) -> Any:
    if asked.store == "none":
        return None
    if asked.store == "memory":
        return InMemorySaver()
    connection = sqlite3.connect(asked.database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous = FULL")
    return saver


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    saver = open_saver(asked)
    graph = graph_of(StateGraph, START, END).compile(checkpointer=saver)
    options = {} if saver is None else {"durability": "sync"}

    def run(number: int) -> None:
        config = {"configurable": {"thread_id": f"loop-{number}"}, "recursion_limit": 10 * rounds}
        done = graph.invoke({"n": 0, "limit": rounds, "text": ""}, config, **options)
        assert done["n"] == rounds, done

    for number in range(asked.amount(REPEATS, 1)):
        STOPWATCH.time(lambda number=number: run(number))
    report(**STOPWATCH.metrics())


if __name__ == "__main__":
    main()
