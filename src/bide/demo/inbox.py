"""The inbox as a table: who waits for what, since when, and until when. Plain text of eighty columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

WIDTH = 80
_ROW = "  {thread:<12} {waiting_for:<44} {since:>8} {until:>10}"

Wait = Mapping[str, Any]
"""A wait as `GET /waits` tells it."""


def table(waits: Iterable[Wait], now: datetime) -> list[str]:
    """Return the lines of the table."""
    lines = [_line("thread", "waiting for", "since", "until")]
    for wait in waits:
        deadline, since = wait["deadline"], length(now, datetime.fromisoformat(wait["created_at"]))
        until = "–" if deadline is None else f"in {length(datetime.fromisoformat(deadline), now)}"
        lines.append(_line(wait["thread_id"], in_short(wait), since, until))
    return lines


def in_short(wait: Wait) -> str:
    """Say what a wait needs, in words that fit the table."""
    condition: Mapping[str, Any] = wait["condition"] or {}
    if wait["kind"] == "email":
        return f"an e-mail from {condition['from']}"
    if wait["kind"] == "approval":
        return f"you: {wait['title']}"
    if wait["kind"] == "all_of":
        return f"its {len(condition['of'])} readers"
    return str(wait["waiting_for"])


def length(later: datetime, earlier: datetime) -> str:
    """Say how long it is between two moments, as people do."""
    seconds = max(0, round((later - earlier).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= (4 if unit == "d" else 2) * size:
            return f"{round(seconds / size)} {unit}"
    return f"{seconds} s"


def _line(thread: str, waiting_for: str, since: str, until: str) -> str:
    shown = {"thread": cut(thread, 12), "waiting_for": cut(waiting_for, 44)}
    return _ROW.format(since=since, until=until, **shown).rstrip()


def cut(text: str, longest: int) -> str:
    """Shorten a text, and show that it was."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
