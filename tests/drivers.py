"""One suite for both drivers: a test asks for `driver` and runs once with `invoke` and once with `ainvoke`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any

from bide import CompiledGraph


class Driver:
    """Calls a graph the plain way."""

    name = "sync"

    def invoke(self, graph: CompiledGraph, given: Any, config: Any = None, **options: Any) -> Any:
        """Run the graph to its end or to a pause."""
        return graph.invoke(given, config, **options)

    def stream(self, graph: CompiledGraph, given: Any, config: Any = None, **options: Any) -> list[Any]:
        """Run the graph and return all parts of its stream."""
        return list(graph.stream(given, config, **options))

    def call(self, graph: CompiledGraph, method: str, *args: Any, **options: Any) -> Any:
        """Call any other method that has an async twin: `get_state`, `update_state`, `fork` …"""
        result = getattr(graph, method)(*args, **options)
        return list(result) if method == "get_state_history" else result

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a node as this driver's users write it: here, the plain function."""
        return function


class AsyncDriver(Driver):
    """Calls a graph with asyncio, each call in an event loop of its own."""

    name = "async"

    def invoke(self, graph: CompiledGraph, given: Any, config: Any = None, **options: Any) -> Any:
        return asyncio.run(graph.ainvoke(given, config, **options))

    def stream(self, graph: CompiledGraph, given: Any, config: Any = None, **options: Any) -> list[Any]:
        async def collect() -> list[Any]:
            return [part async for part in graph.astream(given, config, **options)]

        return asyncio.run(collect())

    def call(self, graph: CompiledGraph, method: str, *args: Any, **options: Any) -> Any:
        async def collect() -> Any:
            result = getattr(graph, f"a{method}")(*args, **options)
            return [item async for item in result] if method == "get_state_history" else await result

        return asyncio.run(collect())

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as a coroutine function."""

        @wraps(function)
        async def node(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return node


DRIVERS = [Driver(), AsyncDriver()]
