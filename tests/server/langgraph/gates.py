"""A graph whose nodes stand at a gate until a test opens it, and one that says what it was started with."""

from __future__ import annotations

import operator
from collections import defaultdict
from threading import Event
from typing import Annotated, Any, TypedDict

from bide import START, CompiledGraph, Runtime, StateGraph, get_config

GATES: defaultdict[str, Event] = defaultdict(Event)
ARRIVED: defaultdict[str, Event] = defaultdict(Event)
LONG = 60


class Road(TypedDict, total=False):
    gate: str
    steps: Annotated[list[str], operator.add]


class Told(TypedDict, total=False):
    config: dict[str, Any]
    context: Any


class Manner(TypedDict, total=False):
    colour: str


def set_out(state: Road) -> dict[str, Any]:
    return {"steps": ["set out"]}


def stand(state: Road) -> dict[str, Any]:
    gate = state.get("gate")
    if gate:
        ARRIVED[gate].set()
        assert GATES[gate].wait(LONG), "nobody has opened the gate"
    return {"steps": [f"passed {gate}"]}


def tell(state: Told, runtime: Runtime[Manner]) -> dict[str, Any]:
    config = get_config()
    return {"config": {**config["configurable"], "tags": config.get("tags")}, "context": runtime.context}


def road() -> CompiledGraph:
    """Sets out, and stands at the gate that its input names."""
    return (
        StateGraph(Road)
        .add_node(set_out)
        .add_node(stand)
        .add_edge(START, "set_out")
        .add_edge("set_out", "stand")
        .compile(name="road")
    )


def telling() -> CompiledGraph:
    """Says with which config and context it was started."""
    return StateGraph(Told, Manner).add_node(tell).add_edge(START, "tell").compile(name="telling")
