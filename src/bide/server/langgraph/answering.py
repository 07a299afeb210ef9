"""Answers that come with a run: who may give them, and the line that each attempt leaves in the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bide.errors import AlreadyAnsweredError, BideError, WaitExpiredError
from bide.server.auth.audit import audit
from bide.server.caller import RESOLVE, Caller
from bide.server.context import Context
from bide.server.door import need
from bide.server.problems import Problem
from bide.types import UNSET, Command


@contextmanager
def answering(ctx: Context, caller: Caller, thread_id: str | None, given: Any) -> Iterator[None]:
    """Around a start that may bring answers: they need the scope for it, and are audited, whatever comes of them."""
    if not isinstance(given, Command) or given.resume is UNSET or thread_id is None:
        yield
        return
    need(caller, RESOLVE)
    subjects = _subjects(ctx, thread_id, given.resume)
    try:
        yield
    except (AlreadyAnsweredError, WaitExpiredError):
        _note(ctx, caller, thread_id, subjects, "late")
        raise
    except (BideError, Problem) as problem:
        _note(ctx, caller, thread_id, subjects, "refused", error=type(problem).__name__)
        raise
    _note(ctx, caller, thread_id, subjects, "resumed")


def _subjects(ctx: Context, thread_id: str, resume: Any) -> list[str]:
    """Name what is answered: by its id, or the only question that is open; else the thread, for lack of anything."""
    open_ = [wait.id for wait in ctx.app.waits(thread_id=thread_id)]
    named = [str(key) for key in resume] if isinstance(resume, dict) and all(key in open_ for key in resume) else []
    return named or (open_ if len(open_) == 1 else [thread_id])


def _note(ctx: Context, caller: Caller, thread_id: str, subjects: list[str], outcome: str, **details: Any) -> None:
    for subject in subjects:
        audit(ctx, caller, "wait.answer", subject, thread_id, outcome, via="run", **details)
