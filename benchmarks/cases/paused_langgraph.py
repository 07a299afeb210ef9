"""A thousand paused threads on LangGraph: what one takes on disk beside its state. It has no list of who waits."""

from __future__ import annotations

import sqlite3

from approval import STATE_BYTES, config_of, graph_of, new_order
from case import metric, report, settings
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


def main() -> None:
    asked = settings()
    threads = asked.amount(1_000, 20)
    connection = sqlite3.connect(asked.database, check_same_thread=False)
    saver = SqliteSaver(connection)
    graph = graph_of(StateGraph, START, END, interrupt).compile(checkpointer=saver)
    for number in range(threads):
        graph.invoke(new_order(), config_of(number), durability="sync")
    connection.close()
    report(paused_bytes=metric("B", [asked.bytes_on_disk() / threads - STATE_BYTES]))


if __name__ == "__main__":
    main()
