"""Five hundred turns on Bide, on a SQLite file: bytes on disk for a byte said, and the last turns beside the first."""

from __future__ import annotations

from case import metric, report, settings
from chat import graph_of, hold

from bide import END, START, MessagesState, StateGraph, Store


def main() -> None:
    asked = settings()
    with Store.open(f"sqlite:///{asked.database}") as store:
        graph = graph_of(StateGraph, MessagesState, START, END).compile(checkpointer=store)
        slowdown, said = hold(asked, lambda given: graph.invoke(given, {"configurable": {"thread_id": "chat"}}))
    report(slowdown=slowdown, growth=metric("×", [asked.bytes_on_disk() / said]))


if __name__ == "__main__":
    main()
