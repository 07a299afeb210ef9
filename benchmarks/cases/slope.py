"""What a step costs as the state and the history grow: the same small step beside many keys, and after many others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from case import Settings, metric, took

STEPS = 100
CALLS = 40
MANY, FEW = 1000, 10


class Counter(TypedDict):
    """The only key that the node and its edge read."""

    n: int


def add(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


def schema_of(keys: int) -> type:
    """A state with the counter and so many other keys."""
    return TypedDict("State", {"n": int, **{f"key_{number}": str for number in range(keys)}})  # type: ignore[operator]


def graph_of(builder: Any, start: str, end: str, keys: int) -> Any:
    """Draw the graph with the names of whoever is measured."""

    def is_over(state: Counter) -> str:
        return end if state["n"] % STEPS == 0 else "add"

    graph = builder(schema_of(keys))
    graph.add_node("add", add, input_schema=Counter)
    graph.add_edge(start, "add")
    graph.add_conditional_edges("add", is_over, ["add", end])
    return graph


def state_of(keys: int) -> dict[str, Any]:
    return {"n": 0, **{f"key_{number}": "a value" for number in range(keys)}}


def metrics(asked: Settings, make: Callable[[int], Callable[[str, Any], Any]]) -> dict[str, Any]:
    """`make(keys)` returns what runs STEPS steps: `run(thread_id, input)`."""
    repeats = asked.amount(5, 1)

    def step_beside(keys: int) -> float:
        run = make(keys)
        run("first", state_of(keys))
        costs = [took(lambda: run("first", {"n": 0})).cpu for _ in range(repeats)]
        return min(costs)

    run = make(FEW)
    calls = asked.amount(CALLS, 2)
    costs = [took(lambda: run("long", state_of(FEW))).cpu for _ in range(calls)]
    part = max(calls // 8, 1)
    return {
        "keys": metric("×", [step_beside(MANY) / step_beside(FEW)]),
        "history": metric("×", [min(costs[-part:]) / min(costs[:part])]),
    }
