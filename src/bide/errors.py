"""Every error Bide raises, in one tree.

    BideError
    ├── GraphError                 the graph as written cannot run (found at compile)
    │   └── GraphChanged           the stored thread no longer fits the graph's code
    ├── InvalidUpdateError         a node, an input or an edit wrote something the state cannot take
    ├── EmptyInputError            there is nothing to run
    ├── GraphRecursionError        more steps than `recursion_limit` allows
    ├── ResumeError                the answer or the `None` does not fit what the thread waits for
    │   ├── NotWaitingError        the thread waits for nothing
    │   ├── UnknownThreadError     there is no such thread
    │   ├── UnknownCheckpointError there is no such checkpoint
    │   ├── UnknownInterruptError  no open question has this id
    │   ├── AmbiguousResumeError   one answer, several open questions
    │   ├── InvalidAnswerError     the answer does not fit the question's schema
    │   ├── WaitExpiredError       the answer came after the deadline
    │   └── ThreadPausedError      plain input on a thread that waits for an answer
    ├── InterruptError             `interrupt()` was used where it cannot pause
    │   └── InterruptSwallowedError  the node caught the pause and went on
    ├── DeliveryError              what was delivered is no fact that could be stored
    ├── WaitExpired                inside a node: nobody answered in time
    ├── WaitCancelled              inside a node: its question was withdrawn
    ├── ReplayMismatchError        the node did something else than when it was first run
    ├── ScheduleError              a schedule that cannot be meant, or is not there
    ├── SettingsError              a server was set up in a way that cannot be meant
    ├── UnknownCursorError         a place in the feed of events that nobody was ever told
    ├── StepError                  a `step()` was used wrongly, or cannot be kept
    ├── NodeTimeoutError           a node took longer than its `timeout`
    ├── NodeFailure                a node's error as it was written down, when its own object is gone
    ├── GraphDrained               the run was asked to stop, and did between two steps
    ├── GraphInterrupt             only with `raise_on_interrupt=True`: the pause, as an exception
    ├── CodecError                 a value cannot be stored, or stored bytes cannot be read
    │   ├── UnstorableValueError   refused when written, with the path of the value
    │   │   └── ValueTooLargeError refused for its size alone
    │   ├── UnknownTypeError       the bytes name a type that nobody registered
    │   └── CorruptDataError       the bytes are not what was written; names the last good checkpoint
    │       └── UnknownKeyError    they are encrypted with a key that was not given
    └── StoreError                 the database said no
        ├── ConflictError          somebody else was faster; nothing was written
        │   ├── ThreadBusyError    another run is live on this thread
        │   ├── AlreadyAnsweredError  the question has its answer already
        │   ├── WaitChangedError   the wait is not as it was when it was read
        │   ├── IdempotencyError   a key was used before, for something else
        │   ├── LeaseLostError     another worker has taken this run over
        │   ├── ThreadDeletedError the thread was deleted since it was read
        │   └── ThreadExistsError  a thread is to be imported under an id that is taken
        ├── StoreBusyError         another process held the database for too long
        ├── EncryptionError        a key that is none, or the extra is missing
        ├── RetentionError         what shall go was said in a way that cannot be meant
        ├── StoreFormatError       not a Bide database, damaged, or from a newer version
        │   └── ExportFormatError  the same of the file of an exported thread
        └── StoreUnavailableError  cannot be opened or written: path, permissions, disk full

Messages say what happened, why it matters, and what to do next. The signal that unwinds a paused node is
not here: it is a `BaseException` (see `bide.engine.context`), so that `except Exception` cannot swallow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class BideError(Exception):
    """The base of every error that Bide raises on purpose."""


class GraphError(BideError, ValueError):
    """The graph cannot run as it is written; found at compile."""


class GraphChanged(GraphError):
    """A stored thread no longer fits the code of its graph."""


class InvalidUpdateError(BideError, ValueError):
    """A write that the state cannot take."""

    task_ids: tuple[str, ...] = ()
    """The tasks whose writes could not be applied, where that is known."""


class EmptyInputError(BideError, ValueError):
    """There is nothing to run."""


class GraphRecursionError(BideError, RecursionError):
    """The run took more steps than `recursion_limit` allows; its state is kept."""


class ResumeError(BideError, ValueError):
    """What was given does not fit what the thread waits for; nothing was written."""


class NotWaitingError(ResumeError):
    """The thread is not waiting for an answer."""


class UnknownThreadError(ResumeError, LookupError):
    """There is no thread with this id."""


class UnknownCheckpointError(ResumeError, LookupError):
    """There is no checkpoint with this id."""


class UnknownInterruptError(ResumeError, LookupError):
    """No open question has this id: it is unknown, answered, expired or cancelled."""

    def __init__(self, message: str, *, interrupt_ids: tuple[str, ...] = (), pending_ids: tuple[str, ...] = ()):
        super().__init__(message)
        self.interrupt_ids = interrupt_ids
        self.pending_ids = pending_ids


class AmbiguousResumeError(ResumeError):
    """One answer was given, and several questions are open."""


class InvalidAnswerError(ResumeError):
    """The answer does not fit the question's schema; the question stays open."""

    def __init__(self, message: str, *, misfits: tuple[Any, ...] = ()):
        super().__init__(message)
        self.misfits = misfits
        """Each way in which it does not fit, with its place (`bide.shape.report.Problem`)."""


class WaitExpiredError(ResumeError):
    """The answer came after the deadline of the wait; nothing was written."""

    def __init__(self, message: str, *, outcome: Any = None):
        super().__init__(message)
        self.outcome = outcome
        """How the wait was settled."""


class ThreadPausedError(ResumeError):
    """Plain input was given to a thread that waits for an answer."""


class InterruptError(BideError, RuntimeError):
    """`interrupt()` was called where nothing can be paused."""


class InterruptSwallowedError(InterruptError):
    """A node caught the signal of its own `interrupt()` and went on."""


class WaitExpired(BideError, TimeoutError):
    """Raised inside a node: nobody answered in time, and no default was given. Catch it there."""

    def __init__(self, message: str, *, wait_id: str = ""):
        super().__init__(message)
        self.wait_id = wait_id


class WaitCancelled(BideError):
    """Raised inside a node: its question was withdrawn. Catch it there."""

    def __init__(self, message: str, *, wait_id: str = ""):
        super().__init__(message)
        self.wait_id = wait_id


class DeliveryError(BideError, ValueError):
    """What was delivered is no fact that could be stored; nothing was written."""


class ReplayMismatchError(BideError, RuntimeError):
    """On replay the node did something else than what its journal holds."""


class ScheduleError(BideError, ValueError):
    """A schedule was said in a way that cannot be meant, or there is none; nothing was changed."""


class SettingsError(BideError, ValueError):
    """A server was set up in a way that cannot be meant; nothing was started."""


class UnknownCursorError(BideError, ValueError):
    """A place in the feed of events cannot be read, or was never told."""


class StepError(BideError, RuntimeError):
    """A `step()` was used wrongly, or its result cannot be kept."""


class NodeTimeoutError(BideError, TimeoutError):
    """A node took longer than its timeout allows. It may be retried."""

    def __init__(self, message: str, *, node: str = "", kind: str = "run"):
        super().__init__(message)
        self.node = node
        self.kind = kind


class NodeFailure(BideError):
    """A node's error as its journal holds it: the kind and the text, after the process that raised it is gone."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind
        self.text = text


class GraphDrained(BideError):
    """The run was asked to stop and did, between two steps. It is saved, and goes on with `invoke(None)`."""


class GraphInterrupt(BideError):
    """The run paused, and the caller asked for an exception: `raise_on_interrupt=True`."""

    def __init__(self, *, node: str, state: Any, value: Any, next: tuple[str, ...], interrupts: tuple[Any, ...]):
        asks = f"Node {node!r} asks: {value!r}. The thread is saved; answer with invoke(Command(resume=…), config)."
        stops = f"The run stopped at node {node!r}. The thread is saved; go on with invoke(None, config)."
        super().__init__(asks if interrupts else stops)
        self.node = node
        self.state = state
        self.value = value
        self.next = next
        self.interrupts = interrupts


class CodecError(BideError, TypeError):
    """A value and its stored bytes do not fit each other."""


class UnstorableValueError(CodecError):
    """The value would not come back equal, so it was not written."""

    def __init__(self, message: str, *, path: str = ""):
        super().__init__(message)
        self.path = path


class ValueTooLargeError(UnstorableValueError):
    """The value has more bytes than the store takes; nothing was written."""


class UnknownTypeError(CodecError):
    """Stored bytes name a type that is not registered."""


class CorruptDataError(CodecError):
    """Stored bytes are damaged: they are not what was written."""

    last_good: str | None = None
    """The newest checkpoint of the thread that can still be read, where there is one."""


class UnknownKeyError(CorruptDataError):
    """Stored bytes were encrypted with a key that this store was not given; with that key they can be read."""

    def __init__(self, message: str, *, key_id: str = ""):
        super().__init__(message)
        self.key_id = key_id


class StoreError(BideError):
    """The store could not do what was asked."""


class EncryptionError(StoreError, ValueError):
    """Encryption was asked for in a way that cannot work: a key that is none, or a package that is missing."""


class RetentionError(StoreError, ValueError):
    """What shall go was said in a way that cannot be meant; nothing was deleted."""


class ConflictError(StoreError):
    """Somebody else was faster; nothing was written."""


class ThreadBusyError(ConflictError):
    """Another run is live on this thread."""


class AlreadyAnsweredError(ConflictError):
    """The question has its answer already; an answer stands."""

    def __init__(self, message: str, *, outcome: Any = None):
        super().__init__(message)
        self.outcome = outcome
        """Who was first, when and through what, where that is known."""


class WaitChangedError(ConflictError):
    """The wait has changed since it was read; nothing was written."""


class IdempotencyError(ConflictError):
    """A key was used before, for something else; nothing was done."""


class LeaseLostError(ConflictError):
    """Another worker has taken this run over; nothing was written."""


class ThreadDeletedError(ConflictError):
    """The thread was deleted since it was read; nothing was written, and it stays deleted."""


class ThreadExistsError(ConflictError):
    """There is a thread with this id already; nothing was imported."""


class StoreBusyError(StoreError):
    """Another process held the database for too long."""


class StoreFormatError(StoreError):
    """The file is not a Bide database, is damaged, or was written by a newer version."""


class ExportFormatError(StoreFormatError):
    """The file is no export of a thread, is damaged, or was written by a newer version; nothing was imported."""


class StoreUnavailableError(StoreError):
    """The database cannot be opened or written."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint at the known name that was probably meant, with a space before it; "" when none is near."""
    from difflib import get_close_matches  # only those who mistype pay for it

    close = get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
