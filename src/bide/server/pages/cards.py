"""A wait as it is shown: what it is about, what it needs, and how it can be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bide.runtime import Bide
from bide.runtime.views import Wait
from bide.server.pages.asks import Ask, asks_of
from bide.server.pages.proposals import Proposal, proposal_in
from bide.server.pages.trees import Branch, tree_of
from bide.server.pages.words import in_line
from bide.waits.wake import Wake

KINDS = {
    "approval": "Approvals",
    "question": "Questions",
    "email": "E-mail",
    "webhook": "Webhooks",
    "event": "Events",
    "time": "Timers",
    "child": "Workers",
    "any_of": "First of several",
    "all_of": "All of several",
    "quorum": "Votes",
    "pause": "Stops",
}
"""What is waited for, in the words of the filter."""
GROUPS = ("any_of", "all_of", "quorum")
_WORDS = {"any_of": "the first of these", "all_of": "all of these"}
_ASKED = ("question", "title", "message", "prompt", "action", "description")


@dataclass(frozen=True, slots=True)
class Card:
    """What a page shows of a wait."""

    wait: Wait
    title: str
    """What it is about; "" where nobody has said that, as of a wait for a fact."""
    needs: str
    """What it waits for, in words that do not say the title again."""
    asks: tuple[Ask, ...]
    tree: Branch | None
    proposal: Proposal | None
    is_overdue: bool
    details: Any = None
    """The rest of the question, where it says more than its title."""

    @property
    def id(self) -> str:
        """Of the wait."""
        return self.wait.id

    @property
    def name(self) -> str:
        """How it is called beside waits of other threads."""
        return self.title or self.wait.thread_id

    @property
    def name_in_thread(self) -> str:
        """How it is called where its thread is named already."""
        return self.title or self.wait.node

    @property
    def is_open(self) -> bool:
        """Whether it can still be answered."""
        return self.wait.status.value == "open"

    @property
    def is_refused(self) -> bool:
        """Whether somebody has tried to answer it with what does not fit, and sees that now."""
        return any(ask.is_open for ask in self.asks)

    @property
    def answer(self) -> Any:
        """What was answered: of a fact, its value."""
        answer = self.wait.answer
        return answer.value if isinstance(answer, Wake) else answer

    @property
    def comment(self) -> str | None:
        """What was said beside it."""
        return self.wait.answer.comment if isinstance(self.wait.answer, Wake) else None


def card_of(wait: Wait, now: datetime) -> Card:
    """Show a wait."""
    proposal = proposal_in(wait.question)
    title = _title(wait, proposal)
    return Card(
        wait=wait,
        title=title,
        needs=_needs(wait, title),
        asks=asks_of(wait),
        tree=tree_of(wait),
        proposal=proposal,
        is_overdue=wait.status.value == "open" and wait.deadline is not None and wait.deadline <= now,
        details=_details(wait, title, proposal),
    )


def whole(app: Bide, wait: Wait) -> Wait:
    """Return a wait with what it has so far, if it needs several things."""
    return app.wait(wait.id) if wait.kind in GROUPS else wait


def _title(wait: Wait, proposal: Proposal | None) -> str:
    if wait.title:
        return wait.title
    if proposal is not None:
        return f"Call {', '.join(action.name for action in proposal.actions)}?"
    question = wait.question
    if isinstance(question, str) and question.strip():
        return in_line(question)
    if isinstance(question, Mapping):
        for name in _ASKED:
            if isinstance(question.get(name), str) and question[name].strip():
                return in_line(question[name])
    titles = [str(part["title"]) for part in _parts(wait.condition) if part.get("title")]
    return titles[0] if titles else ""


def _parts(condition: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [] if condition is None else [part for _, part in condition.get("of") or ()]


def _needs(wait: Wait, title: str) -> str:
    if wait.kind == "question":
        return "somebody’s answer"
    if wait.kind in GROUPS:
        return _WORDS.get(wait.kind) or f"{(wait.condition or {}).get('k')} of these {len(_parts(wait.condition))}"
    if wait.kind == "approval":
        options = (wait.condition or {}).get("options") or ()
        return f"a decision: {' or '.join(options)}" if options else "a form to be filled in"
    return wait.waiting_for.replace(f": {title}", "", 1) if title else wait.waiting_for


def _details(wait: Wait, title: str, proposal: Proposal | None) -> Any:
    """Return what else was asked; what waits for a condition asks nothing but that."""
    question = wait.question
    if proposal is not None or question is None or wait.kind == "pause":
        return None
    if isinstance(question, Mapping) and question.keys() == {"waiting_for"}:
        return None
    if isinstance(question, str):
        return question if in_line(question) != question.strip() and in_line(question) == title else None
    if not isinstance(question, Mapping):
        return question
    return {key: value for key, value in question.items() if not title or value != title} or None
