"""What is shown of threads, runs and waits: decoded, with times as people read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bide.clock import Instant
from bide.types import RunStatus, WaitStatus
from bide.waits.wake import Wake


def moment(instant: Instant | None) -> datetime | None:
    """Return an instant as an aware datetime."""
    return None if instant is None else datetime.fromtimestamp(instant / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Run:
    """One request to advance a thread."""

    run_id: str
    thread_id: str
    graph: str
    status: RunStatus
    created_at: datetime
    updated_at: datetime
    queue: str = "default"
    version: str = ""
    priority: int = 0
    due_at: datetime | None = None
    crashes: int = 0
    error: str | None = None
    owner: str = ""
    is_new: bool = True
    """Of a start: whether this very call made it, or an earlier one with the same key."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a paused thread needs, and until when."""

    id: str
    thread_id: str
    run_id: str
    graph: str
    node: str
    key: str | None
    kind: str
    """What it waits for: approval, time, email, webhook, event, child, any_of, all_of, quorum, or pause."""
    status: WaitStatus
    question: Any
    title: str
    assignees: tuple[str, ...]
    tags: tuple[str, ...]
    created_at: datetime
    deadline: datetime | None
    waiting_for: str
    """In words."""
    condition: dict[str, Any] | None = field(default=None, repr=False)
    schema: dict[str, Any] | None = field(default=None, repr=False)
    answer: Any = None
    answered_at: datetime | None = None
    answered_by: str | None = None
    answered_via: str | None = None
    owner: str = ""
    snoozed_until: datetime | None = None
    satisfied: dict[int, Wake] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread as it stands."""

    thread_id: str
    graph: str
    status: RunStatus | None
    created_at: datetime
    updated_at: datetime | None
    run: Run | None = None
    waits: tuple[Wait, ...] = ()
    values: Any = None
    next: tuple[str, ...] = ()
    error: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Woken:
    """What came of an answer: truthfully, also when another was first."""

    status: str
    """`resumed`: this call settled it · `counted`: this decision counts, and others are still needed ·
    `already_counted`, `already_answered`, `expired`, `cancelled`: another call did, before."""
    wait_id: str
    thread_id: str
    by: str | None = None
    at: datetime | None = None
    via: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether this very call settled the wait, or counts for it."""
        return self.status in ("resumed", "counted")


@dataclass(frozen=True, slots=True)
class Delivery:
    """An inbound fact, and what came of it."""

    id: str
    kind: str
    name: str
    source: str
    external_id: str
    received_at: datetime
    payload: Any
    wakes: int
    status: str
    """`matched`, `unmatched`, or `pending`."""
    is_new: bool = True
    threads: tuple[str, ...] = ()
    """Whom this very call woke."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a thread's log. `id` is where to go on from when following again."""

    id: str
    kind: str
    at: datetime
    thread_id: str
    run_id: str | None
    data: Any = None
