"""How a command ends: an exit code that scripts can use, a sentence, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from bide import errors


class Exit(IntEnum):
    """What a script is told."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    """Somebody was first: answered already, busy, not waiting any more."""
    INVALID = 5
    """What was given does not fit what is asked for."""
    UNAVAILABLE = 6
    """The store cannot be opened, read or written."""
    INTERRUPTED = 130


class CliError(Exception):
    """What the command line itself finds wrong."""

    def __init__(self, message: str, code: Exit = Exit.FAILED, *, hints: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.hints = hints


_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    # The first that fits counts: what is more special comes before its base.
    (errors.UnknownThreadError, Exit.NOT_FOUND),
    (errors.UnknownCheckpointError, Exit.NOT_FOUND),
    (errors.UnknownInterruptError, Exit.NOT_FOUND),
    (errors.AmbiguousResumeError, Exit.USAGE),
    (errors.RetentionError, Exit.USAGE),
    (errors.InvalidAnswerError, Exit.INVALID),
    (errors.DeliveryError, Exit.INVALID),
    (errors.ExportFormatError, Exit.INVALID),
    (errors.InvalidUpdateError, Exit.INVALID),
    (errors.EmptyInputError, Exit.INVALID),
    (errors.UnstorableValueError, Exit.INVALID),
    (errors.InterruptError, Exit.INVALID),
    (errors.ResumeError, Exit.CONFLICT),
    (errors.ConflictError, Exit.CONFLICT),
    (errors.StoreUnavailableError, Exit.UNAVAILABLE),
    (errors.StoreBusyError, Exit.UNAVAILABLE),
    (errors.StoreFormatError, Exit.UNAVAILABLE),
    (errors.EncryptionError, Exit.UNAVAILABLE),
    (errors.SettingsError, Exit.USAGE),
    (errors.GraphError, Exit.FAILED),
    # Whatever else was said in a way that cannot be meant.
    (ValueError, Exit.INVALID),
)


def code_of(problem: Exception) -> Exit:
    """Return the exit code of an error."""
    if isinstance(problem, CliError):
        return problem.code
    return next((code for kind, code in _CODES if isinstance(problem, kind)), Exit.FAILED)


def hints_of(problem: Exception, known: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return what to type next, with the ids that are known by now: of a `thread`, of a `wait`."""
    if isinstance(problem, CliError):
        return problem.hints
    found = next((hints for kind, hints in _HINTS if isinstance(problem, kind)), ())
    names = {"thread": "THREAD", "wait": "WAIT", **(known or {})}
    thread_id = _thread_of(problem)
    if thread_id is not None:
        names["thread"] = thread_id
    return tuple(hint.replace("{thread}", names["thread"]).replace("{wait}", names["wait"]) for hint in found)


_HINTS: tuple[tuple[type[Exception], tuple[str, ...]], ...] = (
    (errors.UnknownThreadError, ("bide threads",)),
    (errors.UnknownCheckpointError, ("bide history {thread}",)),
    (errors.UnknownInterruptError, ("bide waits",)),
    (errors.AmbiguousResumeError, ("bide waits",)),
    (errors.InvalidAnswerError, ("bide answer {wait}   (without a value, it shows what is asked)",)),
    (errors.WaitExpiredError, ("bide show {thread}",)),
    (
        errors.AlreadyAnsweredError,
        ("bide show {thread}", "bide fork {thread} --answer VALUE   (to answer differently)"),
    ),
    (errors.NotWaitingError, ("bide show {thread}",)),
    (errors.ThreadBusyError, ("bide show {thread}", "bide start … --if-busy enqueue")),
    (errors.ThreadPausedError, ("bide waits",)),
    (errors.ThreadExistsError, ("bide import FILE --as ANOTHER_ID", "bide import FILE --replace")),
    (errors.IdempotencyError, ("bide start … --key ANOTHER_KEY",)),
    (errors.EncryptionError, ("bide … --app shop.py:app   (an application whose store has the keys)",)),
    (errors.ExportFormatError, ("bide export THREAD",)),
    (errors.StoreFormatError, ("bide doctor",)),
    (errors.StoreBusyError, ("bide doctor",)),
    (errors.StoreUnavailableError, ("bide doctor --store URL",)),
    (errors.GraphChanged, ("bide replay-check",)),
    (errors.ReplayMismatchError, ("bide replay-check",)),
)


def _thread_of(problem: Exception) -> str | None:
    outcome: Any = getattr(problem, "outcome", None)
    return getattr(outcome, "thread_id", None)


def document_of(problem: Exception, known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an error as `--json` shows it."""
    code = code_of(problem)
    told = {"kind": code.name.lower(), "exit_code": int(code), "type": type(problem).__name__, "message": str(problem)}
    return {"error": {**told, "next": list(hints_of(problem, known))}}
