"""A loop over a subgraph on LangGraph, in memory or on a SQLite file."""

from __future__ import annotations

import sqlite3

from case import report, settings, timing, took
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from nest import REPEATS, VISITS, graph_of


def main() -> None:
    asked = settings()
    visits = asked.amount(VISITS, 5)
    if asked.store == "memory":
        saver = InMemorySaver()
    else:
        connection = sqlite3.connect(asked.database, check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        connection.execute("PRAGMA synchronous = FULL")
    graph = graph_of(StateGraph, START, END).compile(checkpointer=saver)

    def run(number: int) -> None:
        config = {"configurable": {"thread_id": f"nest-{number}"}, "recursion_limit": 10 * VISITS}
        assert graph.invoke({"n": 0, "limit": visits}, config, durability="sync")["n"] == visits

    samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("visit", "µs", samples, per=visits))


if __name__ == "__main__":
    main()
