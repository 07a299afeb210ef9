"""Five hundred turns on LangGraph, on a SQLite file or on PostgreSQL."""

from __future__ import annotations

from case import report, settings
from chat import graph_of, growth, hold
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph_saver import open_saver


def main() -> None:
    asked = settings()
    with open_saver(asked) as saver:
        empty = asked.bytes_when_empty()
        graph = graph_of(StateGraph, MessagesState, START, END).compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "chat"}}
        metrics, said = hold(
            asked, lambda text: graph.invoke({"messages": [text]}, config, durability="sync")["messages"]
        )
    report(**metrics, growth=growth(asked, said, empty))


if __name__ == "__main__":
    main()
