"""Times and values in the words of the pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from bide.shape.shown import jsonable

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def length(time: timedelta) -> str:
    """Say how long something is, as exactly as people would: "42 s", "3 hours 20 min", "46 hours", "9 days"."""
    seconds = abs(time.total_seconds())
    if seconds < _MINUTE:
        return f"{int(seconds)} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min"
    if seconds < 10 * _HOUR:
        hours, minutes = divmod(int(seconds // _MINUTE), 60)
        return _count(hours, "hour") + (f" {minutes} min" if minutes else "")
    if seconds < 2 * _DAY:
        return _count(round(seconds / _HOUR), "hour")
    days, hours = divmod(round(seconds / _HOUR), 24)
    return _count(days, "day") + (f" {_count(hours, 'hour')}" if hours and days < 10 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ago(then: datetime | None, now: datetime) -> str:
    """Say how long ago something was, in its largest unit."""
    if then is None:
        return "never"
    passed = now - then
    if passed < timedelta(seconds=2):
        return "just now"
    return f"{_largest(passed)} ago"


def left(then: datetime, now: datetime) -> str:
    """Say how much time is left until something, or for how long it has been due."""
    return f"in {length(then - now)}" if then > now else f"{length(now - then)} overdue"


def _largest(time: timedelta) -> str:
    count, unit = length(time).split(" ")[:2]
    return f"{count} {unit}"


def stamp(when: datetime) -> str:
    """Write a moment in full, with its time zone."""
    return f"{when.astimezone(UTC):%a %d %b %Y, %H:%M:%S} UTC"


def as_json(value: Any) -> str:
    """Write any value as JSON that people can read."""
    return json.dumps(jsonable(value), ensure_ascii=False, indent=2)


def in_line(value: Any, most: int = 160) -> str:
    """Write a value in one line: a text as it is, everything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(jsonable(value), ensure_ascii=False)
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
