"""An answer from outside: what it does to a wait that is held. The first one stands."""

from __future__ import annotations

from bide.clock import Instant
from bide.errors import AlreadyAnsweredError
from bide.store.facts import event_of
from bide.store.needed import PLAIN
from bide.store.queue_rows import Answering, Outcome
from bide.store.settling import Held, Settling
from bide.types import WaitStatus
from bide.waits.wake import Wake


def answer_one(settling: Settling, wait: Held, answering: Answering) -> Outcome:
    """Let a wait that is held have its answer, or one leaf of what it needs, if it is still open."""
    if wait.is_open and is_over(wait, settling.now):
        settling.expire(wait)
        return outcome_of(wait._replace(status=WaitStatus.EXPIRED), is_new=False)
    if not wait.is_open:
        return outcome_of(wait, is_new=False)
    if answering.number is None:
        body = PLAIN.encode(answering.value, "answer")
        settled = settling.answer(wait, body, by=answering.by, via=answering.via, key=answering.key)
    elif answering.number not in wait.open:
        return _told_of_leaf(wait, answering)
    else:
        settled = settling.satisfy(wait, answering.number, _wake(answering, settling.now), answering.key)
    if answering.comment:
        said = {"wait": wait.wait_id, "by": answering.by, "text": answering.comment}
        settling.log(settled, event_of("wait.commented", **said))
    return _told(settled, answering, settling.now)


def _wake(answering: Answering, now: Instant) -> Wake:
    said = answering.comment or None
    return Wake(answering.value, kind=answering.kind, by=answering.by, at=now, via=answering.via, comment=said)


def _told_of_leaf(wait: Held, answering: Answering) -> Outcome:
    """Tell how a part of a wait was decided before: calmly whoever says the same again, with an error anybody else."""
    wake = wait.satisfied.get(answering.number or 0)
    if wake is not None and (wake.value, wake.by) == (answering.value, answering.by):
        return Outcome(WaitStatus.OPEN, False, wait.wait_id, wait.thread_id, wake.by, wake.at, wake.via)
    how = "does not matter any more" if wake is None else f"was decided{f' by {wake.by}' if wake.by else ''} before"
    raise AlreadyAnsweredError(
        f"This part of wait {wait.wait_id} of thread {wait.thread_id!r} {how}. A decision stands; nothing was written.",
        outcome=outcome_of(wait, is_new=False),
    )


def is_over(wait: Held, now: Instant) -> bool:
    """Whether the deadline of a wait has passed."""
    return wait.deadline is not None and wait.deadline <= now


def _told(wait: Held, answering: Answering, now: Instant) -> Outcome:
    return Outcome(wait.status, True, wait.wait_id, wait.thread_id, answering.by, now, answering.via)


def outcome_of(wait: Held, *, is_new: bool) -> Outcome:
    """Say how a wait stands."""
    return Outcome(wait.status, is_new, wait.wait_id, wait.thread_id)
