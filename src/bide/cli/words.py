"""Times, sizes and values in words, safe to show: what came from outside must not steer somebody's terminal."""

from __future__ import annotations

import json
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from bide.cli.plain import plain

NOTHING = "–"


def safe(text: object) -> str:
    """Return a text without control characters: an escape sequence in a mail could rewrite the screen."""
    return "".join(_visible(character) for character in str(text))


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    kind = unicodedata.category(character)
    if kind in ("Cc", "Cs") or character in _STEERING:
        return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    return character


_STEERING = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Marks that change the direction of writing: they can make a text read as another one."""


def line(text: object, most: int = 0) -> str:
    """Return a text as one line, cut if it is longer than so many characters."""
    flat = " ".join(safe(text).split())
    return flat if not most or len(flat) <= most else flat[: most - 1] + "…"


def value(given: Any, most: int = 0) -> str:
    """Show a value in one line: a text as it is, everything else as JSON."""
    if isinstance(given, str):
        return line(given, most)
    return line(json.dumps(plain(given), ensure_ascii=False), most)


def length(time: timedelta) -> str:
    """Say how long something is: "42s", "12m", "3h 20m", "2d 4h"."""
    seconds = int(abs(time.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h {minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{days}d {hours % 24}h" if hours % 24 and days < 14 else f"{days}d"


def ago(then: datetime | None, now: datetime) -> str:
    """Say how long ago something was."""
    if then is None:
        return NOTHING
    passed = now - then
    return "just now" if abs(passed) < timedelta(seconds=1) else f"{length(passed)} ago"


def until(then: datetime | None, now: datetime) -> str:
    """Say in how long something is due, or for how long it has been."""
    if then is None:
        return NOTHING
    return f"in {length(then - now)}" if then > now else f"{length(now - then)} over"


def stamp(when: datetime | None) -> str:
    """Write a moment as clocks on the wall show it here."""
    return NOTHING if when is None else f"{when.astimezone():%Y-%m-%d %H:%M:%S}"


def count(number: int, noun: str) -> str:
    """Say how many: "1 thread", "2 threads"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", " ")


def size(octets: int) -> str:
    """Say how much: "512 B", "1.5 MiB"."""
    amount = float(octets)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
