"""What else can be done to a wait: withdraw it, give it more time, ask others, put it aside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, model_validator

from bide.clock import Instant
from bide.errors import AlreadyAnsweredError
from bide.runtime import Bide
from bide.server.auth.audit import audit
from bide.server.caller import RESOLVE, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_wait
from bide.server.native.answering import settled_before
from bide.server.native.described import Asked, IfMatch, Length, Text, WaitId, Words, refusals, version_in
from bide.server.native.wait_shapes import WaitWhole
from bide.server.native.waits import whole
from bide.waits.durations import milliseconds

router = APIRouter(tags=["waits"])

_REFUSED = refusals(404, 409, 410, 412)


class Withdrawal(Asked):
    """Why a question is withdrawn."""

    reason: Words = "cancelled"


class _Until(Asked):
    """A length of time from now on, or an instant; one of them."""

    until: datetime | None = None

    def instant(self, app: Bide, length: Length | None, what: str) -> Instant | None:
        """Return the instant that is meant, on the store's clock."""
        if self.until is not None:
            aware = self.until if self.until.tzinfo is not None else self.until.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1000)
        return None if length is None else app.store.clock.now() + milliseconds(length, what)


class Extension(_Until):
    """Until when a wait may be answered: `timeout` from now on, or `until` an instant; neither is no deadline."""

    timeout: Length | None = Field(default=None, description='A length of time from now on: "2h", or seconds.')

    @model_validator(mode="after")
    def _one_of_them(self) -> Extension:
        if self.timeout is not None and self.until is not None:
            raise ValueError("timeout and until say two things about one deadline")
        return self


class Snoozing(_Until):
    """For how long a wait is kept out of the inbox: `duration` from now on, or `until`; neither shows it again."""

    duration: Length | None = Field(default=None, description='A length of time from now on: "2h", or seconds.')

    @model_validator(mode="after")
    def _one_of_them(self) -> Snoozing:
        if self.duration is not None and self.until is not None:
            raise ValueError("duration and until say two things about one instant")
        return self


class Assignment(Asked):
    """Who is asked from now on."""

    assignees: Annotated[list[Text], Field(max_length=100)]


@router.post("/waits/{wait_id}/cancel", responses=_REFUSED)
def cancel_wait(
    server: Server, who: Who, wait_id: WaitId, body: Withdrawal | None = None, if_match: IfMatch = None
) -> WaitWhole:
    """Withdraw a question: the node that asked gets a `WaitCancelled`, which it may catch."""
    reason = (body or Withdrawal()).reason

    def change(expected: str | None) -> bool:
        return server.app.store.cancel_wait(wait_id, by=who.identity, reason=reason, expected=expected).is_new

    return _changed(server, who, wait_id, "wait.cancel", change, if_match)


@router.post("/waits/{wait_id}/extend", responses=_REFUSED)
def extend_wait(server: Server, who: Who, wait_id: WaitId, body: Extension, if_match: IfMatch = None) -> WaitWhole:
    """Give a wait another deadline, or none."""
    deadline = body.instant(server.app, body.timeout, "timeout")

    def change(expected: str | None) -> bool:
        return server.app.store.extend_wait(wait_id, deadline, by=who.identity, expected=expected)

    return _changed(server, who, wait_id, "wait.extend", change, if_match)


@router.post("/waits/{wait_id}/reassign", responses=_REFUSED)
def reassign_wait(server: Server, who: Who, wait_id: WaitId, body: Assignment, if_match: IfMatch = None) -> WaitWhole:
    """Let others be asked."""

    def change(expected: str | None) -> bool:
        return server.app.reassign(wait_id, body.assignees, by=who.identity, expected=expected)

    return _changed(server, who, wait_id, "wait.reassign", change, if_match)


@router.post("/waits/{wait_id}/snooze", responses=_REFUSED)
def snooze_wait(server: Server, who: Who, wait_id: WaitId, body: Snoozing, if_match: IfMatch = None) -> WaitWhole:
    """Keep a wait out of the inbox for a while. Its reminders wait that long, too; its deadline does not."""
    until = body.instant(server.app, body.duration, "duration")
    now = server.app.store.clock.now()

    def change(expected: str | None) -> bool:
        return server.app.store.snooze_wait(
            wait_id, now if until is None else until, by=who.identity, expected=expected
        )

    return _changed(server, who, wait_id, "wait.snooze", change, if_match)


def _changed(
    server: Context,
    who: Caller,
    wait_id: str,
    action: str,
    change: Callable[[str | None], bool],
    if_match: str | None,
) -> WaitWhole:
    """Change a wait that is the caller's, write that down, and show it; one that is settled is refused."""
    need(who, RESOLVE)
    row = owned_wait(server.app, who, wait_id)
    is_done = change(version_in(if_match))
    audit(server, who, action, wait_id, row.thread_id, "accepted" if is_done else "late")
    if not is_done:
        late = AlreadyAnsweredError(f"Wait {wait_id} of thread {row.thread_id!r} is settled. Nothing was written.")
        raise settled_before(server, wait_id, late)
    return whole(server.app, wait_id)
