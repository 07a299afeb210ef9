"""The real SDK, sync and async, behind one face: what a test says holds for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langgraph_sdk import get_client, get_sync_client

KINDS = ("sync", "async")


class _Part:
    """One part of an async client, called from sync code."""

    def __init__(self, loop: asyncio.AbstractEventLoop, part: Any) -> None:
        self._loop = loop
        self._part = part

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            return self._walked(result) if hasattr(result, "__aiter__") else result

        return call

    def _walked(self, stream: Any) -> Iterator[Any]:
        """Walk through an async stream; whoever leaves it early closes it."""
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(anext(stream))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(stream.aclose())


class _Parts:
    """The parts of an async client: assistants, crons, store and so on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        self._loop = loop
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return _Part(self._loop, getattr(self._client, name))


@contextmanager
def opened_client(kind: str, url: str, **options: Any) -> Iterator[Any]:
    """Open the SDK's client of a kind."""
    if kind == "sync":
        with get_sync_client(url=url, **options) as client:
            yield client
        return
    loop = asyncio.new_event_loop()
    client = get_client(url=url, **options)
    try:
        yield _Parts(loop, client)
    finally:
        loop.run_until_complete(client.aclose())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
