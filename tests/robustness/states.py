"""The state that most of these tests need, and nodes that fail as often as they are told."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Annotated, Any, TypedDict

from bide import CompiledGraph, StateGraph
from bide.types import START


class State(TypedDict, total=False):
    name: Any
    value: Any
    log: Annotated[list[Any], operator.add]


class Trouble(Exception):
    """An error that may pass."""


class Flaky:
    """A function that raises these errors, one at each call, and then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors: Iterator[Exception] = iter(errors)
        self.calls = 0
        self._lock = Lock()

    def __call__(self, what: Any = "done") -> Any:
        with self._lock:
            self.calls += 1
            error = next(self.errors, None)
        if error is not None:
            raise error
        return what


def lone(node: Any, compile: dict[str, Any] | None = None, **options: Any) -> CompiledGraph:
    """A graph of one node called `node`, with these policies."""
    builder = StateGraph(State).add_node("node", node, **options).add_edge(START, "node")
    return builder.compile(**(compile or {}))


def beside(nodes: Sequence[tuple[str, Any, dict[str, Any]]], **options: Any) -> CompiledGraph:
    """A graph whose nodes run in one step, each with its own policies."""
    builder = StateGraph(State)
    for name, node, policies in nodes:
        builder.add_node(name, node, **policies).add_edge(START, name)
    return builder.compile(**options)
