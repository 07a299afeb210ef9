"""Pause and resume on LangGraph, on a SQLite file: each half is done by a graph that was compiled for it alone."""

from __future__ import annotations

import sqlite3

from approval import config_of, graph_of, measure_pairs, new_order
from case import report, settings
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


def main() -> None:
    asked = settings()
    graph = graph_of(StateGraph, START, END, interrupt)
    connection = sqlite3.connect(asked.database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous = FULL")

    def pair(number: int) -> None:
        config = config_of(number)
        paused = graph.compile(checkpointer=saver).invoke(new_order(), config, durability="sync")
        assert paused["__interrupt__"]
        done = graph.compile(checkpointer=saver).invoke(Command(resume=True), config, durability="sync")
        assert done["text"] == "shipped"

    report(**measure_pairs(asked, pair))


if __name__ == "__main__":
    main()
