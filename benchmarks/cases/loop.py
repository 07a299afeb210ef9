"""The loop that every subject runs: three nodes in a ring, a counter and a short text as state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypedDict

from case import Settings, Took, clocks, timing

ROUNDS = 100
"""Times three nodes: 300 steps in one call."""
REPEATS = 4
LAP = 10
"""Rounds in one sample: short enough that other programs leave some of them alone."""


class Loop(TypedDict):
    """A tiny state."""

    n: int
    limit: int
    text: str


class Stopwatch:
    """Looks at the clock whenever another lap is run; what a call costs once is in none of them."""

    def __init__(self) -> None:
        self._marks: list[Took] = []
        self._laps: list[Took] = []

    def passed(self, rounds: int) -> None:
        """Note that so many rounds are done; called by the first node of the ring."""
        if rounds % LAP == 0:
            self._marks.append(clocks())

    def time(self, run: Callable[[], Any]) -> None:
        """Run the loop once and keep its laps."""
        self._marks.clear()
        run()
        self._laps += [after - before for before, after in pairwise(self._marks)]

    def metrics(self) -> dict[str, Any]:
        """Return how long a step took."""
        return timing("step", "µs", self._laps, per=3 * LAP)


STOPWATCH = Stopwatch()


def rounds_of(asked: Settings) -> int:
    return asked.amount(ROUNDS, 3 * LAP)


def count(state: Loop) -> dict[str, int]:
    n = state["n"] + 1
    STOPWATCH.passed(n)
    return {"n": n}


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
