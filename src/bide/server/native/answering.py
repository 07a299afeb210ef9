"""An answer that comes over HTTP: read, checked, recorded once, written into the audit log, and told about."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from bide.errors import AlreadyAnsweredError, BideError, CodecError, InvalidAnswerError, WaitExpiredError
from bide.runtime.answers import plain_of
from bide.runtime.reading import wait_of
from bide.runtime.views import Woken, moment
from bide.server.auth.audit import audit
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.door import owned_wait
from bide.server.native.described import Resolution, Told
from bide.server.payloads import read_answer
from bide.server.problems import Problem
from bide.store.needed import PLAIN
from bide.store.queue_rows import WaitView
from bide.types import WaitStatus
from bide.waits.wake import Wake


class Given(NamedTuple):
    """An answer as a client has sent it."""

    value: Any
    via: str
    leaf: str | None = None
    key: str | None = None
    expected: str | None = None
    action: str = "wait.answer"
    comment: str | None = None


class Answered(Told):
    """What came of an answer."""

    status: Literal["resumed", "counted", "already_resolved", "already_counted"]
    wait_id: str
    thread_id: str
    run_id: str
    resolution: Resolution


def give(server: Context, caller: Caller, wait_id: str, given: Given) -> Answered:
    """Answer a wait of the caller's. Whoever is not the first is told who was, and the same again is told the same."""
    row = owned_wait(server.app, caller, wait_id)
    attempt = _Attempt(server, caller, row, given)
    try:
        read = read_answer(wait_of(server.app.graphs, row), given.value, given.leaf)
        value = plain_of(read.value)
        given = given._replace(comment=given.comment or read.comment)
        attempt = attempt._replace(given=given)
        woken = server.app.wake(
            wait_id,
            value,
            comment=given.comment,
            by=caller.identity,
            via=given.via,
            key=given.key,
            leaf=given.leaf,
            expected=given.expected,
        )
    except InvalidAnswerError as error:
        found = [{"pointer": one.pointer, "message": one.said} for one in error.misfits]
        attempt.note("refused", problems=found)
        raise Problem(422, str(error), error="InvalidAnswerError", status="open", problems=found) from None
    except (AlreadyAnsweredError, WaitExpiredError) as error:
        again = _told_again(attempt, value)
        attempt.note("late" if again is None else "duplicate")
        if again is None:
            raise settled_before(server, wait_id, error) from None
        return again
    except BideError as error:
        attempt.note("refused", error=type(error).__name__)
        raise
    if not woken.is_new and woken.by != caller.identity:
        # Another has used the same key: that does not make it the same answer.
        attempt.note("late")
        raise settled_before(server, wait_id, AlreadyAnsweredError(f"Wait {wait_id} was settled by another caller."))
    attempt.note(woken.status if woken.is_new else "duplicate")
    return _told(woken, row)


def answered_under(server: Context, caller: Caller, thread_id: str, key: str | None) -> str | None:
    """Find the wait that this caller has answered under the same key before."""
    if key is None:
        return None
    rows = server.app.store.waits_of(thread_id)
    found = [row.wait_id for row in rows if row.answer_key == key and row.answered_by == caller.identity]
    return found[-1] if found else None


class _Attempt(NamedTuple):
    """Somebody who answers."""

    server: Context
    caller: Caller
    row: WaitView
    given: Given

    def note(self, outcome: str, **more: Any) -> None:
        """Write down what came of it."""
        given, row = self.given, self.row
        said = {"via": given.via, "leaf": given.leaf, "comment": given.comment, **more}
        audit(self.server, self.caller, given.action, row.wait_id, row.thread_id, outcome, **said)


def settled_before(server: Context, wait_id: str, error: Exception) -> Problem:
    """Return the refusal that says who has settled a wait, when, and through what."""
    row = server.app.store.wait(wait_id)
    assert row is not None, "it was there a moment ago"
    # A part of it may be decided, while the whole is still open.
    at = moment(row.answered_at)
    resolution = {"by": row.answered_by, "at": None if at is None else at.isoformat(), "via": row.answered_via}
    status = 410 if row.status is WaitStatus.EXPIRED else 409
    return Problem(status, str(error), error=type(error).__name__, status=row.status.value, resolution=resolution)


def _told(woken: Woken, row: WaitView) -> Answered:
    words = {"resumed": "resumed", "counted": "counted", "already_counted": "already_counted"}
    return Answered(
        status=words.get(woken.status, "already_resolved"),  # type: ignore[arg-type]
        wait_id=row.wait_id,
        thread_id=row.thread_id,
        run_id=row.run_id,
        resolution=Resolution(by=woken.by, at=woken.at, via=woken.via),
    )


def _told_again(attempt: _Attempt, value: Any) -> Answered | None:
    """Return what came of the first answer, if this caller has given the very same before."""
    row = attempt.server.app.store.wait(attempt.row.wait_id)
    if row is None or row.status is not WaitStatus.ANSWERED or row.answer is None:
        return None
    try:
        answer = PLAIN.decode(row.answer, "answer")
    except CodecError:
        return None  # it is of a type of the graph's, so it did not come this way
    said, by = _part_of(answer, attempt.given.leaf, row.answered_by)
    if by != attempt.caller.identity or said != value or type(said) is not type(value):
        return None
    woken = Woken("already_answered", row.wait_id, row.thread_id, by, moment(row.answered_at), row.answered_via)
    return _told(woken, row)


def _part_of(answer: Any, leaf: str | None, by: str | None) -> tuple[Any, str | None]:
    """Return what one part of an answer says, and who said it."""
    if not isinstance(answer, Wake):
        return answer, by
    if leaf is not None and answer.winner is None and isinstance(answer.value, dict):
        part = answer.value.get(leaf)
        return (part.value, part.by) if isinstance(part, Wake) else (None, None)
    return answer.value, answer.by
