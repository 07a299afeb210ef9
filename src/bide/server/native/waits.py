"""Who waits: the inbox as data, one wait with all that is known of it, and answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from bide.errors import GraphError
from bide.runtime import Bide
from bide.runtime.open_waits import is_open
from bide.server.caller import READ, RESOLVE, Caller
from bide.server.context import Server, Who
from bide.server.door import need, owned_wait
from bide.server.native.answering import Answered, Given, give
from bide.server.native.described import (
    Asked,
    Id,
    IdempotencyKey,
    IfMatch,
    LimitedAnswer,
    Text,
    WaitId,
    Words,
    refusals,
    version_in,
)
from bide.server.native.wait_shapes import (
    ExplanationShown,
    KindWord,
    WaitPageShown,
    WaitWhole,
    explanation_shown,
    wait_shown,
    wait_whole,
)
from bide.server.problems import Problem
from bide.waits.leaves import leaves

router = APIRouter(tags=["waits"])


class WaitQuery(Asked):
    """Which of those who wait are listed, and in which order."""

    kind: KindWord | None = None
    graph: Text | None = None
    assignee: Text | None = None
    tag: Text | None = None
    thread_id: Id | None = None
    due_before: datetime | None = Field(default=None, description="Only those with a deadline before this.")
    overdue: bool = Field(default=False, description="Only those whose deadline has passed.")
    snoozed: bool = Field(default=False, description="Also those that are snoozed.")
    sort: Literal["age", "deadline"] = "age"
    limit: int = Field(default=50, ge=1, le=500, description="How many at most.")
    after: str | None = Field(
        default=None,
        pattern=r"^(age|deadline|timeless)\.-?[0-9]{1,17}\.[A-Za-z0-9_.:@-]{0,128}$",
        description="The `after` of the page before.",
    )


class Answer(Asked):
    """An answer to a wait, in the form that it asks for, or in that of any known inbox."""

    value: Any
    leaf: Text | None = Field(default=None, description="Where a wait needs several decisions: which one this is.")
    comment: Words | None = Field(default=None, description="What is said beside it: the node hears it, too.")
    idempotency_key: Text | None = Field(default=None, description="As the header `Idempotency-Key`.")


class Rejection(Asked):
    """Why somebody says no."""

    message: Words | None = None
    leaf: Text | None = None
    idempotency_key: Text | None = None


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/waits", responses=refusals())
def list_waits(server: Server, who: Who, wanted: Annotated[WaitQuery, Query()]) -> WaitPageShown:
    """List who waits: longest first, or by deadline, with those that have none at the end."""
    need(who, READ)
    said = wanted.model_dump(exclude={"limit", "after", "due_before"})
    due_before = _aware(wanted.due_before)
    try:
        page = server.app.inbox(owner=who.owner, due_before=due_before, most=wanted.limit, after=wanted.after, **said)
    except GraphError as error:
        raise Problem(422, str(error)) from None
    return WaitPageShown(waits=[wait_shown(wait) for wait in page.waits], after=page.after)


def _aware(given: datetime | None) -> datetime | None:
    """Read an instant without a zone as UTC, which is what this API speaks."""
    return given if given is None or given.tzinfo is not None else given.replace(tzinfo=UTC)


@router.get("/waits/{wait_id}", responses=refusals(404))
def get_wait(server: Server, who: Who, wait_id: WaitId, response: Response) -> WaitWhole:
    """Return a wait, open or settled, with what of it is there already."""
    need(who, READ)
    owned_wait(server.app, who, wait_id)
    found = whole(server.app, wait_id)
    response.headers["ETag"] = f'"{found.version}"'
    return found


def whole(app: Bide, wait_id: str) -> WaitWhole:
    """Return a wait with all that is known of it."""
    return wait_whole(app.wait(wait_id), app.store.satisfied(wait_id)[0])


@router.get("/waits/{wait_id}/explain", responses=refusals(404))
def explain_wait(server: Server, who: Who, wait_id: WaitId) -> ExplanationShown:
    """Say what a wait still needs, and why the last facts did not fit."""
    need(who, READ)
    owned_wait(server.app, who, wait_id)
    return explanation_shown(server.app.explain(wait_id))


# ── Answering ──────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/waits/{wait_id}/resolve", include_in_schema=False, dependencies=[LimitedAnswer])
@router.post("/waits/{wait_id}/answer", responses=refusals(404, 409, 410, 412, 413), dependencies=[LimitedAnswer])
def answer_wait(
    server: Server,
    who: Who,
    wait_id: WaitId,
    body: Answer,
    *,
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Answered:
    """Answer a wait: its thread goes on, once.

    The first answer stands: whoever comes later gets 409, and who was first. The same answer by the same caller, or any
    with the same key, gets 200 and what came of the first. What does not fit is 422, and the wait stays open.
    """
    need(who, RESOLVE)
    key = idempotency_key or body.idempotency_key
    given = Given(body.value, "api", body.leaf, key, version_in(if_match), comment=body.comment)
    return give(server, who, wait_id, given)


@router.post("/waits/{wait_id}/reject", responses=refusals(404, 409, 410, 412, 413), dependencies=[LimitedAnswer])
def reject_wait(
    server: Server,
    who: Who,
    wait_id: WaitId,
    body: Rejection | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Answered:
    """Say no to an approval; the message goes where its form asks for one, or beside the answer as its comment."""
    need(who, RESOLVE)
    said = body or Rejection()
    _check_that_it_can_be_rejected(server.app, who, wait_id, said.leaf)
    value = {"type": "reject", "message": said.message}
    key = idempotency_key or said.idempotency_key
    given = Given(value, "api", said.leaf, key, version_in(if_match), "wait.reject", said.message)
    return give(server, who, wait_id, given)


def _check_that_it_can_be_rejected(app: Bide, who: Caller, wait_id: str, leaf: str | None) -> None:
    row = owned_wait(app, who, wait_id)
    condition = row.needs.condition
    parts = () if condition is None else leaves(condition, row.created_at)
    if is_open(row) and not any(part.kind == "approval" and leaf in (None, part.label) for part in parts):
        raise Problem(
            422, f"Wait {wait_id} asks for no decision that could be no. Answer it, or withdraw it with cancel."
        )
