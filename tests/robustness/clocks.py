"""A clock for tests in which nobody waits."""

from __future__ import annotations

from threading import Event, Lock

from bide.clock import Instant


class SleepyClock:
    """Time stands still, until somebody sleeps on it: then it jumps to where they wake up."""

    def __init__(self, now: Instant = 1_700_000_000_000) -> None:
        self.instant = now
        self.naps: list[float] = []
        """How long each sleep was, in seconds."""
        self._lock = Lock()

    def now(self) -> Instant:
        return self.instant

    def advance(self, seconds: float) -> None:
        with self._lock:
            self.instant += round(seconds * 1000)

    def sleep(self, seconds: float, stopped: Event) -> None:
        with self._lock:
            self.naps.append(round(seconds, 3))
            self.instant += max(round(seconds * 1000), 0)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds, Event())
