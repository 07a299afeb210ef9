"""The values that users and layers hand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
StreamMode = Literal["values", "updates", "custom", "tasks", "checkpoints", "debug"]
OnPaused = Literal["error", "resume", "restart"]
Durability = Literal["sync", "async", "exit"]
Effect = Literal["idempotent", "once", "tx"]


@dataclass(frozen=True, slots=True)
class Send:
    """Run `node` next with `arg` as its state, beside whatever else runs."""

    node: str
    arg: Any


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


@dataclass(frozen=True, slots=True)
class Command:
    """Say what happens next: answer questions, change state, go somewhere.

    `resume` is one answer, or a map of question id to answer. `None` is an answer like any other.
    """

    PARENT: ClassVar[str] = "__parent__"

    update: Any = None
    goto: str | Send | Sequence[str | Send] = ()
    resume: Any = UNSET
    graph: str | None = None

    @property
    def targets(self) -> tuple[str | Send, ...]:
        """The places in `goto`, always as a tuple."""
        several = isinstance(self.goto, (list, tuple, set))
        return tuple(self.goto) if several else (self.goto,)  # type: ignore[arg-type, return-value]


class RunStatus(StrEnum):
    """Where a run stands. `READY`, `RUNNING`, `WAITING` and `BLOCKED` are live: one such run per thread."""

    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


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
