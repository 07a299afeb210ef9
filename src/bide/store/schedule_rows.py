"""What those who keep schedules hand to the store, and what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bide.clock import Instant
from bide.errors import ScheduleError
from bide.store.lanes import DEFAULT_QUEUE
from bide.store.queue_rows import IfBusy

__all__ = ["NEVER", "Missed", "OnEnd", "Plan", "ScheduleError", "ScheduleRow"]

Missed = Literal["once", "skip", "all"]
"""What becomes of instants at which nobody was there: one run for all of them, none, or one for each."""
OnEnd = Literal["keep", "delete"]
"""What becomes of a thread that was made for one run of a schedule, when that is over."""
NEVER: Instant = 2**62
"""When a schedule is due next that has come to its end."""


class Plan(NamedTuple):
    """What a schedule starts each time: the body of its row."""

    name: str
    input: bytes | None
    options: Mapping[str, Any]
    thread_id: str | None = None
    """None for a new thread each time."""
    if_busy: IfBusy = "enqueue"
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    limit: tuple[str, int] | None = None
    jitter: int = 0
    """Milliseconds over which its runs are spread."""
    missed: Missed = "once"
    end_at: Instant | None = None
    """After this it starts nothing."""
    on_end: OnEnd = "keep"
    is_of_thread: bool = False
    """Whether it is over when its thread is gone; otherwise the next run makes that thread again."""
    notes: bytes | None = None
    """What is to be found again with each run."""
    metadata: Mapping[str, Any] | None = None
    """What is said about each new thread, for those who list threads."""
    about: Mapping[str, Any] | None = None
    """What whoever made it wants to find again with the schedule."""


class ScheduleRow(NamedTuple):
    """A schedule as it stands."""

    schedule_id: str
    owner: str
    graph: str
    cron: str
    timezone: str
    is_paused: bool
    next_at: Instant
    last_at: Instant | None
    created_at: Instant
    error: str | None
    """Why nothing was started last time, if nothing was."""
    body: bytes
