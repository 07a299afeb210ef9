"""Where tasks put what they have for the driver: outcomes at once, events while there is room.

The reader of a stream may be slow. Then whoever writes events waits, so that none is lost and memory stays bounded; a
reader that has gone away keeps nobody waiting.
"""

from __future__ import annotations

from queue import SimpleQueue
from threading import BoundedSemaphore, Event
from typing import Any

from bide.engine.values import Emit

ROOM = 1000
"""How many events may lie unread."""


class Inbox:
    """A queue for the driver of a run, bounded for events."""

    def __init__(self, stopped: Event, *, is_live: bool) -> None:
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._room = BoundedSemaphore(ROOM) if is_live else None
        self._stopped = stopped

    def put(self, item: Any) -> None:
        """Hand over an outcome; there is always room for it."""
        self._items.put(item)

    def tell(self, event: Emit) -> None:
        """Hand over an event; wait while too many lie unread. When nobody will read it, it is dropped at once."""
        assert self._room is not None, "only live streams are told events"
        while not self._stopped.is_set():
            if self._room.acquire(timeout=0.1):
                self._items.put(event)
                return

    def get(self, *, block: bool, timeout: float | None) -> Any:
        """Take the next thing; raise `queue.Empty` when there is none in time."""
        item = self._items.get(block, timeout) if block else self._items.get_nowait()
        if item.__class__ is Emit and self._room is not None:
            self._room.release()
        return item
