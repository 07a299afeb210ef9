"""What a link leads to, as it stands now: nothing is changed by looking, however often somebody does."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from bide.clock import Instant
from bide.runtime.open_waits import is_open
from bide.runtime.reading import wait_of
from bide.runtime.views import Wait, moment
from bide.server.context import Context
from bide.server.links.offers import Offer, offer_of
from bide.server.links.tokens import PURPOSE, is_genuine, question_digest, read_token
from bide.server.pages.words import ago, stamp
from bide.store.queue_rows import WaitView
from bide.store.secret_keys import SecretKeys
from bide.store.signed_links import LinkRow, find_link
from bide.types import WaitStatus
from bide.waits.wake import Wake


class Gone(Exception):
    """A link that is good for nothing any more, or never was."""

    def __init__(self, status: int, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason
        self.sentence = sentence


class Settled(NamedTuple):
    """How a wait was settled, or the part of it that a link is about."""

    status: str
    """answered, expired, cancelled, or needless."""
    by: str | None = None
    at: datetime | None = None
    via: str | None = None
    action: str | None = None


class Seen(NamedTuple):
    """A link that is genuine, and the wait that it is about."""

    link: LinkRow
    wait: Wait
    offer: Offer
    settled: Settled | None
    """None while there is something to decide."""
    now: datetime
    is_own: bool = False
    """Whether it was this very link that has settled it."""

    @property
    def actions(self) -> tuple[str, ...]:
        """What somebody who has this link can do."""
        return self.offer.shown(self.link.actions)


def look_at(server: Context, token: str) -> Seen:
    """Return what a link leads to, or raise `Gone`."""
    store = server.app.store
    link, now = _genuine(server, token), store.clock.now()
    if link.revoked_at is not None:
        raise Gone(410, "revoked", "This link was withdrawn. If you should still decide, ask for a new one.")
    if link.expires_at <= now:
        ended = _stamp(link.expires_at)
        raise Gone(410, "expired", f"This link was good until {ended}. If you should still decide, ask for a new one.")
    found = store.wait_and_parts(link.wait_id)
    if found is None or found[0].owner != link.owner:
        raise Gone(410, "gone", "What this link was about is not there any more. There is nothing left to decide.")
    row, still_open, satisfied = found
    if question_digest(row) != link.question:
        raise Gone(410, "changed", "The question has changed since this link was sent. Ask for a new one.")
    wait = wait_of(server.app.graphs, row, satisfied)
    offer = offer_of(row, wait, link.leaf)
    settled = _settled(row, wait, offer, still_open, now)
    if settled is None and link.used_at is not None:
        raise Gone(
            410, "used", f"This link was used {_stamp(link.used_at)}, and it decides only once. Ask for a new one."
        )
    is_own = settled is not None and (link.used_at is not None or row.answer_key == key_of(link))
    return Seen(link, wait, offer, settled, _moment(now), is_own)


def key_of(link: LinkRow) -> str:
    """Return the key under which a link answers: the same link again is the same answer."""
    return f"link:{link.link_id}"


def _genuine(server: Context, text: str) -> LinkRow:
    """Return the link that a token was made for; a token that was never made is told from no other."""
    token, store = read_token(text), server.app.store
    link = None if token is None else find_link(store, token.link_id)
    key = None if token is None else SecretKeys(store, PURPOSE).find(token.kid)
    if token is None or link is None or key is None or not is_genuine(token, link, key):
        raise Gone(404, "unknown", "This link is not one of ours, or not all of it was copied. Open it as it was sent.")
    return link


def _settled(row: WaitView, wait: Wait, offer: Offer, still_open: frozenset[int], now: Instant) -> Settled | None:
    """Say how it was settled: all of the wait, or the part that the link is about."""
    if is_open(row):
        if row.deadline is not None and row.deadline <= now:
            return Settled("expired", at=moment(row.deadline))
        return _settled_leaf(wait, offer, still_open)
    if row.status is not WaitStatus.ANSWERED:
        status = "expired" if row.status is WaitStatus.EXPIRED else "cancelled"
        return Settled(status, row.answered_by, moment(row.answered_at), row.answered_via)
    own = wait.satisfied.get(-1 if offer.number is None else offer.number)
    if own is not None:
        return _by(own, offer)
    value = wait.answer.value if isinstance(wait.answer, Wake) else wait.answer
    action = None if offer.number is not None else offer.action_of(value)
    return Settled("answered", row.answered_by, moment(row.answered_at), row.answered_via, action)


def _settled_leaf(wait: Wait, offer: Offer, still_open: frozenset[int]) -> Settled | None:
    if offer.number is None:
        return None
    own = wait.satisfied.get(offer.number)
    if own is not None:
        return _by(own, offer)
    return None if offer.number in still_open else Settled("needless")


def _by(wake: Wake, offer: Offer) -> Settled:
    return Settled("answered", wake.by, wake.when, wake.via, offer.action_of(wake.value))


_PAST = {"approve": "approved", "reject": "rejected", "respond": "responded", "edit": "edited", "ignore": "ignored"}


def told(settled: Settled, now: datetime) -> str:
    """Say who decided what, and when: "Maya approved 3 min ago"."""
    if settled.status == "expired":
        return f"The time for this decision ran out{_when(settled.at, now)}."
    if settled.status == "cancelled":
        return f"The question was withdrawn{_when(settled.at, now)}. There is nothing left to decide."
    if settled.status == "needless":
        return "Others have decided already: your decision is not needed any more."
    who, action = settled.by or "Somebody", settled.action
    did = "answered" if action is None or action in ("answer", "continue") else _PAST.get(action, f"chose “{action}”")
    return f"{who} {did}{_when(settled.at, now)}."


def _when(at: datetime | None, now: datetime) -> str:
    return "" if at is None else f" {ago(at, now)}"


def _moment(instant: Instant) -> datetime:
    found = moment(instant)
    assert found is not None, "an instant was given"
    return found


def _stamp(instant: Instant) -> str:
    return stamp(_moment(instant))
