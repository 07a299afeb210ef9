"""What the tests with LangChain share: both drivers, and a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bide import CompiledGraph, MemorySaver, Store


async def _collected(graph: CompiledGraph, *args: Any, **options: Any) -> list[Any]:
    return [part async for part in graph.astream(*args, **options)]


@pytest.fixture(params=["stream", "astream"])
def read(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Reads a whole stream, with each driver."""
    if request.param == "stream":
        return lambda graph, *args, **options: list(graph.stream(*args, **options))
    return lambda graph, *args, **options: asyncio.run(_collected(graph, *args, **options))


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a graph, with each driver."""
    if request.param == "invoke":
        return lambda graph, *args, **options: graph.invoke(*args, **options)
    return lambda graph, *args, **options: asyncio.run(graph.ainvoke(*args, **options))


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory, closed after the test."""
    with MemorySaver() as opened:
        yield opened
