"""The leaves of a condition: each becomes a row, by which the world finds the thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bide.waits.facts import Fact

if TYPE_CHECKING:
    from bide.clock import Instant

NO_LIMIT = -1
"""A look-back without limit."""


class Leaf(NamedTuple):
    """One leaf."""

    number: int
    """Its place among the leaves, depth first, from 0."""
    label: str
    """The path of its labels, joined by dots."""
    kind: str
    """One of time, email, webhook, event, approval, child."""
    correlation: str
    """The key by which facts find it; "" when none can."""
    due_at: Instant | None
    """When time satisfies it."""
    lookback: int
    """How far back a fact may have come, in milliseconds: 0 for no look-back, -1 without limit."""
    exclusive: bool
    """Whether a fact that satisfies it is for it alone."""
    plain: dict[str, Any]
    """The leaf's own condition."""


def leaves(plain: Mapping[str, Any], now: Instant) -> tuple[Leaf, ...]:
    """Return the leaves of a stored condition that begins now; raises CorruptDataError when it is damaged."""
    from bide.waits.groups import leaves_of  # an eighth of the time of `import bide`, for those who wait for facts
    from bide.waits.stored import from_plain

    return tuple(_leaf(number, *found, now) for number, found in enumerate(leaves_of(from_plain(plain))))


def correlations_of(fact: Fact) -> tuple[str, ...]:
    """Return every key under which a wait for this fact may be registered, sorted."""
    from bide.waits.correlations import keys_of  # as above

    return keys_of(fact)


def _leaf(number: int, label: str, condition: Any, now: Instant) -> Leaf:
    from bide.waits.correlations import correlation_of  # as above
    from bide.waits.stored import to_plain

    kind = condition.kind
    is_time, is_outside = kind in ("after", "at"), kind in ("email", "webhook", "event")
    return Leaf(
        number=number,
        label=label,
        kind="time" if is_time else kind,
        correlation=correlation_of(condition),
        due_at=condition.due_at(now) if is_time else None,
        lookback=condition.lookback if is_outside else NO_LIMIT if kind == "child" else 0,
        exclusive=is_outside and condition.exclusive,
        plain=to_plain(condition),
    )
