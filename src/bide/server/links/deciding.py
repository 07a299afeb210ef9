"""The decision of somebody who has a link: checked, counted once, written down."""

from __future__ import annotations

from typing import Any, NamedTuple

from bide.errors import AlreadyAnsweredError, BideError, WaitExpiredError
from bide.server.auth.audit import audit
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.decisions import LONGEST_COMMENT
from bide.server.links.looking import Seen, Settled, key_of, look_at, told
from bide.server.links.offers import ANY, RESPOND
from bide.server.problems import Problem
from bide.store.signed_links import use_link

VIA = "link"


class Decision(NamedTuple):
    """What somebody has decided."""

    action: str | None
    value: Any
    comment: str = ""


class Decided(NamedTuple):
    """What came of it."""

    status: str
    """`resumed`, `counted` (others are still needed), or how it was settled before."""
    sentence: str
    seen: Seen
    settled: Settled | None = None
    """How it was settled before this came."""
    is_again: bool = False
    """Whether the same link has said the same before: there is nothing wrong with that."""


def decide(server: Context, token: str, seen: Seen, decision: Decision) -> Decided:
    """Answer the wait of a link. The first answer stands: whoever is late is told who was first."""
    if seen.settled is None:
        _check_allowed(server, seen, decision)
        try:
            return _first(server, seen, decision)
        except (AlreadyAnsweredError, WaitExpiredError):
            seen = look_at(server, token)
    settled = seen.settled or Settled("answered")
    is_again = seen.is_own and decision.action == settled.action
    _audit(server, seen, decision, "again" if is_again else "late")
    status = "already_answered" if settled.status == "answered" else settled.status
    return Decided(status, told(settled, seen.now), seen, settled, is_again)


def _first(server: Context, seen: Seen, decision: Decision) -> Decided:
    link = seen.link
    try:
        woken = server.app.wake(
            link.wait_id,
            decision.value,
            by=link.recipient or None,
            via=VIA,
            key=key_of(link),
            leaf=link.leaf or None,
            comment=decision.comment,
        )
    except (AlreadyAnsweredError, WaitExpiredError):
        raise
    except BideError as problem:
        _audit(server, seen, decision, f"refused: {type(problem).__name__}")
        raise
    if not woken.is_new:
        raise AlreadyAnsweredError(f"Wait {link.wait_id} was settled by the same link a moment ago.")
    # The answer is durable, and stands whether or not this is written: a link that was used finds its wait settled.
    use_link(server.app.store, link.link_id)
    _audit(server, seen, decision, woken.status)
    is_enough = woken.status == "resumed"
    thanks = "Thank you: it goes on." if is_enough else "Thank you: your decision counts. Others are still needed."
    return Decided(woken.status, thanks, seen)


def _check_allowed(server: Context, seen: Seen, decision: Decision) -> None:
    actions = seen.link.actions
    if ANY in actions:
        return
    if decision.action not in actions:
        _audit(server, seen, decision, "refused: not allowed")
        raise Problem(403, f"This link is only good for: {', '.join(actions)}. Nothing was decided.")


def check_words(seen: Seen, decision: Decision) -> str | None:
    """Say what is missing from what somebody wrote; None if nothing is."""
    if len(decision.comment) > LONGEST_COMMENT:
        return f"A comment may have {LONGEST_COMMENT} characters."
    if seen.offer.kind == "proposal" and decision.action == RESPOND and not decision.comment.strip():
        return "Write what you want to respond."
    return None


def _audit(server: Context, seen: Seen, decision: Decision, outcome: str) -> None:
    link = seen.link
    decider = Caller(identity=link.recipient or VIA, owner=link.owner)
    said = {"via": VIA, "link": link.link_id, "decision": decision.action}
    if decision.comment:
        said["comment"] = decision.comment
    audit(server, decider, "wait.answer", link.wait_id, seen.wait.thread_id, outcome, **said)
