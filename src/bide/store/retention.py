"""How long threads and their checkpoints are kept. Who says nothing keeps everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from bide.clock import Instant
from bide.errors import RetentionError
from bide.waits.durations import Duration, length_of

Horizon = datetime | str
"""A point in time: a datetime with its zone, or the id of a checkpoint."""
DELIVERIES_STAY = timedelta(days=30)
"""For how long facts are kept, unless a policy says otherwise: so long the same one is known when it comes again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What a store lets go by itself: `Store.open(url, retention=Retention(keep_last=50, ttl="30d"))`.

    `keep_last` keeps so many of the newest checkpoints of each graph of a thread, and lets older ones go; `older_than`
    lets go those of a certain age. With both, a checkpoint goes that neither keeps. `ttl` deletes a whole thread when
    nothing has happened in it for so long, unless it waits for something or runs. `deliveries` is for how long facts
    from outside are kept, and the keys of starts: so long the same one that comes again is known, and a wait can look
    back for it; None keeps them. `every` is how often the store looks.
    """

    keep_last: int | None = None
    older_than: Duration | None = None
    ttl: Duration | None = None
    deliveries: Duration | None = DELIVERIES_STAY
    every: Duration = "1h"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        says_nothing = self.keep_last is None and self.older_than is None and self.ttl is None
        if says_nothing and (self.deliveries is None or self.deliveries is DELIVERIES_STAY):
            raise RetentionError(
                "Retention() says nothing about what may go. Give keep_last=50, older_than='30d', ttl='90d' or "
                "deliveries='30d'; to keep everything, open the store without retention."
            )
        _check_count(self.keep_last)
        for name in ("older_than", "ttl", "deliveries", "every"):
            value = getattr(self, name)
            if value is not None or name == "every":
                milliseconds_of(name, value)

    @property
    def seconds_between(self) -> float:
        """How long the store waits between two rounds."""
        return milliseconds_of("every", self.every) / 1000


class Pruned(NamedTuple):
    """What has gone."""

    threads: int = 0
    """Threads that were deleted whole, because nothing happened in them for so long."""
    checkpoints: int = 0
    """Checkpoints of threads that stay."""
    rows: int = 0
    """Other rows: parts of large values, settled waits, ended runs, old events and facts, and what has expired."""
    bytes: int = 0
    """How many bytes of stored values all these held."""
    failed: tuple[tuple[str, str], ...] = ()
    """Threads that were left as they are, because something in them cannot be read, and what."""

    def plus(self, other: Pruned) -> Pruned:
        """Add up."""
        return Pruned(*(mine + its for mine, its in zip(self, other, strict=True)))  # type: ignore[operator]


class Point(NamedTuple):
    """A checkpoint without its body."""

    ns: str
    seq: int
    parent: int | None
    source: str
    run_id: str
    created_at: Instant
    pruned: int
    size: int


class Rule(NamedTuple):
    """What may go, seen from one moment."""

    keep_last: int | None = None
    before: Instant | None = None
    """Checkpoints from before this moment may go."""
    seq: int | None = None
    """Those of the thread's own graph that come before this one may go."""
    at_rest_since: Instant | None = None
    """Threads may go in which nothing has happened since."""
    delivered_before: Instant | None = None
    """Facts, and keys of starts, from before this moment may go."""

    @property
    def lets_checkpoints_go(self) -> bool:
        """Whether it speaks of checkpoints at all."""
        return self.keep_last is not None or self.before is not None

    def kept(self, points: Iterable[Point]) -> set[int]:
        """Return those of one graph's checkpoints, given in their order, that it keeps by itself."""
        points = list(points)
        if not self.lets_checkpoints_go:
            return {point.seq for point in points}
        newest = points[-self.keep_last :] if self.keep_last is not None else []
        return {point.seq for point in newest} | {point.seq for point in points if self._is_recent(point)}

    def _is_recent(self, point: Point) -> bool:
        if self.seq is not None and not point.ns:
            return point.seq >= self.seq
        return self.before is not None and point.created_at >= self.before


def rule_of(
    now: Instant,
    keep_last: int | None = None,
    older_than: Duration | None = None,
    ttl: Duration | None = None,
    horizon: datetime | None = None,
    deliveries: Duration | None = None,
) -> Rule:
    """Read what a caller says may go."""
    _check_count(keep_last)
    if older_than is not None and horizon is not None:
        raise RetentionError("older_than= and horizon= both say before when checkpoints may go. Give one of them.")
    before = None if older_than is None else now - milliseconds_of("older_than", older_than)
    if horizon is not None:
        before = _instant(horizon)
    at_rest_since = None if ttl is None else now - milliseconds_of("ttl", ttl)
    delivered_before = None if deliveries is None else now - milliseconds_of("deliveries", deliveries)
    return Rule(keep_last, before, None, at_rest_since, delivered_before)


def milliseconds_of(name: str, value: object) -> int:
    """Read a length of time, which must be more than nothing."""
    length = length_of(value)
    if not length:
        raise RetentionError(
            f"{name}={value!r} is no length of time. Give a timedelta, a number of seconds, or a text as '30d', '12h', "
            f"'15m', '90s' or '2w': more than nothing, and less than a thousand years."
        )
    return length


def _check_count(keep_last: object) -> None:
    if keep_last is None:
        return
    if isinstance(keep_last, bool) or not isinstance(keep_last, int) or not 1 <= keep_last < 2**31:
        raise RetentionError(
            f"keep_last={keep_last!r} cannot be: give a whole number, 1 or more. Where a thread stands is always kept; "
            f"to be rid of a thread, use delete_thread(thread_id)."
        )


def _instant(moment: object) -> Instant:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise RetentionError(
            f"horizon={moment!r} is no point in time. Give a datetime with its zone, as datetime.now(UTC) - "
            f"timedelta(days=30), or the id of a checkpoint."
        )
    return int(moment.timestamp() * 1000)
