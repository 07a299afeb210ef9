"""The inbox of an asyncio driver: as `inbox`, for writers on the loop and in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from threading import Event
from typing import Any, TypeVar

from bide.engine.inbox import Inbox
from bide.engine.values import Emit

T = TypeVar("T")


class AsyncInbox(Inbox):
    """A queue for the driver of a run on an event loop.

    A writer in a thread waits for room. A writer on the loop must not: it goes on to its next `await`, and is not
    woken before the reader has caught up.
    """

    def __init__(self, stopped: Event, *, is_live: bool, outer: AsyncInbox | None = None) -> None:
        super().__init__(stopped, is_live=is_live)
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_live = is_live
        self._excess = 0
        is_near = outer is not None and outer._loop is self._loop
        self._front: AsyncInbox = outer._front if outer is not None and is_near else self
        """Where the events of these tasks go: those of a graph inside a task go to the reader of the whole stream."""

    def put(self, item: Any) -> None:
        """Hand over an outcome, on the loop."""
        self._items.put(item)
        self._arrived.set()

    def tell(self, event: Emit) -> None:
        """Hand over an event, from the loop or from a thread."""
        if self._stopped.is_set():
            return
        if self._is_on_loop():
            if self._room is not None and not self._room.acquire(blocking=False):
                self._excess += 1
            self.put(event)
        else:
            super().tell(event)
            self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrived.set)
        except RuntimeError:
            return  # the loop is closed: whoever read has gone away

    def _is_on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    async def take(self) -> list[Any]:
        """Wait for something; return all there is, up to the first outcome."""
        while self._items.empty():
            self._arrived.clear()
            await self._arrived.wait()
        items = []
        while not self._items.empty():
            items.append(self._items.get_nowait())
            if items[-1].__class__ is Emit and self._room is not None:
                if self._excess:
                    self._excess -= 1
                else:
                    self._room.release()
        self._taken.set()
        return items

    def throttled(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Let work on the loop wait at an `await` while it has written more than there is room for."""
        return self._front._throttle(work) if self._is_live else work

    async def _throttle(self, work: Coroutine[Any, Any, T]) -> T:
        result: T = await _Throttled(self, work)
        return result

    async def _room_again(self) -> None:
        while self._excess and not self._stopped.is_set():
            self._taken.clear()
            await self._taken.wait()


class _Throttled:
    """Steps a coroutine from one await to the next, and waits in between while there is no room."""

    def __init__(self, inbox: AsyncInbox, work: Coroutine[Any, Any, Any]) -> None:
        self.inbox = inbox
        self.work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        value: Any = None
        problem: BaseException | None = None
        while True:
            try:
                waits_for = self.work.send(value) if problem is None else self.work.throw(problem)
            except StopIteration as told:
                return told.value
            value = problem = None
            try:
                value = yield waits_for
                if self.inbox._excess:
                    yield from self.inbox._room_again().__await__()
            except BaseException as error:  # noqa: BLE001 — belongs to the work, which is told at its await
                problem = error
