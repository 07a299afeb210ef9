"""The clock of the server, as it is known here: read now and then, and carried on by a clock that nobody sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bide.clock import ForwardOnly, Instant, SystemClock, elapsed


class Reading(NamedTuple):
    """What the server's clock said, and between which two moments of ours."""

    sent_at: float
    told: float
    received_at: float


class PostgresClock(SystemClock):
    """Tells the time of the server without asking it each time; what the clock of this machine says plays no part.

    It is read when the store is opened, and again with every heartbeat. A reading does not say when on its way the
    server was looked at, so all that is known is an interval as long as the round trip. While what was known before
    lies within, nothing changes; so one slow round trip moves nothing, and a clock that drifts, or is set, is followed.
    """

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._ahead: float | None = None
        """By how many milliseconds the server's clock is ahead of `elapsed`."""
        self._forward_only = ForwardOnly()

    def now(self) -> Instant:
        """Return the present instant of the server, to within a round trip."""
        if self._ahead is None:
            self.correct(self._read())
        assert self._ahead is not None
        return self._forward_only.after(self._ahead + elapsed() * 1000)

    def correct(self, reading: Reading) -> None:
        """Take a new reading into account."""
        least, most = reading.told - reading.received_at * 1000, reading.told - reading.sent_at * 1000
        known = (least + most) / 2 if self._ahead is None else self._ahead
        self._ahead = min(max(known, least), most)
