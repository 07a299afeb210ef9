"""How tests name a thread, and the stores that they run on."""

from __future__ import annotations

from time import monotonic
from typing import Any

from bide import CompiledGraph, StateGraph
from bide.engine.pool import POOL
from bide.types import START


def thread(name: Any = "t", **more: Any) -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": name}, **more}


def let_tasks_end(patience: float = 30) -> None:
    """Wait until nodes whose run was left have ended by themselves: until then their thread is not free."""
    until = monotonic() + patience
    while POOL.busy:
        assert monotonic() < until, f"{POOL.busy} tasks do not end"


def one_node(schema: Any, node: Any, **options: Any) -> CompiledGraph:
    """A graph of one node, which is called `node`."""
    return StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(**options)


def side_by_side(schema: Any, nodes: dict[str, Any], **options: Any) -> CompiledGraph:
    """A graph whose nodes all run in one step."""
    builder = StateGraph(schema)
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(START, name)
    return builder.compile(**options)


def in_a_row(schema: Any, nodes: dict[str, Any], **options: Any) -> CompiledGraph:
    """A graph whose nodes run one after the other."""
    builder = StateGraph(schema).add_sequence(list(nodes.items()))
    return builder.add_edge(START, next(iter(nodes))).compile(**options)
