"""Nodes that count and note their visits: what most of the tests of Synaptic and langgraphgo are made of."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from bide import CompiledGraph, StateGraph, Store


class Visits(TypedDict, total=False):
    counter: Annotated[int, operator.add]
    visited: Annotated[list[str], operator.add]


def counting(name: str) -> Callable[[Visits], Visits]:
    """A node that counts one and notes its name."""
    return lambda state: {"counter": 1, "visited": [name]}


def after(*names: str) -> Visits:
    """The state after these visits."""
    return {"counter": len(names), "visited": list(names)}


def visit(names: str, store: Store | None = None, **options: Any) -> CompiledGraph:
    """A graph that visits these letters in their order."""
    builder = StateGraph(Visits).add_sequence([(name, counting(name)) for name in names])
    return builder.set_entry_point(names[0]).set_finish_point(names[-1]).compile(store, **options)
