"""How a step's cost grows with the state and the history, on LangGraph in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import report, settings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from slope import graph_of, metrics


def make(keys: int) -> Callable[[str, Any], Any]:
    graph = graph_of(StateGraph, START, END, keys).compile(checkpointer=InMemorySaver())
    return lambda thread, given: graph.invoke(given, {"configurable": {"thread_id": thread}}, durability="sync")


if __name__ == "__main__":
    report(**metrics(settings(), make))
