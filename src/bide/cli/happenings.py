"""What happened in a thread, line by line: its log, its steps, its questions and answers, in one order of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bide.cli import words
from bide.runtime.views import moment
from bide.types import START

if TYPE_CHECKING:
    from rich.text import Text

    from bide.runtime import Bide
    from bide.runtime.views import Event, Wait


@dataclass(frozen=True)
class Happening:
    """One line of a timeline."""

    at: datetime
    kind: str
    """Of the log: run.started, wait.answered …; or `step`: nodes have finished."""
    what: str
    """In a word."""
    detail: str = ""
    run_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


_WORDS = {
    "run.ready": "accepted",
    "run.queued": "queued",
    "run.started": "started",
    "run.resumed": "goes on",
    "run.waiting": "waits",
    "run.done": "done",
    "run.failed": "failed",
    "run.blocked": "blocked",
    "run.cancelled": "cancelled",
    "run.reaped": "worker lost",
    "run.dead": "dead",
    "run.released": "released",
    "run.drained": "given back",
    "wait.satisfied": "came in",
    "wait.answered": "answered",
    "wait.expired": "ran out",
    "wait.cancelled": "withdrawn",
    "wait.extended": "extended",
    "wait.reassigned": "reassigned",
    "wait.reminded": "reminded",
    "wait.escalated": "escalated",
    "wait.commented": "commented",
}


def word_of(kind: str, data: Mapping[str, Any]) -> str:
    """Return a kind of event in a word."""
    if kind == "step":
        return f"step {data.get('step')}" if data.get("source") == "loop" else str(data.get("source"))
    return _WORDS.get(kind, kind.rpartition(".")[2].replace("_", " "))


def style_of(kind: str) -> str:
    """Return its colour."""
    end = kind.rpartition(".")[2]
    if end in ("failed", "dead", "blocked", "expired"):
        return "red"
    if end in ("waiting", "reminded", "escalated", "reaped"):
        return "yellow"
    if end in ("done", "answered", "satisfied"):
        return "green"
    return "dim" if end in ("cancelled", "queued", "ready") else ""


def mark_of(kind: str) -> str:
    """Return its sign."""
    end = kind.rpartition(".")[2]
    known = {"done": "✓", "waiting": "?", "answered": "↵", "satisfied": "↵", "started": "▸", "step": "·", "ready": "+"}
    return known.get(end, "✗" if style_of(kind) == "red" else "·")


def detail_of(kind: str, data: Mapping[str, Any], asked: Mapping[str, Wait]) -> str:
    """Say what there is to say beside the word."""
    if kind.startswith("wait."):
        return _of_wait(kind, data, asked)
    if kind == "run.waiting":
        asks = [ask for ask in data.get("asks") or () if isinstance(ask, Mapping)]
        said = [_question(str(ask.get("node")), asked.get(str(ask.get("id")))) for ask in asks]
        return "; ".join(said) + _after(data.get("error"), " · error: ")
    if kind == "step":
        nodes = [str(node) for node in data.get("nodes") or () if node != START]
        return ", ".join(nodes) + _after(data.get("problem"), " · ")
    if kind == "run.started":
        return _listed("begins with ", data.get("next"))
    parts = [
        str(data["graph"]) if data.get("graph") else "",
        str(data["error"]) if data.get("error") else "",
        str(data["reason"]) if data.get("reason") else "",
        f"was {data['was']}" if data.get("was") else "",
        f"{data['crashes']} lost so far" if data.get("crashes") else "",
        f"by {data['by']}" if data.get("by") else "",
    ]
    return ", ".join(filter(None, parts))


def _of_wait(kind: str, data: Mapping[str, Any], asked: Mapping[str, Wait]) -> str:
    wait = asked.get(str(data.get("wait")))
    node = "" if wait is None else f"{wait.node}: "
    parts = []
    if kind == "wait.answered" and wait is not None and wait.answer is not None:
        parts.append(words.value(_answer(wait.answer), 80))
    parts += [words.value(data["text"], 200)] if data.get("text") else []
    parts += [f"by {data['by']}"] if data.get("by") else []
    parts += [f"through {data['via']}"] if data.get("via") else []
    parts += [str(data["reason"])] if data.get("reason") else []
    parts += [f"until {words.stamp(moment(data['deadline']))}"] if data.get("deadline") else []
    parts += [", ".join(data["assignees"])] if data.get("assignees") else []
    return node + ", ".join(parts)


def _answer(answer: Any) -> Any:
    """Return what an answer comes to: of what woke a wait, its value."""
    from bide.waits.wake import Wake

    return answer.value if isinstance(answer, Wake) else answer


def _question(node: str, wait: Wait | None) -> str:
    return f"{node} for {wait.waiting_for}" if wait is not None else str(node)


def _listed(before: str, names: Any) -> str:
    return before + ", ".join(map(str, names)) if names else ""


def _after(text: Any, before: str) -> str:
    return f"{before}{text}" if text else ""


# ── All of a thread ────────────────────────────────────────────────────────────────────────────────────────────────


def happening(event: Event, asked: Mapping[str, Wait]) -> Happening:
    """Put an event into words."""
    data = event.data if isinstance(event.data, Mapping) else {}
    detail = words.line(detail_of(event.kind, data, asked))
    return Happening(event.at, event.kind, word_of(event.kind, data), detail, event.run_id, data)


def timeline(app: Bide, thread_id: str, *, most: int) -> list[Happening]:
    """Put together what is known of a thread, oldest first; the newest so many lines of it."""
    from bide.runtime.following import Following

    asked = questions(app, thread_id)
    following = Following(app.store, app.graphs, thread_id, None, "rest")
    found: list[Happening] = []
    while page := following.page():
        found += [happening(event, asked) for event in page if is_worth_telling(event)]
    return found[-most:]


def is_worth_telling(event: Event) -> bool:
    """Whether a line tells more than the one beside it: that an input was taken in is told by the run's start."""
    return event.kind != "step" or not isinstance(event.data, Mapping) or event.data.get("source") != "input"


def questions(app: Bide, thread_id: str) -> dict[str, Wait]:
    """Return whatever a thread has asked, by its id."""
    from bide.runtime.reading import wait_of

    return {row.wait_id: wait_of(app.graphs, row) for row in app.store.waits_of(thread_id)}


def parts(one: Happening) -> list[Text]:
    """Return the parts of a line: when, what, and what there is to say of it."""
    from rich.text import Text

    at = one.at.astimezone()
    when = Text(f"{at:%H:%M:%S}.{at.microsecond // 1000:03} ", style="dim")
    return [when, Text(f"{mark_of(one.kind)} {one.what:<12}", style=style_of(one.kind)), Text(one.detail)]


def told(one: Happening) -> Text:
    """Show a line by itself."""
    from rich.text import Text

    return Text(" ").join(parts(one))
