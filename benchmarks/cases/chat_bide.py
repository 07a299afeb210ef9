"""Five hundred turns on Bide: bytes on disk for a byte said, and the last turns beside the first."""

from __future__ import annotations

from bide_store import open_store
from case import report, settings
from chat import graph_of, growth, hold

from bide import END, START, MessagesState, StateGraph


def main() -> None:
    asked = settings()
    with open_store(asked) as store:
        empty = asked.bytes_when_empty()
        graph = graph_of(StateGraph, MessagesState, START, END).compile(checkpointer=store)
        config = {"configurable": {"thread_id": "chat"}}
        metrics, said = hold(asked, lambda text: graph.invoke({"messages": [text]}, config)["messages"])
    report(**metrics, growth=growth(asked, said, empty))


if __name__ == "__main__":
    main()
