"""What a thread may wait for: a time, a mail, a webhook, an event, a person, a child thread.

Each is a small value that is made by the function of its name, checked there, and stored with the wait
(`bide.waits.stored`). `bide.waits.groups` puts several together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from bide.errors import InterruptError
from bide.waits.criteria import checked_match
from bide.waits.durations import Duration, milliseconds
from bide.waits.given import (
    LONGEST_ID,
    GivenPattern,
    Pattern,
    address_pattern_of,
    lookback_of,
    message_id_of,
    name_of,
    names_of,
    pattern_of,
    schema_of,
    yes_or_no,
)
from bide.waits.texts import LONGEST_NAME, is_line, is_name

if TYPE_CHECKING:
    from bide.clock import Instant

LONGEST_TITLE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


class Condition:
    """Something that a thread can wait for."""

    __slots__ = ()

    kind: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class After(Condition):
    """So much time has passed since the thread paused."""

    kind: ClassVar[str] = "after"

    ms: int

    def due_at(self, now: Instant) -> Instant:
        """Return when it is satisfied, if the thread pauses now."""
        return now + self.ms


@dataclass(frozen=True, slots=True)
class At(Condition):
    """A moment has come."""

    kind: ClassVar[str] = "at"

    instant: Instant

    def due_at(self, now: Instant) -> Instant:
        """Return the moment, whenever the thread pauses."""
        return self.instant

    @property
    def when(self) -> datetime:
        """The moment as a datetime in UTC."""
        return _EPOCH + timedelta(milliseconds=self.instant)


@dataclass(frozen=True, slots=True)
class Email(Condition):
    """A mail has come in."""

    kind: ClassVar[str] = "email"

    from_: Pattern | None = None
    to: Pattern | None = None
    subject: Pattern | None = None
    body: Pattern | None = None
    in_reply_to: str | None = None
    mailbox: str | None = None
    lookback: int = 0
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Webhook(Condition):
    """A webhook was called."""

    kind: ClassVar[str] = "webhook"

    name: str
    schema: dict[str, Any] | None = None
    match: dict[str, Any] | None = None
    lookback: int = 0
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Event(Condition):
    """An event was delivered."""

    kind: ClassVar[str] = "event"

    name: str
    match: dict[str, Any] | None = None
    lookback: int = 0
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Approval(Condition):
    """A person has decided."""

    kind: ClassVar[str] = "approval"

    title: str = ""
    options: tuple[str, ...] = ("approve", "reject")
    assignees: tuple[str, ...] = ()
    form: dict[str, Any] | None = None
    """What else the person fills in, as a JSON Schema."""
    shape: object = field(default=None, compare=False, repr=False)
    """The form as it was given, maybe a type. It is not stored."""


@dataclass(frozen=True, slots=True)
class Child(Condition):
    """A child thread has ended."""

    kind: ClassVar[str] = "child"

    thread_id: str


# --- times ------------------------------------------------------------------------------------------------------------


def after(duration: Duration) -> After:
    """Wait for so much time: `after("2h30m")`, a timedelta, or seconds. It counts from the moment of the pause."""
    return After(milliseconds(duration, "after"))


def at(moment: datetime | str) -> At:
    """Wait for a moment: a datetime with its zone, or an ISO text with its offset such as "2026-01-31T09:30+01:00"."""
    given: object = moment
    if isinstance(given, str) and len(given) <= LONGEST_NAME:
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise _no_moment(moment) from None
    if not isinstance(given, datetime) or given.utcoffset() is None:
        raise _no_moment(moment)
    # Rounded up: nothing wakes before the moment that was said.
    return At(checked_instant(-((_EPOCH - given) // timedelta(milliseconds=1))))


def checked_instant(instant: int) -> int:
    """Return an instant that a calendar has."""
    if not _FIRST <= instant <= _LAST:
        raise InterruptError("at() was given a moment outside of the years 1 to 9999 in UTC. Give another one.")
    return instant


def _no_moment(moment: object) -> InterruptError:
    return InterruptError(
        f"at({moment!r}) is no moment. Give a datetime with its zone, such as datetime(2026, 1, 31, 9, 30, "
        f"tzinfo=ZoneInfo('Europe/Berlin')), or an ISO text with its offset, '2026-01-31T09:30:00+01:00'. Without a "
        f"zone nobody can say when it is; for a length of time use after('2h')."
    )


# --- facts from outside -----------------------------------------------------------------------------------------------


def email(
    from_: GivenPattern | None = None,
    to: GivenPattern | None = None,
    subject: GivenPattern | None = None,
    body: GivenPattern | None = None,
    in_reply_to: str | None = None,
    mailbox: str | None = None,
    lookback: Duration | None = "24h",
    exclusive: bool = False,
) -> Email:
    """Wait for a mail that fits all that is given: `email(from_="*@example.org", subject="Re: *")`.

    A text is a glob, `regex("…")` or a compiled pattern a regular expression. `to` is anybody in To or Cc;
    `in_reply_to` is the Message-ID of a mail that this one answers. A mail that came up to `lookback` before the pause
    counts too. With `exclusive` a mail wakes the first thread that waits for it, and no other.
    """
    if all(given is None for given in (from_, to, subject, body, in_reply_to)):
        raise InterruptError(
            "email() says nothing about the mail, so any mail would wake the thread. Give from_, to, subject, body or "
            "in_reply_to; subject='*' if any mail is meant."
        )
    if mailbox is not None and not is_name(mailbox):
        raise InterruptError(f"email(mailbox={mailbox!r}) names no mailbox. Give its name, one short line of text.")
    return Email(
        from_=address_pattern_of(from_, "from_"),
        to=address_pattern_of(to, "to"),
        subject=pattern_of(subject, "subject"),
        body=pattern_of(body, "body"),
        in_reply_to=None if in_reply_to is None else message_id_of(in_reply_to),
        mailbox=mailbox,
        lookback=lookback_of(lookback),
        exclusive=yes_or_no(exclusive),
    )


def webhook(
    name: str,
    schema: object = None,
    match: Mapping[str, Any] | None = None,
    lookback: Duration | None = "24h",
    exclusive: bool = False,
) -> Webhook:
    """Wait for a call of this webhook whose payload fits `schema`, a JSON Schema or a type, and holds `match`."""
    return Webhook(
        name=name_of(name, "webhook"),
        schema=None if schema is None else schema_of(schema),
        match=None if match is None else checked_match(match),
        lookback=lookback_of(lookback),
        exclusive=yes_or_no(exclusive),
    )


def event(
    name: str, match: Mapping[str, Any] | None = None, lookback: Duration | None = "24h", exclusive: bool = False
) -> Event:
    """Wait for an event of this name whose payload holds `match`: `event("paid", match={"order": "A-17"})`."""
    return Event(
        name=name_of(name, "event"),
        match=None if match is None else checked_match(match),
        lookback=lookback_of(lookback),
        exclusive=yes_or_no(exclusive),
    )


def approval(
    title: str = "",
    options: Iterable[str] = ("approve", "reject"),
    assignees: Iterable[str] = (),
    form: object = None,
) -> Approval:
    """Wait for a person's decision: one of `options`, and with `form` (a type or JSON Schema) what else to fill in.

    What an answer looks like is told by `answer_schema`.
    """
    if not is_line(title, LONGEST_TITLE):
        raise InterruptError(f"approval(title=…) must be one line of at most {LONGEST_TITLE} characters.")
    chosen, people = names_of(options, "options"), names_of(assignees, "assignees")
    if not chosen and form is None:
        raise InterruptError("approval(options=()) leaves nothing to answer with. Give options, or a form, or both.")
    return Approval(title, chosen, people, None if form is None else schema_of(form), form)


def child(handle: object) -> Child:
    """Wait for the end of a child thread: what `spawn` returned, or the id of its thread."""
    thread_id: object = getattr(handle, "thread_id", handle)
    if type(thread_id) is int:
        thread_id = str(thread_id)
    if not isinstance(thread_id, str) or not is_name(thread_id, LONGEST_ID):
        raise InterruptError(f"child({handle!r}) names no thread. Give what spawn() returned, or the id of a thread.")
    return Child(thread_id)


def checked(condition: object) -> Condition:
    """Return a condition, or raise InterruptError when it is none."""
    if isinstance(condition, Condition):
        return condition
    hint = "Use after(), at(), email(), webhook(), event(), approval(), child(), any_of(), all_of() or quorum()."
    if callable(condition):
        hint = f"Call it: {getattr(condition, '__name__', 'it')}(…)."
    raise InterruptError(f"{condition!r:.100} is no condition that could be waited for. {hint}")
