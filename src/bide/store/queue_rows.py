"""What those who start, claim and wake hand to the store, and what they are told."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from bide.clock import Instant
from bide.store.lanes import DEFAULT_QUEUE
from bide.store.rows import Lease
from bide.types import RunStatus, WaitStatus
from bide.waits.needs import Needs

IfBusy = Literal["reject", "enqueue", "interrupt", "rollback"]
"""What becomes of a start on a thread that has a live run: refused, put behind it, or put in its place, from where that
one stands or from where it began."""
OnClose = Literal["cancel", "end", "abandon"]
"""When a child is cancelled with its parent: when that is cancelled, also when it ends, never."""


class Start(NamedTuple):
    """A run that somebody asks for."""

    graph: str
    input: bytes | None
    thread_id: str | None = None
    options: bytes | None = None
    queue: str = DEFAULT_QUEUE
    version: str = ""
    priority: int = 0
    due_at: Instant | None = None
    key: str | None = None
    digest: str = ""
    """Of what is asked under the key: the same key for something else is a mistake."""
    if_busy: IfBusy = "reject"
    limit: tuple[str, int] | None = None
    parent: str | None = None
    on_close: OnClose = "cancel"
    owner: str | None = None
    takes_over: bool = False
    """Whether it goes on in place of a live run that waits, instead of finding the thread busy."""
    answers: tuple[tuple[str, Answering], ...] = ()
    """Answers to open waits, recorded in the same transaction: all of them, or nothing is started."""
    notes: bytes | None = None
    """What the client said about it, for whoever looks at the run later."""


class Started(NamedTuple):
    """What came of a start."""

    thread_id: str
    run_id: str
    status: RunStatus
    is_new: bool
    """Whether this very call started it; if not, an earlier one with the same key did."""


class Claim(NamedTuple):
    """A run that a worker has claimed."""

    lease: Lease
    graph: str
    crashes: int
    input: bytes | None
    options: bytes | None
    limit_key: str | None = None


class RunView(NamedTuple):
    """A run as it stands."""

    run_id: str
    status: RunStatus
    epoch: int
    error: str | None
    created_at: Instant
    updated_at: Instant
    lane: str
    owner: str
    rank: int
    due_at: Instant | None
    crashes: int
    worker_id: str | None
    uid: str
    graph: str
    parent: str | None


class WaitView(NamedTuple):
    """A wait as it stands, for whoever looks from outside."""

    wait_id: str
    thread_id: str
    run_id: str
    task_id: str
    node: str
    key: str
    kind: str
    status: WaitStatus
    is_consumed: bool
    question: bytes
    answer: bytes | None
    answered_at: Instant | None
    answered_via: str | None
    answered_by: str | None
    answer_key: str | None
    deadline: Instant | None
    remind_at: Instant | None
    created_at: Instant
    needs: Needs
    graph: str
    owner: str
    snoozed_until: Instant | None = None


NEVER: Instant = 2**62
"""An instant that does not come."""


class Chosen(NamedTuple):
    """Which of those who wait are listed, and in which order."""

    owner: str | None = None
    """Whose; None for everybody's."""
    order: Literal["age", "deadline", "timeless"] = "age"
    """By how long they wait; those with a deadline, by that; or those without one, by how long they wait."""
    due_before: Instant = NEVER
    """Of those with a deadline, in their order: only the ones that are due before this."""
    awake_at: Instant = NEVER
    """Those that are snoozed until after this are left out."""


def version_of(status: WaitStatus, deadline: Instant | None, assignees: Iterable[str], satisfied: Iterable[int]) -> str:
    """Return what changes when a wait does: when it is settled, in part or whole, or put off, or given to others."""
    said = repr((status.value, deadline, tuple(assignees), sorted(satisfied)))
    return sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


class Answering(NamedTuple):
    """An answer from outside."""

    value: Any
    by: str | None = None
    via: str = "wake"
    key: str | None = None
    number: int | None = None
    """The leaf of the wait's condition that it is for; None for all of it."""
    kind: str = "approval"
    """What that leaf waits for."""
    expected: str | None = None
    """The version of the wait that was seen: if it has changed since, nothing is written."""
    comment: str | None = None
    """What was said beside it. The log holds it; whoever waited for the decision hears it with that."""


class Outcome(NamedTuple):
    """What came of an answer, a cancellation, an expiry: truthfully, also when another was first."""

    status: WaitStatus
    is_new: bool
    """Whether this very call settled it; of one that is still open, whether it has settled a part."""
    wait_id: str
    thread_id: str
    by: str | None = None
    at: Instant | None = None
    via: str | None = None


class DeliveryRow(NamedTuple):
    """A fact as it is stored."""

    delivery_id: str
    owner: str
    source: str
    external_id: str
    kind: str
    name: str
    digest: str
    is_pending: bool
    wakes: int
    taken_by: str | None
    received_at: Instant
    body: bytes


class Delivered(NamedTuple):
    """What came of a delivery."""

    delivery_id: str
    is_new: bool
    wakes: int
    threads: tuple[str, ...] = ()
    """Whom this very call woke."""
