"""Token buckets: so many requests at once, so many a second in the long run, and a bounded number of buckets."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from bide.clock import Instant

MOST = 20_000
"""So many callers are remembered; whoever was not heard of for longest is forgotten, and begins with a full bucket."""


class Rate(NamedTuple):
    """How fast a bucket is filled, and how much is in it when it is full."""

    per_second: float
    burst: int


class Taken(NamedTuple):
    """What came of an attempt to take one from a bucket."""

    is_allowed: bool
    limit: int
    left: int
    reset: int
    """Seconds until the bucket is full again."""
    retry_after: int
    """Seconds until there is one in it; 0 if there is."""

    def headers(self) -> dict[str, str]:
        """Return what a client is told of it."""
        said = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.left),
            "RateLimit-Reset": str(self.reset),
        }
        return said if self.is_allowed else {**said, "Retry-After": str(self.retry_after)}


class Buckets:
    """The buckets of one server. Used on its event loop alone, so nothing is locked."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._levels: OrderedDict[Hashable, tuple[float, Instant]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, key: Hashable, rate: Rate, now: Instant) -> Taken:
        """Take one from a bucket, if there is one in it."""
        level, then = self._levels.pop(key, (float(rate.burst), now))
        # A clock that was set back fills nothing, and empties nothing.
        level = min(float(rate.burst), level + max(now - then, 0) / 1000 * rate.per_second)
        is_allowed = level >= 1
        level -= is_allowed
        self._levels[key] = (level, now)
        while len(self._levels) > self.most:
            self._levels.popitem(last=False)
        full = math.ceil((rate.burst - level) / rate.per_second)
        wait = 0 if is_allowed else max(1, math.ceil((1 - level) / rate.per_second))
        return Taken(is_allowed, rate.burst, int(level), full, wait)
