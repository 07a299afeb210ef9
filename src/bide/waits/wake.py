"""What comes back from a wait: the fact that satisfied it, and what became of a child."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from bide.codec import checkpointable
from bide.errors import InterruptError

if TYPE_CHECKING:
    from bide.clock import Instant

ChildStatus = Literal["done", "failed", "cancelled", "dead"]
_CHILD_STATUSES = ("done", "failed", "cancelled", "dead")


@checkpointable("bide.Wake")
@dataclass(frozen=True, slots=True)
class Wake:
    """What satisfied a wait, who brought it, when, and through what.

    Of `any_of`, `value` is the value of the part that won, and `winner` its label. Of `all_of` and `quorum`, `value`
    holds a Wake for each part by its label, in the order in which the parts were written, and `winner` is None.
    """

    value: Any
    winner: str | None = None
    kind: str = ""
    by: str | None = None
    at: Instant | None = None
    via: str | None = None
    delivery: str | None = None
    comment: str | None = None
    """Of a decision: what whoever made it said beside it."""

    @property
    def when(self) -> datetime | None:
        """The moment as a datetime in UTC."""
        return None if self.at is None else datetime.fromtimestamp(self.at / 1000, UTC)


@checkpointable("bide.ChildResult")
@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child thread ended. `summary` is short; the whole result is where `thread_id` and `checkpoint_id` say."""

    status: ChildStatus
    summary: Any = None
    thread_id: str = ""
    run_id: str | None = None
    checkpoint_id: str | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        """Refuse a status that no child can end with."""
        if self.status not in _CHILD_STATUSES:
            raise InterruptError(
                f"A child cannot end with the status {self.status!r}; it is one of {', '.join(_CHILD_STATUSES)}."
            )

    @property
    def is_done(self) -> bool:
        """Whether the child finished, and `summary` is its result."""
        return self.status == "done"

    @property
    def is_failed(self) -> bool:
        """Whether the child raised an error; `error` says which."""
        return self.status == "failed"

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cancelled the child."""
        return self.status == "cancelled"

    @property
    def is_dead(self) -> bool:
        """Whether the child's workers died again and again while they drove it."""
        return self.status == "dead"
