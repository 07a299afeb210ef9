"""When a schedule is due: the words of cron, read in a time zone. Pure, and the only module that knows `cronsim`.

A fixed time that daylight saving leaps over comes right after the leap, and one that it repeats comes once, the first
time; what comes every so many minutes or hours goes on as time does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from bide.clock import Instant
from bide.errors import did_you_mean
from bide.store.schedule_rows import Missed, ScheduleError

MOST_MADE_UP = 100
"""With `missed="all"`, so many of them are made up for: the newest ones."""
ON_TIME = 60_000
"""With `missed="skip"`, an instant is missed when nobody was there for so many milliseconds."""


class Due(NamedTuple):
    """What a look at a schedule that is due has found."""

    instants: tuple[Instant, ...]
    """For which a run is to be started, oldest first."""
    next_at: Instant


class Cron:
    """A cron expression in a time zone."""

    def __init__(self, expression: str, timezone: str = "UTC") -> None:
        self.expression = expression
        self.zone = _zone(timezone)
        try:
            self._parsed = CronSim(expression, datetime(2000, 1, 1, tzinfo=self.zone))
        except (CronSimError, AttributeError, TypeError, ValueError, AssertionError) as problem:
            raise ScheduleError(
                f"cron={expression!r} cannot be read: {problem}. Write five fields, minute hour day-of-month month "
                f'day-of-week, as in "0 9 * * MON-FRI", or six with seconds before them.'
            ) from problem

    def explained(self) -> str:
        """Say in words when it is due."""
        return self._parsed.explain()

    def after(self, instant: Instant) -> Instant:
        """Return the first time that it is due after an instant."""
        # A time that daylight saving repeats is told as its first one, also to whoever asks in the middle.
        found = next((due for due in self._from(instant) if due > instant), None)
        if found is None:
            raise ScheduleError(f"cron={self.expression!r} is never due. Nothing was scheduled.")
        return found

    def due(self, first: Instant, now: Instant, missed: Missed) -> Due:
        """Decide which runs are to be started by a schedule that was due at `first`."""
        next_at = self.after(now)
        if self.after(first) > now:
            is_late = missed == "skip" and now - first > ON_TIME
            return Due(() if is_late else (first,), next_at)
        if missed == "all":
            return Due(self._made_up(first, now), next_at)
        latest = max(first, next(self._back_from(now), first))
        is_late = missed == "skip" and now - latest > ON_TIME
        return Due(() if is_late else (latest,), next_at)

    def _made_up(self, first: Instant, now: Instant) -> tuple[Instant, ...]:
        """Return all times from the first one to now, or the newest of them if they are many."""
        coming = (due for due in self._from(first - 1000) if due >= first)
        oldest = list(islice(coming, MOST_MADE_UP + 1))
        if oldest[-1] > now:
            return tuple(due for due in oldest if due <= now)
        newest = islice((due for due in self._back_from(now) if due >= first), MOST_MADE_UP)
        return tuple(sorted(set(newest)))

    def _from(self, instant: Instant) -> Iterator[Instant]:
        return map(_instant, CronSim(self.expression, self._local(instant)))

    def _back_from(self, instant: Instant) -> Iterator[Instant]:
        """Go back in time from an instant, which may be due itself."""
        found = map(_instant, CronSim(self.expression, self._local(instant + 1000), reverse=True))
        return (due for due in found if due <= instant)

    def _local(self, instant: Instant) -> datetime:
        return datetime.fromtimestamp(instant / 1000, self.zone)


def _instant(moment: datetime) -> Instant:
    return int(moment.timestamp()) * 1000


@lru_cache(maxsize=256)
def cron_of(expression: str, timezone: str) -> Cron:
    """Read a cron expression, once for all who ask."""
    return Cron(expression, timezone)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # the same, and cronsim need not look for its daylight saving
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError, AttributeError) as problem:
        known = available_timezones()
        hint = did_you_mean(name, known) if known else ' This machine knows none: pip install "tzdata".'
        raise ScheduleError(
            f'timezone={name!r} is no time zone.{hint} Give the name of one, as in "Europe/Berlin".'
        ) from problem
