"""Waits as the native API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from bide.runtime.explaining import Explanation
from bide.runtime.views import Wait
from bide.server.native.described import Resolution, Told
from bide.server.payloads import interrupt_of
from bide.shape.shown import jsonable
from bide.store.queue_rows import version_of
from bide.types import WaitStatus
from bide.waits.leaves import leaves

WaitStatusWord = Literal["open", "answered", "expired", "cancelled"]
KindWord = Literal[
    "question", "approval", "time", "email", "webhook", "event", "child", "any_of", "all_of", "quorum", "pause"
]
"""What a thread may wait for."""


class WaitShown(Told):
    """What a paused thread needs, and until when."""

    id: str
    thread_id: str
    run_id: str
    graph: str
    node: str
    key: str | None
    kind: str
    status: WaitStatusWord
    title: str
    waiting_for: str = Field(description="In words.")
    question: Any
    interrupt: Any = Field(description="The same as clients of LangGraph and other inboxes know it.")
    assignees: list[str]
    tags: list[str]
    created_at: datetime
    deadline: datetime | None
    snoozed_until: datetime | None
    condition: Any = None
    answer_schema: Any = Field(default=None, description="What an answer must look like, as a JSON Schema.")


class Part(Told):
    """A part of what a wait needs."""

    leaf: str
    kind: str
    is_open: bool
    by: str | None = None
    at: datetime | None = None
    via: str | None = None
    delivery_id: str | None = None
    comment: str | None = None
    value: Any = None


class WaitWhole(WaitShown):
    """A wait with all that is known of it."""

    parts: list[Part] = Field(default=[], description="Of one that needs several things: each of them.")
    answer: Any = None
    resolution: Resolution | None = None
    version: str = Field(description="For `If-Match`: changes when the wait does.")


class WaitPageShown(Told):
    """Some of those who wait."""

    waits: list[WaitShown]
    after: str | None = Field(description="For the next page; null when this was the last.")


class VerdictShown(Told):
    """What one condition says to one fact."""

    wait_id: str
    thread_id: str
    leaf: str
    fits: bool
    reasons: list[str]
    delivery_id: str | None = None


class ExplanationShown(Told):
    """Why something happened, or did not."""

    summary: str
    verdicts: list[VerdictShown]


def wait_shown(wait: Wait) -> WaitShown:
    """Show a wait in a list."""
    return WaitShown(**_common(wait))


def wait_whole(wait: Wait, open_leaves: frozenset[int]) -> WaitWhole:
    """Show a wait by itself."""
    is_settled = wait.status is not WaitStatus.OPEN
    resolution = Resolution(by=wait.answered_by, at=wait.answered_at, via=wait.answered_via) if is_settled else None
    return WaitWhole(
        **_common(wait),
        parts=_parts(wait, open_leaves),
        answer=jsonable(wait.answer),
        resolution=resolution,
        version=version_of_wait(wait),
    )


def version_of_wait(wait: Wait) -> str:
    """Return what changes when a wait does."""
    deadline = None if wait.deadline is None else round(wait.deadline.timestamp() * 1000)
    return version_of(wait.status, deadline, wait.assignees, wait.satisfied)


def explanation_shown(explained: Explanation) -> ExplanationShown:
    """Show why something happened."""
    verdicts = [
        VerdictShown(
            wait_id=one.wait_id,
            thread_id=one.thread_id,
            leaf=one.leaf,
            fits=one.fits,
            reasons=list(one.reasons),
            delivery_id=one.delivery_id,
        )
        for one in explained.verdicts
    ]
    return ExplanationShown(summary=explained.summary, verdicts=verdicts)


def _common(wait: Wait) -> dict[str, Any]:
    interrupt = jsonable(interrupt_of(wait))
    return {
        "id": wait.id,
        "thread_id": wait.thread_id,
        "run_id": wait.run_id,
        "graph": wait.graph,
        "node": wait.node,
        "key": wait.key,
        "kind": wait.kind,
        "status": wait.status.value,
        "title": wait.title,
        "waiting_for": wait.waiting_for,
        "question": jsonable(wait.question),
        "interrupt": interrupt,
        "assignees": list(wait.assignees),
        "tags": list(wait.tags),
        "created_at": wait.created_at,
        "deadline": wait.deadline,
        "snoozed_until": wait.snoozed_until,
        "condition": jsonable(wait.condition),
        "answer_schema": interrupt.get("response_schema"),
    }


def _parts(wait: Wait, open_leaves: frozenset[int]) -> list[Part]:
    if wait.condition is None:
        return []
    parts = []
    for leaf in leaves(wait.condition, 0):
        wake = wait.satisfied.get(leaf.number)
        part = Part(leaf=leaf.label, kind=leaf.kind, is_open=leaf.number in open_leaves)
        if wake is not None:
            told = {"by": wake.by, "at": wake.when, "via": wake.via, "delivery_id": wake.delivery}
            part = part.model_copy(update={**told, "comment": wake.comment, "value": jsonable(wake.value)})
        parts.append(part)
    return parts
