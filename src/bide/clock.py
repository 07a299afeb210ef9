"""Time as an input: the only module that reads the machine's clock."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Protocol

Instant = int
"""Milliseconds since 1970 in UTC: what the database stores and compares."""


class Clock(Protocol):
    """Something that tells the time; tests give one that they can move."""

    def now(self) -> Instant:
        """Return the present instant."""
        ...

    def sleep(self, seconds: float, stopped: Event) -> None:
        """Return when so much time has passed, or earlier when `stopped` is set."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Do what `sleep` does, on an event loop."""
        ...


def elapsed() -> float:
    """Return seconds on a clock that nobody sets: it tells how much time has passed, also while a machine slept."""
    return time.clock_gettime(_SINCE_BOOT)


# Linux counts the time that a machine sleeps here alone; elsewhere the monotonic clock does, or nothing can.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", 0))
if not hasattr(time, "clock_gettime"):  # pragma: no cover — Windows
    elapsed = time.monotonic


class ForwardOnly:
    """Keeps a clock from going backwards: when it is set back, it goes on at half speed until it is right again.

    It does not stand still meanwhile: what is due would never come, and a worker that died would never be missed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest = 0.0
        self._told_at = 0.0

    def after(self, reading: float) -> Instant:
        """Return a reading in milliseconds, or what comes after the last one if that is later."""
        with self._lock:
            told_at = elapsed()
            slow = self._latest + max(told_at - self._told_at, 0) * 500
            self._latest, self._told_at = max(reading, slow), told_at
            return int(self._latest)


_forward_only = ForwardOnly()


class SystemClock:
    """The machine's own clock, which within a process never goes backwards."""

    def now(self) -> Instant:
        """Return the present instant."""
        return _forward_only.after(time.time_ns() / 1_000_000)

    def sleep(self, seconds: float, stopped: Event) -> None:
        """Wait in the caller's thread."""
        if seconds > 0:
            stopped.wait(seconds)

    async def asleep(self, seconds: float) -> None:
        """Wait on the caller's event loop."""
        from asyncio import sleep  # a fifth of the time of `import bide`, which sync callers need not spend

        await sleep(max(seconds, 0))


def iso(instant: Instant) -> str:
    """Write an instant as people and JSON read it."""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat()


_last = (0, 0)
"""The moment of the newest id of this process, and how many there were in it."""


def uuid7(now: Instant) -> str:
    """Make an id that sorts by time, within a process also those of one millisecond, and cannot be guessed."""
    global _last
    moment, count = _last
    _last = (now, 0) if now > moment else (moment, count + 1)
    at, number = _last[0] + (_last[1] >> 12), _last[1] & 0xFFF
    tail = int.from_bytes(os.urandom(8))
    value = (at << 80) | (0x7 << 76) | number << 64 | (0x2 << 62) | (tail & 0x3FFFFFFFFFFFFFFF)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
