"""Threads for nodes: made when they are needed, kept for a while, shared by all runs of this process.

A pool with a fixed size would block for ever when a task in it waits for tasks of its own. This one grows: whoever
submits gets a thread at once. How many tasks of a run are in threads is decided by its crew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

IDLE_SECONDS = 10.0
"""How long a thread waits for its next job before it ends."""

Job = tuple[Callable[..., Any], tuple[Any, ...]]


class Pool:
    """Idle threads, the last one used on top."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[SimpleQueue[Job]] = []
        self._desks = 0

    @property
    def busy(self) -> int:
        """How many threads are at work."""
        with self._lock:
            return self._desks - len(self._idle)

    def submit(self, function: Callable[..., Any], *args: Any) -> None:
        """Call `function(*args)` in another thread. It must not raise: nobody would hear of it."""
        with self._lock:
            desk = self._idle.pop() if self._idle else None
            self._desks += desk is None
        if desk is None:
            desk = SimpleQueue()
            Thread(target=self._serve, args=(desk,), name="bide-task", daemon=True).start()
        desk.put((function, args))

    def _serve(self, desk: SimpleQueue[Job]) -> None:
        while True:
            try:
                function, args = desk.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if desk in self._idle:
                        self._idle.remove(desk)
                        self._desks -= 1
                        return
                continue  # a job was on its way while the time ran out
            function(*args)
            del function, args  # what a job worked on must not live as long as the thread
            with self._lock:
                self._idle.append(desk)

    def forget(self) -> None:
        """Begin anew: after a fork the threads are the parent's."""
        self._lock = Lock()
        self._idle = []
        self._desks = 0


POOL = Pool()
os.register_at_fork(after_in_child=POOL.forget)
