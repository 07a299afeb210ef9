"""A graph that goes through a script, one operation after the other: the real thing beside the model."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from bide import END, START, StateGraph, interrupt, sleep, spawn, step, wait_for
from bide.errors import WaitCancelled
from bide.waits import child, event


class State(TypedDict, total=False):
    script: list[Any]
    at: int
    done: Annotated[list[Any], operator.add]


def act(state: State) -> State:
    kind, *rest = state["script"][state["at"]]
    if kind == "fail":
        raise ValueError("as it says in the script")
    said = "step" if kind == "step" else [kind, _heard(kind, rest)]
    if kind == "step":
        step(str.upper, "x")
    return {"at": state["at"] + 1, "done": [said]}


def _heard(kind: str, rest: list[Any]) -> Any:
    try:
        return _WAITS[kind](*rest)
    except WaitCancelled:
        return "withdrawn"


def _spawned(script: list[Any], on_close: Any) -> str:
    result = wait_for(child(spawn("scripts", given(script), on_parent_close=on_close)))
    return str(getattr(result.value, "status", result.value))


_WAITS: dict[str, Any] = {
    "ask": lambda hours: interrupt("?", timeout=f"{hours}h", default="late") if hours else interrupt("?"),
    "event": lambda name: wait_for(event(name)).value,
    "sleep": lambda hours: sleep(f"{hours}h") or "slept",
    "spawn": _spawned,
}


def given(script: list[Any]) -> State:
    """The input that lets a thread go through a script from its beginning."""
    return {"script": script, "at": 0}


def _next(state: State) -> str:
    return "act" if state["at"] < len(state["script"]) else END


BUILDER = StateGraph(State).add_node(act)
BUILDER.add_conditional_edges(START, _next, ["act", END]).add_conditional_edges("act", _next, ["act", END])
GRAPH = BUILDER.compile(name="scripts")
