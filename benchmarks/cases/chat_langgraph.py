"""Five hundred turns on LangGraph, on a SQLite file."""

from __future__ import annotations

import sqlite3

from case import metric, report, settings
from chat import graph_of, hold
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph


def main() -> None:
    asked = settings()
    connection = sqlite3.connect(asked.database, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous = FULL")
    graph = graph_of(StateGraph, MessagesState, START, END).compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "chat"}}
    slowdown, said = hold(asked, lambda given: graph.invoke(given, config, durability="sync"))
    connection.close()
    report(slowdown=slowdown, growth=metric("×", [asked.bytes_on_disk() / said]))


if __name__ == "__main__":
    main()
