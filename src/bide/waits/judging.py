"""Puts a condition to a fact, criterion by criterion, each with a sentence that says what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bide.errors import InterruptError
from bide.shape import problems
from bide.shape.report import show
from bide.waits.addresses import LONGEST_HEADER, addresses_of, only_address_of
from bide.waits.conditions import Child, Condition, Email, Event, Webhook
from bide.waits.criteria import LONGEST_SEARCHED, found_in, judged
from bide.waits.facts import Fact
from bide.waits.given import Pattern
from bide.waits.globs import fits_exactly, fits_text
from bide.waits.mails import answered_ids
from bide.waits.patterns import Regex
from bide.waits.texts import lower_ascii

Judged = Iterator[tuple[bool, str]]


def judge(condition: Condition, fact: Fact) -> Judged:
    """Look at every criterion, also after one has failed: whether the fact fits it, and why."""
    if condition.kind != fact.kind:
        yield False, f"the condition is {_article(condition.kind)}, and the fact {_article(str(fact.kind))}"
    elif isinstance(condition, Child):
        yield _named("the thread", condition.thread_id, fact.name)
    elif isinstance(condition, Email):
        yield from _judged_email(condition, fact)
    elif isinstance(condition, Webhook | Event):
        yield _named(f"the {condition.kind}", condition.name, fact.name)
        if isinstance(condition, Webhook) and condition.schema is not None:
            yield from _judged_schema(condition.schema, fact.payload)
        if condition.match is not None:
            yield from judged(condition.match, fact.payload)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeio" else f"a {kind:.40}"


def _named(what: str, wanted: str, given: object) -> tuple[bool, str]:
    if wanted == given:
        return True, f"{what} is {show(wanted)}"
    return False, f"{what} is {show(given)}, not {show(wanted)}"


def _judged_schema(schema: dict[str, Any], payload: object) -> Judged:
    try:
        found = problems(payload, schema)
    except InterruptError as error:
        # Stored by another release, say: whoever matches must not stumble over it.
        yield False, f"the schema cannot be enforced ({error})"
        return
    if not found:
        yield True, "the payload fits the schema"
    for problem in found:
        yield False, f"payload{problem.removeprefix('answer')}"


# --- mails ------------------------------------------------------------------------------------------------------------


def _judged_email(condition: Email, fact: Fact) -> Judged:
    if condition.mailbox is not None:
        yield _named("the mailbox", lower_ascii(condition.mailbox), _lower(fact.name))
    mail = fact.payload
    if not isinstance(mail, dict):
        yield False, f"the mail is {show(mail)}, not an object"
        return
    if condition.from_ is not None:
        yield _judged_sender(condition.from_, mail)
    if condition.to is not None:
        yield _judged_recipients(condition.to, mail)
    if condition.subject is not None:
        yield _judged_text("subject", condition.subject, mail, LONGEST_HEADER)
    if condition.body is not None:
        yield _judged_text("body", condition.body, mail, LONGEST_SEARCHED)
    if condition.in_reply_to is not None:
        yield _judged_answer(condition.in_reply_to, mail)


def _judged_sender(pattern: Pattern, mail: dict[str, Any]) -> tuple[bool, str]:
    header = mail.get("from")
    address = only_address_of(header)
    if address is None:
        return False, f"from {show(header)} is not one address that can be told for certain"
    fits = _fits_address(pattern, address)
    return fits, f"from {show(address)} {_told(fits, pattern)}"


def _judged_recipients(pattern: Pattern, mail: dict[str, Any]) -> tuple[bool, str]:
    recipients = (*addresses_of(mail.get("to")), *addresses_of(mail.get("cc")))
    if not recipients:
        return False, "neither to nor cc holds an address that can be told for certain"
    fitting = next((address for address in recipients if _fits_address(pattern, address)), None)
    if fitting is not None:
        return True, f"to {show(fitting)} {_told(True, pattern)}"
    return False, f"to {', '.join(map(show, recipients[:5]))} {_told(False, pattern)}"


def _fits_address(pattern: Pattern, address: str) -> bool:
    """Tell whether a bare address in lower case fits; the case of letters never counts."""
    if isinstance(pattern, Regex):
        return found_in(Regex(pattern.pattern, _without_case(pattern.flags)), address)[0]
    return fits_exactly(lower_ascii(pattern), address)


def _without_case(flags: str) -> str:
    return flags if "i" in flags else flags + "i"


def _judged_text(name: str, pattern: Pattern, mail: dict[str, Any], longest: int) -> tuple[bool, str]:
    text = mail.get(name)
    if not isinstance(text, str):
        return False, f"{name} is missing" if text is None else f"{name} is {show(text)}, not a text"
    if len(text) > longest:
        return False, f"{name} has {len(text)} characters, more than the {longest} that are looked at"
    if isinstance(pattern, Regex):
        fits, told = found_in(pattern, text)
        return fits, f"{name} {told}"
    fits = fits_text(pattern, text)
    return fits, f"{name} {show(text)} {_told(fits, pattern)}"


def _judged_answer(wanted: str, mail: dict[str, Any]) -> tuple[bool, str]:
    if wanted in answered_ids(mail):
        return True, f"it answers the mail {show(wanted)}"
    return False, f"neither in_reply_to nor references names the mail {show(wanted)}"


def _told(fits: bool, pattern: Pattern) -> str:
    what = f"the regular expression {show(pattern.pattern)}" if isinstance(pattern, Regex) else show(pattern)
    return f"{'matches' if fits else 'does not match'} the pattern {what}".replace("the pattern the", "the")


def _lower(name: object) -> object:
    return lower_ascii(name) if isinstance(name, str) else name
