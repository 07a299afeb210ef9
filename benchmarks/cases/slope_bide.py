"""How a step's cost grows with the state and the history, on Bide in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import report, settings
from slope import graph_of, metrics

from bide import END, START, MemorySaver, StateGraph


def make(keys: int) -> Callable[[str, Any], Any]:
    graph = graph_of(StateGraph, START, END, keys).compile(checkpointer=MemorySaver())
    return lambda thread, given: graph.invoke(given, {"configurable": {"thread_id": thread}})


if __name__ == "__main__":
    report(**metrics(settings(), make))
