"""The life of a thread as bars on the real clock: when it worked, and what it waited for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from bide.runtime.views import Event, Wait
from bide.server.pages.cards import card_of
from bide.server.pages.places import wait_place
from bide.server.pages.words import length

WIDTH = 1000
NARROWEST = 6
MOST = 12

_BEGINS = ("run.started", "run.resumed", "run.taken_over")
_ENDS = ("waiting", "done", "failed", "blocked", "cancelled", "reaped", "dead", "drained")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of time, in thousandths of the whole."""

    x: int
    width: int
    tone: str
    words: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of stretches."""

    label: str
    words: str
    segments: tuple[Segment, ...]
    link: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """All rows, and between which two moments they lie."""

    begin: datetime
    end: datetime
    rows: tuple[Bar, ...]


def bars_of(events: Sequence[Event], waits: Sequence[Wait], end: datetime) -> Bars | None:
    """Return the bars of a thread; None when it never waited."""
    if not waits:
        return None
    shown = waits[-MOST:]
    begin = min([wait.created_at for wait in shown] + [event.at for event in events])
    end = max([end, *(wait.answered_at for wait in shown if wait.answered_at)])
    scale = _Scale(begin, end)
    worked = tuple(_worked(events, scale, end))
    rows = [Bar("at work", "", worked)] if worked else []
    return Bars(begin, end, (*rows, *(_waited(wait, scale, end) for wait in shown)))


class _Scale:
    """Moments as places on a line."""

    def __init__(self, begin: datetime, end: datetime) -> None:
        self.begin = begin
        self.seconds = max((end - begin).total_seconds(), 0.001)

    def segment(self, begin: datetime, end: datetime, tone: str, words: str) -> Segment:
        x = self._place(begin)
        width = max(self._place(end) - x, NARROWEST)
        return Segment(min(x, WIDTH - width), width, tone, words)

    def _place(self, moment: datetime) -> int:
        return max(0, min(WIDTH, round((moment - self.begin).total_seconds() / self.seconds * WIDTH)))


def _worked(events: Sequence[Event], scale: _Scale, end: datetime) -> Iterator[Segment]:
    since: datetime | None = None
    for event in events:
        if event.kind in _BEGINS:
            since = since or event.at
        elif since is not None and event.kind.startswith("run.") and event.kind[4:] in _ENDS:
            tone = "bad" if event.kind[4:] in ("failed", "dead", "reaped", "blocked") else "run"
            yield scale.segment(since, event.at, tone, f"at work for {length(event.at - since)}")
            since = None
    if since is not None:
        yield scale.segment(since, end, "run", f"at work for {length(end - since)}")


_TONES = {"open": "wait", "answered": "good", "expired": "bad", "cancelled": "off"}


def _waited(wait: Wait, scale: _Scale, end: datetime) -> Bar:
    status = wait.status.value
    until = end if status == "open" else wait.answered_at or end
    waited = length(until - wait.created_at)
    who = f" by {wait.answered_by}" if wait.answered_by else ""
    words = f"waits for {waited}" if status == "open" else f"{status}{who} after {waited}"
    segment = scale.segment(wait.created_at, until, _TONES.get(status, "off"), words)
    return Bar(card_of(wait, end).name_in_thread, words, (segment,), wait_place(wait.id))
