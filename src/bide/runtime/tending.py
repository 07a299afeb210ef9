"""Tending: what any worker does beside driving, so that nothing that is due, lost or broken off is forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from bide.clock import Instant
from bide.errors import StoreBusyError, StoreUnavailableError
from bide.store import Store
from bide.store.claiming import Reaped
from bide.store.notes import let_go_of_expired
from bide.store.passing import let_go_of_ended
from bide.store.waking import Swept

logger = logging.getLogger("bide.worker")

T = TypeVar("T")

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
        """Do one round: a batch of each. What goes wrong with one of them does not keep the others from being done."""
        store = self.store
        due = store.next_due()
        is_due = due is not None and due <= store.clock.now()
        swept = self._try(store.sweep, Swept()) if is_due else Swept()
        for reminder in swept.reminded:
            self._tell(*reminder)
        self._try(lambda: let_go_of_ended(store), 0)
        self._try(lambda: let_go_of_expired(store), 0)
        reaped, given = self._try(store.reap, Reaped()), self._try(store.give_back, Reaped())
        return Tended(
            woken=swept.woken,
            expired=swept.expired,
            promoted=self._try(store.promote_due, 0) if is_due else 0,
            reaped=reaped.ready + given.ready,
            dead=reaped.dead + given.dead,
            matched=self._try(store.match_pending, 0),
            closed=self._try(store.close_children, 0),
            scheduled=self._try(self._schedule, 0) if is_due else 0,
            is_full=swept.is_full,
        )

    @staticmethod
    def _try(part: Callable[[], T], otherwise: T) -> T:
        try:
            return part()
        except (StoreUnavailableError, StoreBusyError):
            raise  # that is no matter of this part: nothing can be done until the database is back
        except Exception:
            logger.exception("A part of tending was broken off; it is tried again.")
            return otherwise

    def _tell(self, wait_id: str, thread_id: str, is_higher: bool) -> None:
        try:
            if self._remind is not None:
                self._remind(wait_id, thread_id, is_higher)
        except Exception:  # it is not ours, and whoever else waits must not suffer
            logger.exception("The reminder of wait %s on thread %r could not be passed on.", wait_id, thread_id)

    def seconds_until_due(self, longest: float) -> float:
        """Return how long nothing is due, at most so long."""
        due: Instant | None = self.store.next_due()
        if due is None:
            return longest
        return max(0.0, min(longest, (due - self.store.clock.now()) / 1000))
