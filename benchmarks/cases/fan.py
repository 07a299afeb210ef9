"""The fan-out that every subject runs: many tasks in one step, whose results come together in one list."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

REPEATS = 4


class Fan(TypedDict):
    """What the tasks bring together."""

    done: Annotated[list[int], operator.add]


def work(state: dict[str, int]) -> dict[str, list[int]]:
    return {"done": [state["number"]]}


def graph_of(builder: Any, start: str, end: str, send: Any, width: int) -> Any:
    """Draw the graph with the names of whoever is measured."""
    graph = builder(Fan)
    graph.add_node("work", work)
    graph.add_conditional_edges(start, lambda state: [send("work", {"number": number}) for number in range(width)])
    graph.add_edge("work", end)
    return graph
