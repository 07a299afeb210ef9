"""Tending: what any worker does beside driving, so that nothing that is due, lost or broken off is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bide.clock import Instant
from bide.store import Store
from bide.store.waking import Swept

Remind = Callable[[str, str, bool], None]
"""Told of each reminder: wait, thread, and whether it went one step higher."""


class Tended(NamedTuple):
    """What one round has brought."""

    woken: int = 0
    expired: int = 0
    promoted: int = 0
    reaped: int = 0
    dead: int = 0
    matched: int = 0
    closed: int = 0
    scheduled: int = 0
    is_full: bool = False

    @property
    def is_something(self) -> bool:
        """Whether there may be something to claim now."""
        return any(self[:-1]) or self.is_full


class Tender:
    """Looks at the clock and after others, on one store."""

    def __init__(self, store: Store, schedule: Callable[[], int], remind: Remind | None = None) -> None:
        self.store = store
        self._schedule = schedule
        self._remind = remind

    def tend(self) -> Tended:
        """Do one round: a batch of each."""
        store = self.store
        due = store.next_due()
        is_due = due is not None and due <= store.clock.now()
        swept = store.sweep() if is_due else Swept()
        if self._remind is not None:
            for wait_id, thread_id, is_higher in swept.reminded:
                self._remind(wait_id, thread_id, is_higher)
        reaped = store.reap()
        return Tended(
            woken=swept.woken,
            expired=swept.expired,
            promoted=store.promote_due() if is_due else 0,
            reaped=reaped.ready,
            dead=reaped.dead,
            matched=store.match_pending(),
            closed=store.close_children(),
            scheduled=self._schedule() if is_due else 0,
            is_full=swept.is_full,
        )

    def seconds_until_due(self, longest: float) -> float:
        """Return how long nothing is due, at most so long."""
        due: Instant | None = self.store.next_due()
        if due is None:
            return longest
        return max(0.0, min(longest, (due - self.store.clock.now()) / 1000))
