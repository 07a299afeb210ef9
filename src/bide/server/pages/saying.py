"""What is said at the top of a page after something was done: a code in the address, and never words from there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from bide.errors import UnknownInterruptError
from bide.runtime import Bide
from bide.runtime.views import Wait
from bide.server.caller import Caller
from bide.server.pages.cards import card_of
from bide.server.pages.places import thread_place
from bide.server.pages.words import ago, in_line
from bide.waits.wake import Wake

GOOD, BAD = "good", "bad"


@dataclass(frozen=True, slots=True)
class Flash:
    """A sentence at the top of a page."""

    tone: str
    text: str
    about: str = ""
    link: str = ""


_SAID = {
    "resumed": (GOOD, "Answered. The thread goes on."),
    "counted": (GOOD, "Counted. Others are still asked."),
    "again": (GOOD, "This answer was recorded before, and counts once."),
    "withdrawn": (GOOD, "The question was withdrawn. Its node decides what comes of that."),
    "cancelled": (GOOD, "The thread was cancelled."),
    "retried": (GOOD, "The thread goes on; only what did not finish runs again."),
    "released": (GOOD, "The thread is back in service."),
    "started": (GOOD, "Started. A worker takes it from here."),
    "extend": (GOOD, "The deadline was moved."),
    "reassign": (GOOD, "Others are asked now."),
    "snooze": (GOOD, "Noted. Its deadline stays what it is."),
    "scheduled": (GOOD, "The schedule was changed."),
    "unlinked": (GOOD, "The link decides nothing any more."),
    "over": (BAD, "It was over already, and nothing was changed."),
}


def address(place: str, said: str, **more: str) -> str:
    """Return where to go on, with what is to be said there."""
    return f"{place}{'&' if '?' in place else '?'}{urlencode({'said': said, **more})}"


def flash_of(app: Bide, caller: Caller, said: str | None, wait_id: str | None = None) -> Flash | None:
    """Return what was done, for a code that is known; of a wait, also which one."""
    if said not in _SAID:
        return None
    tone, text = _SAID[said]
    wait = None if not wait_id else _own_wait(app, caller, wait_id)
    if wait is None:
        return Flash(tone, text)
    return Flash(tone, text, card_of(wait, wait.created_at).name, thread_place(wait.thread_id))


def _own_wait(app: Bide, caller: Caller, wait_id: str) -> Wait | None:
    try:
        found = app.wait(wait_id)
    except UnknownInterruptError:
        return None
    return found if app.store.owner_of(found.thread_id) == caller.owner else None


def who_was_first(wait: Wait, now: datetime) -> Flash:
    """Say how a wait was settled, to whoever comes later."""
    who = wait.answered_by or "Somebody"
    when = ago(wait.answered_at, now) if wait.answered_at else "before"
    how = {
        "answered": f"{_subject(wait, who)} {_said(wait.answer)} {when}",
        "expired": f"The time was over {when}",
        "cancelled": f"The question was withdrawn{f' by {wait.answered_by}' if wait.answered_by else ''} {when}",
    }.get(wait.status.value, f"It was {wait.status.value} {when}")
    return Flash(BAD, f"{how}. Your answer was not recorded.")


def _subject(wait: Wait, who: str) -> str:
    return who if wait.answered_by or wait.answered_via in (None, "wake", "inbox") else f"A fact ({wait.answered_via})"


def _said(answer: Any) -> str:
    value = answer.value if isinstance(answer, Wake) else answer
    value = value.get("decision", value) if isinstance(value, dict) else value
    if value in ("approve", "reject") or isinstance(value, bool):
        return "approved" if value in ("approve", True) else "rejected"
    return f"answered “{in_line(value, 60)}”"
