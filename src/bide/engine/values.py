"""The values that flow through the engine: tasks, outcomes, checkpoints, questions, and the effects themselves.

They are named tuples, not frozen dataclasses: several are made per step, and a tuple costs a third of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bide.types import UNSET, Interrupt, RunStatus, Send, WaitStatus


class Task(NamedTuple):
    """One node in one step. The id is stable for as long as the task is planned."""

    id: str
    node: str
    arg: Any = UNSET
    """The state of a `Send`; UNSET for a node that reads the graph's state."""


class Origin(NamedTuple):
    """A finished task and where it explicitly led: what the next tasks came from."""

    task_id: str
    node: str
    goto: tuple[str | Send, ...] = ()


class Question(NamedTuple):
    """What a task asks, as it is stored in a wait."""

    id: str
    task_id: str
    node: str
    key: str
    kind: str
    """`call`: interrupt() inside a node · `return`: after it · `before`, `after`: a static pause."""
    value: Any = None
    digest: str = ""
    schema: Mapping[str, Any] | None = None
    update: Any = None
    refused: Exception | None = None
    """Why the answer it had does not fit; the question is open again."""

    @property
    def is_static(self) -> bool:
        """Whether nobody asked: the graph was told to stop here."""
        return self.kind in ("before", "after")

    def shown(self) -> Interrupt:
        """Return the question as the caller sees it."""
        key = None if self.key.startswith("#") else self.key
        return Interrupt(self.value, self.id, response_schema=self.schema, key=key, node=self.node)


class Wait(NamedTuple):
    """A stored question and, perhaps, its answer."""

    question: Question
    status: WaitStatus
    answer: Any = UNSET
    answered_at: int | None = None


class Outcome(NamedTuple):
    """What became of a task: it finished, it asks, or it failed."""

    task: Task
    writes: tuple[tuple[str, Any], ...] = ()
    goto: tuple[str | Send, ...] = ()
    """Where the node said to go (`Command(goto=…)`)."""
    routes: tuple[str | Send, ...] = ()
    """Where its conditional edges lead."""
    asks: tuple[Question, ...] = ()
    """Open questions of a task that has not finished."""
    returns: tuple[Question, ...] = ()
    """Questions of a task that has finished by returning them."""
    error: Exception | None = None
    is_skipped: bool = False
    """Whether it was never begun, because a sibling had failed."""

    @property
    def is_done(self) -> bool:
        """Whether the task needs not run again."""
        return self.error is None and not self.asks and not self.is_skipped


class Checkpoint(NamedTuple):
    """A thread after a step: its values, and the tasks that come next."""

    seq: int
    parent: int | None
    step: int
    source: str
    values: Mapping[str, Any]
    tasks: tuple[Task, ...]
    origins: tuple[Origin, ...]
    fingerprint: str = ""
    resume_value: Any = None
    extras: frozenset[str] = frozenset()
    """Keys outside the graph's schema, brought in by an edit."""
    created_at: int | None = None
    run_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    """What the caller of the run said about it."""

    @property
    def next(self) -> tuple[str, ...]:
        """The names of the nodes that come next."""
        return tuple(task.node for task in self.tasks)


class JournalEntry(NamedTuple):
    """A step that a task has made before: begun (`intent`) or finished (`done`)."""

    name: str
    digest: str
    is_done: bool
    value: Any = None


class RunInfo(NamedTuple):
    """The live run of a thread, as it was read."""

    id: str
    status: RunStatus
    epoch: int
    is_orphan: bool
    """Running, but its worker is gone."""


class Loaded(NamedTuple):
    """A thread as it was read, at one checkpoint."""

    uid: str | None
    head: int
    run: RunInfo | None
    checkpoint: Checkpoint | None
    results: Mapping[str, Outcome]
    """Task id → recorded result."""
    errors: Mapping[str, str]
    steps: Mapping[str, Mapping[str, JournalEntry]]
    waits: tuple[Wait, ...]
    thread_id: str = ""
    place: str = ""
    """Where it was looked for: the database."""

    @property
    def open_waits(self) -> tuple[Wait, ...]:
        """The waits that have no answer yet."""
        return tuple(wait for wait in self.waits if wait.status is WaitStatus.OPEN)


class Assignment(NamedTuple):
    """A task together with what it needs to run: values, answers, and its journal."""

    task: Task
    checkpoint: Checkpoint
    waits: tuple[Wait, ...] = ()
    steps: Mapping[str, JournalEntry] = {}
    routes_only: bool = False
    """Whether the node has run already, and only its conditional edges choose again."""


class Ending(NamedTuple):
    """How a run left its thread. The last thing that a driver yields."""

    checkpoint: Checkpoint
    asks: tuple[Question, ...]
    """Every open question, in task order; empty when the run is done."""
    finished: frozenset[str] = frozenset()
    """Ids of the tasks of this step that have finished already."""

    @property
    def next(self) -> tuple[str, ...]:
        """The nodes that have yet to run or to finish."""
        return tuple(task.node for task in self.checkpoint.tasks if task.id not in self.finished)

    @property
    def is_paused(self) -> bool:
        """Whether the thread waits for something."""
        return bool(self.asks)


# ── Effects: what the flow asks its driver to do ────────────────────────────────────────────────────────────────


class Load(NamedTuple):
    """Read the thread, at its head or at an older checkpoint."""

    seq: int | None = None


class Begun(NamedTuple):
    """The thread is ours: its identity, and the run that we hold."""

    thread_id: str | None
    uid: str
    run_id: str | None


class Begin(NamedTuple):
    """Take the thread: record the answers, write the first checkpoint, hold the lease. One transaction."""

    expected: Loaded
    checkpoint: Checkpoint | None
    """The checkpoint to write, or None when the run goes on at the head."""
    changed: frozenset[str] = frozenset()
    claim: RunInfo | None = None
    """The live run to go on with, or None to start a new one."""
    supersede: RunInfo | None = None
    """The live run that this one replaces."""
    answers: tuple[tuple[Question, Any], ...] = ()
    forget: bool = False
    """Whether the tasks planned before are dropped, with their journal."""


class Edit(NamedTuple):
    """Write one checkpoint without running anything (`update_state`)."""

    expected: Loaded
    checkpoint: Checkpoint
    changed: frozenset[str]
    forget: bool


class Start(NamedTuple):
    """Start these tasks."""

    assignments: tuple[Assignment, ...]


class Join(NamedTuple):
    """Wait for at least one started task; return every outcome there is by then."""


class Record(NamedTuple):
    """Save the results of finished tasks while their siblings still run."""

    outcomes: tuple[Outcome, ...]


class Commit(NamedTuple):
    """Save a transition of the run: a step, a pause, the end, a failure. One transaction."""

    checkpoint: Checkpoint
    changed: frozenset[str] | None
    """Keys written by this checkpoint; None when there is no new checkpoint."""
    status: RunStatus = RunStatus.RUNNING
    outcomes: tuple[Outcome, ...] = ()
    """What ran in this step: stored when the step is not over, told in the log when it is."""
    opens: tuple[Question, ...] = ()
    asks: tuple[Question, ...] = ()
    """Every question that is open after it, those asked before included."""
    is_over: bool = False
    """Whether the step is over: its journal and its waits are done with."""
    error: Exception | None = None


class Emit(NamedTuple):
    """Tell the reader of the stream that something happened: one of the kinds below, and what it was."""

    kind: str
    what: Any


VALUES, PAUSED, TASK, RESULT, SAVED, CUSTOM = "values", "paused", "task", "result", "saved", "custom"
