"""The loop over a subgraph that every subject runs: a node that is a graph of two nodes, visited again and again."""

from __future__ import annotations

from typing import Any, TypedDict

VISITS = 1000
REPEATS = 2


class Nest(TypedDict):
    """A counter, and how far it goes."""

    n: int
    limit: int


def add(state: Nest) -> dict[str, int]:
    return {"n": state["n"] + 1}


def look(state: Nest) -> dict[str, int]:
    return {}


def graph_of(builder: Any, start: str, end: str) -> Any:
    """Draw the outer graph around the compiled inner one, with the names of whoever is measured."""
    inner = builder(Nest)
    inner.add_node("add", add)
    inner.add_node("look", look)
    inner.add_edge(start, "add")
    inner.add_edge("add", "look")
    inner.add_edge("look", end)
    outer = builder(Nest)
    outer.add_node("team", inner.compile())
    outer.add_edge(start, "team")
    outer.add_conditional_edges("team", lambda state: end if state["n"] >= state["limit"] else "team")
    return outer
