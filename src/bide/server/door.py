"""Where callers come in: what belongs to another owner does not exist, whichever way it is asked for."""

from __future__ import annotations

import re

from bide.runtime import Bide
from bide.server.caller import Caller
from bide.server.problems import Problem, not_found
from bide.store.queue_rows import WaitView

_ID = re.compile(r"[A-Za-z0-9_.:@-]{1,128}")


def is_id(given: str) -> bool:
    """Tell whether a text could be an id: only those are looked up."""
    return _ID.fullmatch(given) is not None


def checked_id(what: str, given: str) -> str:
    """Refuse an id that no client would make on purpose; it is going to be part of addresses and logs."""
    if not is_id(given):
        raise Problem(422, f"{what} {given[:80]!r} is no id: use 1 to 128 letters, digits and _ . : @ -")
    return given


def need(caller: Caller, scope: str) -> None:
    """Refuse a caller whose key is not good for this."""
    if not caller.may(scope):
        raise Problem(403, f"This key may not do that: it needs the scope {scope!r}.")


def owned_thread(app: Bide, caller: Caller, thread_id: str) -> str:
    """Return the id of a thread that is the caller's."""
    owner = app.store.owner_of(thread_id) if may_be_kept(thread_id) else None
    if owner is None or owner != caller.owner:
        raise not_found("thread", thread_id)
    return thread_id


def owned_wait(app: Bide, caller: Caller, wait_id: str) -> WaitView:
    """Return a wait that is the caller's."""
    row = app.store.wait(wait_id) if may_be_kept(wait_id) else None
    if row is None or row.owner != caller.owner:
        raise not_found("wait", wait_id)
    return row


def may_be_kept(text: str) -> bool:
    """Whether every database could hold a text: applications may give threads ids that no client would make."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text
