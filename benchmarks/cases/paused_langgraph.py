"""A thousand paused threads on LangGraph: what one takes on disk and in memory. It has no list of who waits."""

from __future__ import annotations

from approval import config_of, graph_of, new_order, price_of_a_pause
from case import most_memory, report, settings
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from langgraph_saver import open_saver


def main() -> None:
    asked = settings()
    first, threads = asked.amount(100, 5), asked.amount(1_000, 20)
    with open_saver(asked) as saver:
        empty = asked.bytes_when_empty()
        graph = graph_of(StateGraph, START, END, interrupt).compile(checkpointer=saver)
        for number in range(first):
            graph.invoke(new_order(), config_of(number), durability="sync")
        memory = most_memory()
        for number in range(first, threads):
            graph.invoke(new_order(), config_of(number), durability="sync")
        memory = most_memory() - memory
    report(**price_of_a_pause(asked, threads, empty, memory / (threads - first)))


if __name__ == "__main__":
    main()
