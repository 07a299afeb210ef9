"""Watching what the interpreter does while stored bytes are read: everything that it reports is an alarm."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_HARMLESS = frozenset({"sys.setprofile", "object.__getattr__", "object.__setattr__", "builtins.id"})
"""Reported for what this watch itself does, for attributes and for `id()`; everything else counts."""


class Watch:
    """Writes down whatever Python reports to its audit hooks, and counts the calls that were made."""

    def __init__(self, allowed: frozenset[str] = _HARMLESS) -> None:
        self.alarms: list[str] = []
        self.calls = 0
        self._allowed = allowed
        self._is_watching = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_watching and event not in self._allowed:
            self.alarms.append(f"{event}{arguments!r}"[:300])

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    @contextmanager
    def on(self, counting: bool = True) -> Iterator[Watch]:
        """Watch what is done in the block."""
        self.alarms.clear()
        self.calls = 0
        if counting:
            sys.setprofile(self._count)
        self._is_watching = True
        try:
            yield self
        finally:
            self._is_watching = False
            sys.setprofile(None)


def limit_memory(more: int) -> None:
    """Let this process take only so many bytes more than it has; beyond that Python says MemoryError."""
    with open("/proc/self/statm", encoding="ascii") as status:
        taken = int(status.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, taken + more))


def alarms_of(watch: Watch, act: Callable[[], object]) -> list[str]:
    """What the watch reports of something that is done, whatever comes of it."""
    with suppress(Exception), watch.on():
        act()
    return list(watch.alarms)
