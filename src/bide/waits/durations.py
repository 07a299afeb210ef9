"""Lengths of time as people write them: "2h30m", "90s", "1d12h", "500 ms", "PT2H30M", a timedelta, or seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from bide.errors import InterruptError

Duration = timedelta | float | str
"""A length of time: a timedelta, a number of seconds, or a text as "2h30m", "90s", "2w" or "PT2H30M"."""

LONGEST = 1000 * 366 * 24 * 3600 * 1000
"""A thousand years, in milliseconds: beyond it a database's numbers and the calendar come to an end."""

_LONGEST_TEXT = 100
_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_WORDS = {
    **{unit: unit for unit in _UNITS},
    **dict.fromkeys(("week", "weeks"), "w"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds"), "ms"),
}
_ORDER = list(_UNITS)
# [0-9], because \d also takes the digits of other scripts.
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_ISO = re.compile(r"P(?:([0-9.]+)W)?(?:([0-9.]+)D)?(?:T(?:([0-9.]+)H)?(?:([0-9.]+)M)?(?:([0-9.]+)S)?)?")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def milliseconds(duration: object, what: str = "duration") -> int:
    """Return a length of time in milliseconds.

    `what` is what the error calls it. Raises InterruptError for what is no length of time, is negative, or has no end.

    >>> milliseconds("1d12h")
    129600000
    """
    length = length_of(duration)
    if length is None:
        raise InterruptError(
            f"{what}={_shown(duration)} is no length of time. Give a timedelta, a number of seconds, or a text as "
            f"'2h30m', '90s', '1d12h', '2w', '500ms' or 'PT2H30M': not negative, and less than a thousand years. "
            f"Months and years have no fixed length; give days."
        )
    return length


def length_of(duration: object) -> int | None:
    """Return a length of time in milliseconds, at least one for whatever is more than nothing; None if it is none."""
    length = _length(duration)
    if length is None or not 0 <= length <= LONGEST:
        return None
    return max(1, round(length)) if length else 0


def _length(duration: object) -> float | None:
    if isinstance(duration, timedelta):
        return duration / timedelta(milliseconds=1)
    if isinstance(duration, str):
        return _of_text(duration) if len(duration) <= _LONGEST_TEXT else None
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        return None
    return duration * 1000 if isinstance(duration, int) or math.isfinite(duration) else None


def _of_text(text: str) -> float | None:
    text = text.strip()
    return _of_iso(text) if text.startswith("P") else _of_parts(text)


def _of_parts(text: str) -> float | None:
    """Read "2h30m": from the largest unit to the smallest, each once, since anything else is a slip of the pen."""
    total, position, last = 0.0, 0, -1
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[2] not in _WORDS:
            return None
        unit = _WORDS[part[2]]
        if _ORDER.index(unit) <= last:
            return None
        total += float(part[1]) * _UNITS[unit]
        position, last = part.end(), _ORDER.index(unit)
    return total if last >= 0 else None


def _of_iso(text: str) -> float | None:
    """Read "PT2H30M"; only its last part may have a fraction."""
    found = _ISO.fullmatch(text)
    parts = [] if found is None else [(unit, part) for unit, part in zip("wdhms", found.groups(), strict=True) if part]
    if not parts or text.endswith("T") or not all(_NUMBER.fullmatch(part) for _, part in parts):
        return None
    if any("." in part for _, part in parts[:-1]):
        return None
    return sum(float(part) * _UNITS[unit] for unit, part in parts)


def _shown(duration: object) -> str:
    try:
        shown = repr(duration)
    except Exception:  # noqa: BLE001 - a number of 5000 digits has no repr, and must still be refused by name
        shown = type(duration).__name__
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}…"
