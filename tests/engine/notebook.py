"""A store in a few lines, without a database: the meaning of each effect, and nothing else.

A `Notebook` holds what would be on disk of one thread. A `Pen` writes in it, for one call: the engine's `Saver`, and
the `Journal` of its tasks. The tests of the flow drive both by hand; the simulation (`tests/simulation`) lets many
pens fight over one notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from bide.clock import SystemClock
from bide.engine.context import TaskContext
from bide.engine.drive import perform
from bide.engine.flow import Flow
from bide.engine.opening import NOTHING, Request
from bide.engine.run_context import RunContext, Surroundings
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    Assignment,
    Begin,
    Begun,
    Checkpoint,
    Commit,
    Edit,
    Emit,
    Ending,
    Join,
    JournalEntry,
    Load,
    Loaded,
    Outcome,
    Prepare,
    Record,
    RunInfo,
    Start,
    Task,
    Wait,
)
from bide.engine.work import work
from bide.errors import AlreadyAnsweredError, LeaseLostError, ThreadBusyError
from bide.graph.pages import in_task_order
from bide.types import RunStatus, WaitStatus

T = TypeVar("T")
Lines = frozenset[tuple[Any, ...]]

LIVE = (RunStatus.READY, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.BLOCKED)


class Run(NamedTuple):
    """One request to advance the thread; leased to a worker while it is running."""

    id: str
    status: RunStatus
    epoch: int
    worker: str | None


class Lease(NamedTuple):
    """The right to write: a run, in one epoch."""

    run_id: str
    epoch: int


class Notebook:
    """One thread, as it is saved."""

    def __init__(self) -> None:
        self.places: dict[str, dict[int, Checkpoint]] = {}
        """Place of a graph → number → checkpoint."""
        self.results: dict[str, Outcome] = {}
        self.errors: dict[str, str] = {}
        self.steps: dict[str, dict[str, JournalEntry]] = {}
        self.waits: dict[str, Wait] = {}
        """Of the step under way; the others are history."""
        self.past: dict[str, Wait] = {}
        self.runs: dict[str, Run] = {}

    @property
    def checkpoints(self) -> dict[int, Checkpoint]:
        """Those of the thread's own graph."""
        return self.places.get("", {})

    @property
    def head(self) -> int:
        return self.head_of("")

    def head_of(self, ns: str) -> int:
        return max(self.places.get(ns, ()), default=0)

    @property
    def open_waits(self) -> list[Wait]:
        return [wait for wait in self.waits.values() if wait.status is WaitStatus.OPEN]

    @property
    def live(self) -> Run | None:
        return next((run for run in self.runs.values() if run.status in LIVE), None)

    @property
    def status(self) -> RunStatus | None:
        """That of the live run, or else of the latest."""
        run = self.live or next(reversed(self.runs.values()), None)
        return None if run is None else run.status

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, ns: str, prefix: str, seq: int | None) -> Loaded:
        """Read a graph of the thread: one checkpoint, and what is known of its step."""
        checkpoint = self.places.get(ns, {}).get(self.head_of(ns) if seq is None else seq)
        planned = () if checkpoint is None else [task.id for task in checkpoint.tasks]
        results = {task_id: self.results[task_id] for task_id in planned if task_id in self.results}
        steps = {
            task_id: dict(lines)
            for task_id, lines in self.steps.items()
            if task_id.startswith(prefix) and "|" not in task_id[len(prefix) :]
        }
        waits = [wait for wait in self.waits.values() if wait.question.task_id.startswith(prefix)]
        made = [f"{task}:{key}" for task, lines in self.steps.items() for key, line in lines.items() if line.is_done]
        done = frozenset(id_ for id_ in (*self.results, *made) if id_.startswith(prefix))
        errors = {task_id: error for task_id, error in self.errors.items() if task_id not in self.results}
        failed = frozenset(task_id for task_id in self.errors if task_id.startswith(prefix))
        order = in_task_order(checkpoint, waits)
        read = Loaded("uid", self.head_of(ns), None, checkpoint, results, errors, steps, order, thread_id="thread")
        return read._replace(done=done, failed=failed)

    def lines(self) -> Lines:
        """Return which lines the journal has, whatever they say."""
        steps = ((task_id, key, line.is_done) for task_id, lines in self.steps.items() for key, line in lines.items())
        results = ((task_id, "result") for task_id in self.results)
        return frozenset((*steps, *results, *self.errors.items()))

    # ── Taking the thread, and editing it from outside ─────────────────────────────────────────────────────────────

    def begin(self, begin: Begin, worker: str, seen: Lines) -> Lease:
        """Answers, first checkpoint and lease, all or nothing."""
        self._check_unmoved(begin.expected, seen)
        for question, _ in begin.answers:
            if question.id not in self.waits or self.waits[question.id].status is not WaitStatus.OPEN:
                raise AlreadyAnsweredError(f"Question {question.id} was answered a moment ago.")
        if begin.supersede is None and begin.claim is None and self.live is not None:
            raise ThreadBusyError("Another call took the thread first.")
        if begin.supersede is not None:
            self._move(begin.supersede, RunStatus.CANCELLED, None)
        if begin.claim is not None:
            lease = self._move(begin.claim, RunStatus.RUNNING, worker)
        else:
            lease = Lease(f"run{len(self.runs) + 1}", 1)
            self.runs[lease.run_id] = Run(lease.run_id, RunStatus.RUNNING, 1, worker)
        for question, answer in begin.answers:
            self.waits[question.id] = Wait(self.waits[question.id].question, WaitStatus.ANSWERED, answer)
        if begin.forget:
            self._forget("")
        if begin.checkpoint is not None:
            self._write(begin.checkpoint)
        return lease

    def edit(self, edit: Edit, seen: Lines) -> None:
        """One checkpoint from outside, while nobody runs."""
        assert not edit.answered, "forks are not part of this model"
        run = edit.expected.run
        self._check_unmoved(edit.expected, seen)
        if run is not None and (edit.forget or run.status is RunStatus.RUNNING):
            self._move(run, RunStatus.CANCELLED, None)
        elif self.live is not None and self.live.status is RunStatus.RUNNING:
            raise ThreadBusyError("The thread has a run under way.")
        if edit.forget:
            self._forget("")
        self._write(edit.checkpoint)

    def _check_unmoved(self, expected: Loaded, seen: Lines) -> None:
        if expected.head != self.head:
            raise ThreadBusyError("Another call moved the thread first.")
        read = expected.run
        if read is None:
            return
        run = self.runs[read.id]
        if (run.status, run.epoch) != (read.status, read.epoch):
            raise ThreadBusyError("Another call took the run first.")
        if run.status is RunStatus.RUNNING and seen != self.lines():
            # A worker that only seemed to be gone has written since: who takes over must know all that was done.
            raise ThreadBusyError("The run was not left after all.")

    def _move(self, read: RunInfo, status: RunStatus, worker: str | None) -> Lease:
        self.runs[read.id] = Run(read.id, status, read.epoch + 1, worker)
        return Lease(read.id, read.epoch + 1)

    # ── Driving it: every write needs the lease ────────────────────────────────────────────────────────────────────

    def hold(self, lease: Lease) -> None:
        """Prove that the run is still this writer's."""
        run = self.runs.get(lease.run_id)
        if run is None or run.epoch != lease.epoch or run.status is not RunStatus.RUNNING:
            raise LeaseLostError(f"Run {lease.run_id} in epoch {lease.epoch} is over.")

    def record(self, lease: Lease, record: Record) -> None:
        """Results of tasks whose siblings still run."""
        self.hold(lease)
        for checkpoint in record.carried:
            self._write(checkpoint)
        self._keep_outcomes(record.outcomes)

    def commit(self, lease: Lease, commit: Commit, prefix: str) -> None:
        """One transition: a step, a pause, the end, a failure."""
        self.hold(lease)
        for checkpoint in (*commit.carried, *((commit.checkpoint,) if commit.changed is not None else ())):
            self._write(checkpoint)
        if commit.is_over:
            self._retire(prefix)
        else:
            self._keep_outcomes(commit.outcomes)
        for question in commit.opens:
            self.waits[question.id] = Wait(question, WaitStatus.OPEN)
        if commit.status is not RunStatus.RUNNING:
            self.end(lease, commit.status)

    def end(self, lease: Lease, status: RunStatus) -> None:
        """Give the lease back."""
        self.hold(lease)
        self.runs[lease.run_id] = self.runs[lease.run_id]._replace(status=status, worker=None)

    def keep(self, lease: Lease, task: Task, key: str, entry: JournalEntry) -> None:
        """One line of a task's journal; a step that is done is never written over."""
        self.hold(lease)
        lines = self.steps.setdefault(task.id, {})
        if key not in lines or not lines[key].is_done:
            lines[key] = entry

    def _write(self, checkpoint: Checkpoint) -> None:
        assert checkpoint.seq == self.head_of(checkpoint.ns) + 1, "a checkpoint stands on the head it was computed from"
        self.places.setdefault(checkpoint.ns, {})[checkpoint.seq] = checkpoint

    def _keep_outcomes(self, outcomes: tuple[Outcome, ...]) -> None:
        for outcome in outcomes:
            if outcome.error is not None:
                self.results.pop(outcome.task.id, None)
                self.errors[outcome.task.id] = repr(outcome.error)
            elif outcome.is_done:
                self.results.setdefault(outcome.task.id, outcome._replace(carried=()))

    def _forget(self, prefix: str) -> None:
        for wait in self.open_waits:
            if wait.question.task_id.startswith(prefix):
                self.waits[wait.question.id] = wait._replace(status=WaitStatus.CANCELLED)
        self._retire(prefix)

    def _retire(self, prefix: str) -> None:
        """Put away what is known of a step that is over, and of all graphs inside its tasks."""
        lines: dict[str, Any]
        for lines in (self.results, self.errors, self.steps):
            for task_id in [task_id for task_id in lines if task_id.startswith(prefix)]:
                del lines[task_id]
        for wait in [wait for wait in self.waits.values() if wait.question.task_id.startswith(prefix)]:
            self.past[wait.question.id] = self.waits.pop(wait.question.id)


class Grip:
    """One call's hold on the thread: what the pens of its graphs share."""

    def __init__(self, notebook: Notebook, worker: str = "worker") -> None:
        self.notebook = notebook
        self.worker = worker
        self.lease: Lease | None = None
        self.seen: Lines = frozenset()
        """The journal as it was when the thread was read."""

    def is_orphan(self, run: Run) -> bool:
        """Whether a running run may be taken over. By hand it may: the one who drove it is gone."""
        return True

    def transaction(self, name: str, write: Callable[[], T]) -> T:
        """Write all of it or nothing."""
        return write()

    def held(self) -> Lease:
        if self.lease is None:
            raise LeaseLostError("The run has ended.")
        return self.lease


class Pen:
    """Saves one graph of the thread."""

    blocking = False
    store = None

    def __init__(self, grip: Grip, spec: GraphSpec, ns: str = "", prefix: str = "") -> None:
        self.grip = grip
        self.notebook = grip.notebook
        self.spec = spec
        self.codec = spec.codec
        self.ns = ns
        self.prefix = prefix
        self._perform: dict[type, Callable[[Any], Any]] = {
            Load: self._load,
            Begin: self._begin,
            Edit: self._edit,
            Prepare: lambda prepare: prepare.checkpoint,
            Record: self._record,
            Commit: self._commit,
        }

    def inside(self, spec: GraphSpec, ns: str, prefix: str) -> Pen:
        """Return what saves a graph inside a task of this one."""
        return Pen(self.grip, spec, ns, prefix)

    def perform(self, effect: Any) -> Any:
        """Do one effect; each is one transaction."""
        return self._perform[type(effect)](effect)

    def abandon(self, reason: BaseException) -> None:
        """Let go of a run that its caller has dropped."""
        lease, self.grip.lease = self.grip.lease, None
        if lease is not None and not isinstance(reason, LeaseLostError):
            self.grip.transaction("Cancel", lambda: self.notebook.end(lease, RunStatus.CANCELLED))

    def _load(self, load: Load) -> Loaded:
        if not self.notebook.places:
            return NOTHING
        loaded = self.notebook.read(self.ns, self.prefix, load.seq)
        run = None if self.prefix else self.notebook.live
        if not self.prefix:
            self.grip.seen = self.notebook.lines()
        if run is None:
            return loaded
        return loaded._replace(run=RunInfo(run.id, run.status, run.epoch, self.grip.is_orphan(run)))

    def _begin(self, begin: Begin) -> Begun:
        grip = self.grip
        grip.lease = grip.transaction("Begin", lambda: self.notebook.begin(begin, grip.worker, grip.seen))
        return Begun("thread", "uid", grip.lease.run_id)

    def _edit(self, edit: Edit) -> None:
        self.grip.transaction("Edit", lambda: self.notebook.edit(edit, self.grip.seen))

    def _record(self, record: Record) -> None:
        lease = self.grip.held()
        self.grip.transaction("Record", lambda: self.notebook.record(lease, record))

    def _commit(self, commit: Commit) -> None:
        lease = self.grip.held()
        self.grip.transaction("Commit", lambda: self.notebook.commit(lease, commit, self.prefix))
        if commit.status is not RunStatus.RUNNING:
            self.grip.lease = None

    # ── The journal of a task ──────────────────────────────────────────────────────────────────────────────────────

    is_behind = False

    def catch_up(self) -> None:
        """Do nothing: whatever is written here is there at once."""

    def check_held(self) -> None:
        self.grip.held()

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        lease = self.grip.held()
        self.grip.transaction("Keep", lambda: self.notebook.keep(lease, task, key, entry))

    intend = keep

    def transact(self, task: Task, key: str, entry: JournalEntry, make: Callable[[Any], Any]) -> Any:
        lease = self.grip.held()

        def write() -> Any:
            self.notebook.hold(lease)
            before = self.notebook.steps.get(task.id, {}).get(key)
            if before is not None and before.is_done:
                return before.value  # only the reply was lost, and the node tries again
            value = make(self.notebook)
            self.notebook.keep(lease, task, key, entry._replace(value=value))
            return value

        return self.grip.transaction("Transact", write)

    def is_unchanged(self, key: str, value: Any) -> bool:
        return True


class Hand:
    """Drives a flow one effect at a time, and runs tasks where it stands, in the order they were started."""

    def __init__(self, spec: GraphSpec, notebook: Notebook) -> None:
        self.spec = spec
        self.pen = Pen(Grip(notebook), spec)
        self.started: list[Assignment] = []
        around = Surroundings(config={}, clock=SystemClock())
        self.context = RunContext(spec, Request(None), around, thread_id="t", journal=self.pen)
        self.context.uid = "uid"
        self.performed = 0

    def drive(self, flow: Flow, *, effects: int | None = None) -> Ending | None:
        """Perform effects until the flow ends; or only so many, as if the power had failed: then return None."""
        reply = None
        try:
            while effects is None or self.performed < effects:
                reply = self.perform(flow.send(reply))
                self.performed += 1
        except StopIteration as told:
            ending: Ending = told.value
            return ending
        return None

    def perform(self, effect: Any) -> Any:
        """Do one effect. One task is joined at a time, so that every sibling but the last is recorded."""
        if isinstance(effect, Start):
            self.started += effect.assignments
            return None
        if isinstance(effect, Join):
            context = TaskContext(self.context, self.started.pop(0))
            return [perform(work(self.spec, context), context)]
        return None if isinstance(effect, Emit) else self.pen.perform(effect)
