"""Slots: where each write of this process leaves a note in its own transaction, to know later whether it was applied.

A server's transaction ids would not do: after a crash, one that was never flushed may be given out again.
"""

from __future__ import annotations

import os
from threading import Lock


class Slot:
    """One row of `outcomes`, used by one write at a time."""

    __slots__ = ("name", "token")

    def __init__(self, name: str) -> None:
        self.name = name
        self.token = 0
        """The number of the write that was begun last."""


class Slots:
    """As many slots as there were writes at the same time."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._free: list[Slot] = []
        self._made = 0
        self._lock = Lock()

    def take(self) -> Slot:
        """Return a slot for the next write."""
        with self._lock:
            if not self._free:
                self._made += 1
                self._free.append(Slot(f"{self._prefix}/{self._made}"))
            slot = self._free.pop()
        slot.token += 1
        return slot

    def give_back(self, slot: Slot) -> None:
        """Let others use a slot, of which it is known how its write ended."""
        with self._lock:
            self._free.append(slot)


def new_slots() -> Slots:
    """Return slots that no other process has."""
    return Slots(os.urandom(10).hex())
