"""A clock that moves only when a test says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Condition, Event
from typing import TYPE_CHECKING, Any

from bide.clock import Instant
from bide.errors import BideError
from bide.waits.durations import Duration, milliseconds

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

BEGINNING = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""When a test begins, unless it says otherwise: a Thursday morning."""
LOOK = 0.02
"""Seconds after which somebody who sleeps looks whether it was told to stop."""


class FakeClock:
    """Time for tests: it stands still until `advance("2h")` or `move_to(…)` moves it. Nobody ever waits for real."""

    def __init__(self, start: datetime | Instant = BEGINNING) -> None:
        self._instant = _instant(start)
        self._moved = Condition()
        self._sleepers: list[tuple[Instant, AbstractEventLoop, Future[None]]] = []
        self._skips = False

    def __repr__(self) -> str:
        return f"<FakeClock {self.moment:%Y-%m-%d %H:%M:%S}>"

    def now(self) -> Instant:
        """Return the present instant, in milliseconds since 1970."""
        return self._instant

    @property
    def moment(self) -> datetime:
        """The present moment, as people read it."""
        return datetime.fromtimestamp(self._instant / 1000, UTC)

    # ── Moving it ──────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, duration: Duration) -> None:
        """Let time pass: "2h", "48h", "90s", a timedelta, or seconds. Who sleeps until then wakes up."""
        self.move_to(self._instant + milliseconds(duration, "advance"))

    def move_to(self, when: datetime | Instant) -> None:
        """Let it be a certain moment, which must not be in the past."""
        instant = _instant(when)
        with self._moved:
            if instant < self._instant:
                raise BideError(
                    f"The clock is at {self.moment.isoformat()} and cannot go back to "
                    f"{datetime.fromtimestamp(instant / 1000, UTC).isoformat()}. Begin earlier: FakeClock(start=…)."
                )
            self._instant = instant
            self._moved.notify_all()
            due = [sleeper for sleeper in self._sleepers if sleeper[0] <= instant]
            self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > instant]
        for _, loop, woken in due:
            loop.call_soon_threadsafe(_wake, woken)

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """Let whoever sleeps in the block take the time along: the clock jumps to where they wake up.

        For tests in which everything happens in one thread, so that nobody else could move the clock meanwhile.
        """
        before, self._skips = self._skips, True
        try:
            yield
        finally:
            self._skips = before

    # ── Sleeping on it ─────────────────────────────────────────────────────────────────────────────────────────────

    def sleep(self, seconds: float, stopped: Event) -> None:
        """Return when the clock was moved so far, or when `stopped` is set."""
        until = self._instant + max(round(seconds * 1000), 0)
        if self._skips:
            self.move_to(max(until, self._instant))
        with self._moved:
            while self._instant < until and not stopped.is_set():
                self._moved.wait(LOOK)

    async def asleep(self, seconds: float) -> None:
        """Do what `sleep` does, on an event loop."""
        from asyncio import get_running_loop

        until = self._instant + max(round(seconds * 1000), 0)
        if self._skips:
            self.move_to(max(until, self._instant))
        if until <= self._instant:
            return
        loop = get_running_loop()
        woken: Future[None] = loop.create_future()
        with self._moved:
            self._sleepers.append((until, loop, woken))
        await woken


def _instant(when: Any) -> Instant:
    if not isinstance(when, datetime):
        return int(when)
    if when.tzinfo is None:
        raise BideError(f"{when!r} has no time zone, so it could mean two dozen instants. Give an aware datetime.")
    return int(when.timestamp() * 1000)


def _wake(woken: Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
