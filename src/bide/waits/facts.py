"""Facts: what the world has brought, as it is stored before anybody looks whom it is for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from bide.errors import DeliveryError
from bide.shape.report import show
from bide.waits.texts import LONGEST_NAME, is_line, is_name
from bide.waits.wake import ChildResult

if TYPE_CHECKING:
    from bide.clock import Instant

FACT_KINDS = ("event", "email", "webhook", "child")

LONGEST_ID = 1000
DEEPEST = 64
MOST_VALUES = 1_000_000
MOST_KEYS = 1000
"""How many keys the payload of an event may have at its top: each may be what a wait is found by."""
_LATEST = 2**53


class Fact(NamedTuple):
    """One fact. `(source, external_id)` says whether it is the same as another."""

    kind: str
    """One of event, email, webhook, child."""
    name: str
    """The name of the event or webhook, the mailbox, or the id of the child's thread."""
    payload: Any
    source: str
    external_id: str
    received_at: Instant


class Mail(TypedDict, total=False):
    """The parts of a mail that conditions look at. Headers are texts as they came, unfolded and decoded."""

    from_: str
    to: str | list[str]
    cc: str | list[str]
    subject: str
    body: str
    """The text of the mail, without its markup."""
    message_id: str
    in_reply_to: str
    references: str | list[str]
    date: str


def email_fact(
    mailbox: str = "", *, received_at: Instant, source: str = "", external_id: str = "", **mail: Unpack[Mail]
) -> Fact:
    """Make the fact of a mail: by default its Message-ID is what it is known by, within its mailbox."""
    payload = {"from" if key == "from_" else key: value for key, value in mail.items()}
    known_by = external_id or str(mail.get("message_id", ""))
    return check_fact(Fact("email", mailbox, payload, source or f"email:{mailbox}", known_by, received_at))


def event_fact(
    name: str, payload: Any = None, *, received_at: Instant, source: str = "", external_id: str = ""
) -> Fact:
    """Make the fact of an event."""
    return check_fact(Fact("event", name, payload, source or f"event:{name}", external_id, received_at))


def webhook_fact(
    name: str, payload: Any = None, *, received_at: Instant, source: str = "", external_id: str = ""
) -> Fact:
    """Make the fact of a call of a webhook."""
    return check_fact(Fact("webhook", name, payload, source or f"webhook:{name}", external_id, received_at))


def child_fact(result: ChildResult, *, received_at: Instant) -> Fact:
    """Make the fact that a child has ended."""
    known_by = result.run_id or result.thread_id
    return check_fact(Fact("child", result.thread_id, result, "child", known_by, received_at))


def check_fact(fact: Fact) -> Fact:
    """Return the fact, or raise DeliveryError when it cannot be stored or never be matched."""
    if fact.kind not in FACT_KINDS:
        raise DeliveryError(f"There are no facts of the kind {fact.kind!r:.100}; it is one of {', '.join(FACT_KINDS)}.")
    _check_name(fact)
    for what, text in (("source", fact.source), ("external_id", fact.external_id)):
        if not is_line(text, LONGEST_ID) or len(text.encode()) > LONGEST_ID:
            raise DeliveryError(
                f"The {what} {text!r:.100} of a delivery must be one line of at most {LONGEST_ID} bytes."
            )
    if type(fact.received_at) is not int or not -_LATEST < fact.received_at < _LATEST:
        raise DeliveryError(f"received_at={fact.received_at!r:.100} is no instant: give milliseconds since 1970.")
    _check_payload(fact)
    return fact


def _check_name(fact: Fact) -> None:
    if fact.kind == "email" and fact.name == "":
        return  # a mail that came from nobody knows which mailbox
    if not is_name(fact.name, LONGEST_ID if fact.kind == "child" else LONGEST_NAME):
        raise DeliveryError(
            f"The {fact.kind} has the name {fact.name!r:.100}. Give a text of 1 to {LONGEST_NAME} characters without "
            f"control characters."
        )


def _check_payload(fact: Fact) -> None:
    if fact.kind == "child" and isinstance(fact.payload, ChildResult):
        return
    if fact.kind == "email" and type(fact.payload) is not dict:
        raise DeliveryError(f"A mail is a dict with 'from', 'subject' and so on, not {show(fact.payload)}.")
    if fact.kind == "event" and isinstance(fact.payload, dict) and len(fact.payload) > MOST_KEYS:
        raise DeliveryError(
            f"The payload of the event {fact.name!r} has {len(fact.payload)} keys at its top; {MOST_KEYS} are allowed. "
            f"Put some of them together under one key."
        )
    problem = next(_problems(fact.payload), None)
    if problem is not None:
        raise DeliveryError(
            f"The payload of the {fact.kind} {fact.name!r} cannot be stored as JSON: {problem}. Give dicts with texts "
            f"as keys, lists, texts, finite numbers, true, false and None."
        )


def _problems(payload: object) -> Iterator[str]:
    """Find what is no JSON, level by level, so that no nesting costs a frame."""
    level, count = [payload], 0
    for _ in range(DEEPEST + 1):
        count += len(level)
        if count > MOST_VALUES:
            yield f"it holds more than {MOST_VALUES} values"
            return
        for value in level:
            yield from _own_problem(value)
        level = [item for value in level if type(value) in (list, dict) for item in _inside(value)]
        if not level:
            return
    yield f"it nests deeper than {DEEPEST} levels"


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if type(value) is dict else value


def _own_problem(value: object) -> Iterator[str]:
    if value is None or type(value) in (str, bool, int, list):
        return
    if type(value) is float:
        if not math.isfinite(value):
            yield f"it holds {value!r}"
    elif type(value) is dict:
        odd = next((key for key in value if type(key) is not str), None)
        if odd is not None or None in value:
            yield f"it has the key {show(odd)}"
    else:
        yield f"it holds {show(value)} of the type {type(value).__name__}"
