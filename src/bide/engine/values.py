"""The values that flow through the engine: tasks, outcomes, checkpoints, questions, and the effects themselves.

They are named tuples, not frozen dataclasses: several are made per step, and a tuple costs a third of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from bide.types import UNSET, Command, Interrupt, RunStatus, Send, WaitStatus
from bide.waits.needs import Needs


class Task(NamedTuple):
    """One node in one step. The id is stable for as long as the task is planned."""

    id: str
    node: str
    arg: Any = UNSET
    """The state of a `Send`; UNSET for a node that reads the graph's state."""
    timeout: Any = None
    """The time that a `Send` gives this one task; None leaves it to the node."""


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
    place: tuple[int, ...] = ()
    """For each `@task` on the way to it, as which call that one was made."""
    needs: Needs | None = None
    """What brings the answer, until when, and for whom; stored when it is asked."""

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
    up: tuple[Command[Any], ...] = ()
    """What the node told the graph around its own to do (`Command(graph=Command.PARENT)`)."""
    carried: tuple[Any, ...] = ()
    """Checkpoints of the graphs inside it, written down and waiting for the next commit."""
    is_cached: bool = False
    """Whether the node did not run: an earlier result was taken."""
    streamed: Set[str] = frozenset()
    """Ids of messages that were told while the node ran."""
    told: tuple[Emit, ...] = ()
    """What tasks that it started have to tell, when nobody listened while they ran."""
    is_value: bool = False
    """Whether it is what a function returned, and no update of a state."""

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
    ns: str = ""
    """Where it is kept: "" for the thread's own graph, else the place of the graph inside it."""
    prefix: str = ""
    """What the ids of its tasks begin with: the path of the task that this graph runs in, and a bar."""
    is_migrated: bool = False
    """Whether a hook has changed it since it was read, so that the next checkpoint writes all of it."""

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
    has_input: bool = False
    """Accepted, but not begun: what it is to run with is still in the database."""


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
    done: frozenset[str] = frozenset()
    """Ids of all tasks with a recorded result, those of graphs inside this one included."""
    failed: frozenset[str] = frozenset()
    """Ids of all tasks with a recorded error, at any depth."""
    parent: str | None = None
    """The thread that has spawned this one."""

    @property
    def open_waits(self) -> tuple[Wait, ...]:
        """The waits that have no answer yet."""
        return tuple(wait for wait in self.waits if wait.status is WaitStatus.OPEN)


class Assignment(NamedTuple):
    """A task together with what it needs to run: values, answers (also of tasks that it starts), and its journal."""

    task: Task
    checkpoint: Checkpoint
    waits: tuple[Wait, ...] = ()
    steps: Mapping[str, JournalEntry] = {}
    routes_only: bool = False
    """Whether the node has run already, and only its conditional edges choose again."""
    is_fresh: bool = True
    """Whether the task surely never ran before: then there is nothing to read of graphs inside it."""
    kin: Mapping[str, Mapping[str, JournalEntry]] = {}
    """The journals of tasks that its code has started (`@task`), by their ids."""


class Site(NamedTuple):
    """Where in the thread a graph inside a task stands."""

    ns: str
    """Where its checkpoints are kept."""
    prefix: str
    """What the ids of its tasks begin with."""
    base: int | None = None
    """The checkpoint in `ns` that it goes on from, when it keeps its state between calls."""
    is_fresh: bool = True
    """Whether nothing can have been saved here before."""
    ends_durably: bool = False
    """Whether its end must be saved before the code around it hears of it."""
    frames: Mapping[str, int] = {}
    """Where graphs that keep their state stood when this one was entered."""


class Ending(NamedTuple):
    """How a run left its thread. The last thing that a driver yields."""

    checkpoint: Checkpoint
    asks: tuple[Question, ...]
    """Every open question, in task order; empty when the run is done."""
    finished: frozenset[str] = frozenset()
    """Ids of the tasks of this step that have finished already."""
    outcomes: tuple[Outcome, ...] = ()
    """What those have returned."""
    up: tuple[Command[Any], ...] = ()
    """What the graph around this one is told to do."""
    carried: tuple[Any, ...] = ()
    """Checkpoints that the graph around this one must write with its own."""
    error: Exception | None = None
    is_stopped: bool = False
    """Whether it was left in the middle, because a task beside it had failed."""

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
    answered: tuple[tuple[Question, Any], ...] = ()
    """Questions of the new step that have their answers already."""
    inner: tuple[Any, ...] = ()
    """Checkpoints of graphs inside the new step's tasks, prepared before."""


class Start(NamedTuple):
    """Start these tasks."""

    assignments: tuple[Assignment, ...]


class Join(NamedTuple):
    """Wait for at least one started task; return every outcome there is by then."""


class Record(NamedTuple):
    """Save the results of finished tasks while their siblings still run."""

    outcomes: tuple[Outcome, ...]
    carried: tuple[Any, ...] = ()


class Prepare(NamedTuple):
    """Write a checkpoint down, to be saved by a later commit; the reply is what to carry there."""

    checkpoint: Checkpoint
    changed: frozenset[str]


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
    carried: tuple[Any, ...] = ()
    """Checkpoints of graphs inside, prepared before."""


class Emit(NamedTuple):
    """Tell the reader of the stream that something happened: one of the kinds below, and what it was."""

    kind: str
    what: Any
    ns: tuple[str, ...] = ()
    """The graph inside which it happened; empty for the outermost."""
    spec: Any = None
    """That graph, if it is not the outermost."""


VALUES, PAUSED, TASK, RESULT, SAVED, CUSTOM = "values", "paused", "task", "result", "saved", "custom"
MESSAGES = "messages"
