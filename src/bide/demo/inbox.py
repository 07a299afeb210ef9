"""The inbox as a table: who waits for what, since when, and until when. Plain text of eighty columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bide.runtime.views import Wait

WIDTH = 80
_ROW = "{number:>3}  {thread:<12} {waiting_for:<41} {since:>8} {until:>10}"


def table(waits: Iterable[Wait], now: datetime) -> list[str]:
    """Return the lines of the table. Only those that a person can do something about have a number."""
    lines = [_line("", "thread", "waiting for", "since", "until")]
    numbers = {wait.id: number for number, wait in enumerate(answerable(waits), 1)}
    for wait in waits:
        until = "–" if wait.deadline is None else f"in {length(wait.deadline, now)}"
        number = str(numbers.get(wait.id, "·"))
        lines.append(_line(number, wait.thread_id, in_short(wait), length(now, wait.created_at), until))
    return lines


def answerable(waits: Iterable[Wait]) -> list[Wait]:
    """Return those that a person can answer, longest first: mails and decisions."""
    return [wait for wait in waits if wait.kind in ("email", "approval")]


def in_short(wait: Wait) -> str:
    """Say what a wait needs, in words that fit the table."""
    condition: Mapping[str, Any] = wait.condition or {}
    if wait.kind == "email":
        return f"an e-mail from {condition['from']}"
    if wait.kind == "approval":
        return f"you: {wait.title}"
    if wait.kind == "all_of":
        return f"its workers: {len(wait.satisfied)} of {len(condition['of'])} have ended"
    return wait.waiting_for


def length(later: datetime, earlier: datetime) -> str:
    """Say how long it is between two moments, as people do."""
    seconds = max(0, round((later - earlier).total_seconds()))
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{seconds} s"


def _line(number: str, thread: str, waiting_for: str, since: str, until: str) -> str:
    shown = {"thread": cut(thread, 12), "waiting_for": cut(waiting_for, 41)}
    return _ROW.format(number=number, since=since, until=until, **shown).rstrip()


def cut(text: str, longest: int) -> str:
    """Shorten a text, and show that it was."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
