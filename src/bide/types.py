"""The values that users and layers hand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

START: Final = "__start__"
"""The place before the first node."""

END: Final = "__end__"
"""The place after the last node."""

INTERRUPT: Final = "__interrupt__"
"""The key under which results and streams carry open questions."""


class _Unset:
    """The absence of a value, where `None` is a value."""

    _only: ClassVar[_Unset | None] = None

    def __new__(cls) -> _Unset:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = _Unset()

StreamWriter = Callable[[Any], None]
StreamMode = Literal["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug"]
OnPaused = Literal["error", "resume", "restart"]
Durability = Literal["sync", "async", "exit"]
Effect = Literal["idempotent", "once", "tx"]


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """How long one attempt of a node may take: in all, or since it was last heard of. Seconds, or a `timedelta`.

    A node is heard of when it writes to the stream, makes a step, or calls `runtime.heartbeat()`; with
    `refresh_on="heartbeat"` only the last counts.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"


Timeout = float | timedelta | TimeoutPolicy


@dataclass(frozen=True, slots=True)
class Send:
    """Run `node` next with `arg` as its state, beside whatever else runs; `timeout` counts for this one task."""

    node: str
    arg: Any
    timeout: Timeout | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace the value of a state key, past its reducer."""

    value: Any


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One open question of a paused thread.

    Returned from a node, `Interrupt(value)` finishes that node and pauses after it.
    """

    value: Any
    id: str = ""
    response_schema: Any = field(default=None, compare=False, repr=False)
    key: str | None = field(default=None, compare=False, repr=False)
    node: str | None = field(default=None, compare=False, repr=False)


NodeT = TypeVar("NodeT")


@dataclass(frozen=True, slots=True)
class Command(Generic[NodeT]):
    """Say what happens next: answer questions, change state, go somewhere.

    `resume` is one answer, or a map of question id to answer. `None` is an answer like any other.
    """

    PARENT: ClassVar[str] = "__parent__"

    update: Any = None
    goto: str | Send | Sequence[str | Send] = ()
    resume: Any = UNSET
    graph: str | None = None

    @property
    def pairs(self) -> Any:
        """The update; a list of `(key, value)` pairs is read as a dict."""
        given = self.update
        is_pairs = isinstance(given, (list, tuple)) and all(isinstance(one, tuple) and len(one) == 2 for one in given)
        return dict(given) if given and is_pairs else given

    @property
    def targets(self) -> tuple[str | Send, ...]:
        """The places in `goto`, always as a tuple."""
        several = isinstance(self.goto, (list, tuple, set))
        return tuple(self.goto) if several else (self.goto,)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True, slots=True)
class NodeError:
    """What an `error_handler` is told: which node failed for good, and with what."""

    node: str
    error: Exception


ValueT = TypeVar("ValueT")
SavedT = TypeVar("SavedT")


@dataclass(frozen=True, slots=True)
class FinalValue(Generic[ValueT, SavedT]):
    """What an `@entrypoint` returns when the caller gets one value and the next call finds another."""

    value: ValueT
    save: SavedT


class RunControl:
    """A handle on a run under way: give it to `invoke(control=…)`, and ask it to stop from another thread."""

    def __init__(self) -> None:
        self.is_draining = False
        self.reason: str | None = None

    def request_drain(self, reason: str | None = None) -> None:
        """Let the run stop before its next step. What is running finishes and is saved; `invoke(None)` goes on."""
        self.reason = reason
        self.is_draining = True

    @property
    def drain_requested(self) -> bool:
        """Whether somebody has asked the run to stop."""
        return self.is_draining


class RunStatus(StrEnum):
    """Where a run stands. `READY`, `RUNNING`, `WAITING`, `BLOCKED` and `DEAD` are live: one such run per thread."""

    QUEUED = "queued"
    """Behind another run of its thread, or not due yet."""
    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    DEAD = "dead"
    """Out of service, because its workers were lost again and again; until somebody releases it."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody drives it, or is about to: it is over, or somebody else must do something first."""
        return self not in (RunStatus.QUEUED, RunStatus.READY, RunStatus.RUNNING)


class WaitStatus(StrEnum):
    """Where a wait stands."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class TaskSnapshot(NamedTuple):
    """One node of the step that a thread stands before, or is in."""

    id: str
    name: str
    path: tuple[Any, ...] = ()
    error: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any = None


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`: values, and the node that is taken to have returned them."""

    values: Any
    as_node: str | None = None
    task_id: str | None = None


class StateSnapshot(NamedTuple):
    """A thread at one checkpoint."""

    values: Any
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: dict[str, Any] | None
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[TaskSnapshot, ...]
    interrupts: tuple[Interrupt, ...]


ContextT = TypeVar("ContextT")


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Runtime(Generic[ContextT]):
    """What a node may ask about the run that it is part of."""

    thread_id: str | None
    run_id: str | None
    task_id: str
    node: str
    step: int
    config: Mapping[str, Any]
    stream_writer: StreamWriter
    context: ContextT
    resume_value: Any = None
    """The answer to the `Interrupt` that the node before this one returned; node → answer, when several did."""
    store: Any = None
    """The long-term store, in the same database as the thread."""
    heartbeat: Callable[[], None] = _nothing
    """Call it to say that the node is alive: an idle timeout begins anew."""
    attempt: int = 1
    """Which attempt of the node this is, counted over crashes."""
    previous: Any = None
    """What the last call of an `@entrypoint` on this thread returned or saved."""
    control: RunControl | None = None
    """The handle by which the run may be asked to stop."""
