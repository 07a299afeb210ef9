"""The loop that every subject runs: three nodes in a ring, a counter and a short text as state."""

from __future__ import annotations

from typing import Any, TypedDict

ROUNDS = 100
"""Times three nodes: 300 steps in one call, so that what a call costs once does not count."""
REPEATS = 4


class Loop(TypedDict):
    """A tiny state."""

    n: int
    limit: int
    text: str


def count(state: Loop) -> dict[str, int]:
    return {"n": state["n"] + 1}


def speak(state: Loop) -> dict[str, str]:
    return {"text": "spoken"}


def listen(state: Loop) -> dict[str, str]:
    return {"text": "heard"}


def is_over(state: Loop) -> bool:
    return state["n"] >= state["limit"]


def graph_of(builder: Any, start: str, end: str) -> Any:
    """Draw the ring with `StateGraph`, `START` and `END` of whoever is measured: the names are the same."""
    graph = builder(Loop)
    graph.add_node("count", count)
    graph.add_node("speak", speak)
    graph.add_node("listen", listen)
    graph.add_edge(start, "count")
    graph.add_edge("count", "speak")
    graph.add_edge("speak", "listen")
    graph.add_conditional_edges("listen", lambda state: end if is_over(state) else "count")
    return graph
