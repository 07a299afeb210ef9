"""What happened in a thread: its log, its steps, its waits and what was said, in one order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bide.runtime import Bide
from bide.runtime.following import Following
from bide.runtime.views import Event, Wait, moment
from bide.server.pages.cards import card_of
from bide.server.pages.places import wait_place
from bide.server.pages.talk import Call, Spoken
from bide.server.pages.words import in_line, length
from bide.types import START
from bide.waits.wake import Wake

READ = 1000
"""So many lines of the log are looked at, the newest."""
SHOWN = 250
GAP = timedelta(minutes=1)
"""A pause between two lines that is worth a line of its own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timeline."""

    at: datetime
    kind: str
    """What it is: run, step, wait or message."""
    what: str
    detail: str = ""
    tone: str = ""
    link: str = ""
    calls: tuple[Call, ...] = ()
    gap: str = ""
    """How long nothing happened before it, where that is worth saying."""


_WORDS = {
    "run.ready": ("Accepted", ""),
    "run.queued": ("Queued", ""),
    "run.started": ("Started", "run"),
    "run.resumed": ("Goes on", "run"),
    "run.taken_over": ("Taken over by another worker", "warn"),
    "run.replaced": ("Replaced by another run", ""),
    "run.waiting": ("Paused", "wait"),
    "run.done": ("Done", "good"),
    "run.failed": ("Failed", "bad"),
    "run.blocked": ("Blocked", "bad"),
    "run.cancelled": ("Cancelled", "bad"),
    "run.reaped": ("Its worker was lost", "warn"),
    "run.dead": ("Dead: its workers were lost again and again", "bad"),
    "run.released": ("Put back into service", ""),
    "run.drained": ("Given back by its worker", ""),
    "wait.satisfied": ("Came in", "good"),
    "wait.answered": ("Answered", "good"),
    "wait.expired": ("Ran out", "bad"),
    "wait.cancelled": ("Withdrawn", "bad"),
    "wait.extended": ("Deadline moved", ""),
    "wait.reassigned": ("Others are asked", ""),
    "wait.snoozed": ("Put aside", ""),
    "wait.reminded": ("Reminded", "wait"),
    "wait.escalated": ("Escalated", "warn"),
    "wait.commented": ("Commented", ""),
}


def events_of(app: Bide, thread_id: str) -> tuple[list[Event], bool]:
    """Read the newest lines of a thread's log; return also whether there are older ones."""
    found = app.store.database.read(lambda tx: tx.one("peek_thread", {"thread_id": thread_id}))
    lines, steps = (0, 0) if found is None else (found[1] or 0, found[2] or 0)
    begin = (max(0, steps - READ), max(0, lines - READ))
    following = Following(app.store, app.graphs, thread_id, f"{begin[0]}.{begin[1]}", "rest")
    events: list[Event] = []
    while len(events) < 2 * READ and (page := following.page()):
        # What is told while a node runs is for streams.
        events += [event for event in page if not event.kind.startswith("told.")]
    return events[-SHOWN:], any(begin) or len(events) > SHOWN


def _data(event: Event) -> Mapping[str, Any]:
    return event.data if isinstance(event.data, Mapping) else {}


def timeline(events: Iterable[Event], waits: Mapping[str, Wait], spoken: Iterable[Spoken]) -> list[Line]:
    """Put everything that happened into one order, and say where nothing happened for long.

    The log has its order; what was said stands behind the step that said it.
    """
    said: dict[str, list[Spoken]] = {}
    for one in spoken:
        said.setdefault(one.checkpoint, []).append(one)
    lines: list[Line] = []
    for event in events:
        lines += _lines(event, waits)
        if event.kind == "step":
            lines += [_said(one, event.at) for one in said.get(str(_data(event).get("checkpoint_id")), ())]
    return list(_with_gaps(lines))


def _with_gaps(lines: Sequence[Line]) -> Iterator[Line]:
    before: Line | None = None
    for line in lines:
        passed = timedelta() if before is None else line.at - before.at
        yield replace(line, gap=length(passed)) if passed >= GAP else line
        before = line


def _said(one: Spoken, at: datetime) -> Line:
    return Line(at, "message", one.speaker, in_line(one.text, 400), f"said-{one.role}", calls=one.calls)


def _lines(event: Event, waits: Mapping[str, Wait]) -> Iterator[Line]:
    data = _data(event)
    if event.kind == "step":
        # That an input was taken in is told by the run's start.
        if data.get("source") != "input":
            yield Line(event.at, "step", _nodes(data), _step(data))
        return
    words, tone = _WORDS.get(event.kind, (event.kind.rpartition(".")[2].replace("_", " ").capitalize(), ""))
    if event.kind == "run.waiting":
        asked = [waits.get(str(ask.get("id"))) for ask in data.get("asks") or () if isinstance(ask, Mapping)]
        for wait in filter(None, asked):
            yield Line(event.at, "wait", "Paused", _asked(wait), "wait", wait_place(wait.id))
        if data.get("error"):
            yield Line(event.at, "run", "An error beside it", str(data["error"]), "bad")
        if any(asked):
            return
    about = waits.get(str(data.get("wait")))
    kind = event.kind.partition(".")[0]
    link = "" if about is None else wait_place(about.id)
    yield Line(event.at, kind, words, _detail(event.kind, data, about), tone, link)


def _nodes(data: Mapping[str, Any]) -> str:
    nodes = [str(node) for node in data.get("nodes") or () if node != START]
    return ", ".join(nodes) or str(data.get("source") or "step")


def _step(data: Mapping[str, Any]) -> str:
    changed = data.get("changed")
    told = f"step {data.get('step')}"
    told += f", changed {', '.join(map(str, changed))}" if changed else ""
    return f"{told} · {data['problem']}" if data.get("problem") else told


def _asked(wait: Wait) -> str:
    card = card_of(wait, wait.created_at)
    return f"{wait.node} waits for {card.needs}" + (f": {card.title}" if card.title else "")


def _detail(kind: str, data: Mapping[str, Any], about: Wait | None) -> str:
    parts = []
    if about is not None:
        answer = about.answer.value if isinstance(about.answer, Wake) else about.answer
        parts.append(about.node)
        if kind == "wait.answered" and answer is not None:
            parts.append(f"“{in_line(answer, 120)}”")
    if data.get("text"):
        parts.append(f"“{in_line(data['text'], 400)}”")
    parts += [f"{before}{data[key]}" for key, before in _SAID if data.get(key)]
    if data.get("deadline") and (until := moment(data["deadline"])) is not None:
        parts.append(f"until {until:%d %b %H:%M} UTC")
    if isinstance(data.get("assignees"), list):
        parts.append(", ".join(map(str, data["assignees"])))
    return " · ".join(map(str, parts))


_SAID = (
    ("graph", ""),
    ("error", ""),
    ("reason", ""),
    ("was", "was "),
    ("crashes", "workers lost so far: "),
    ("by", "by "),
    ("via", "through "),
)
