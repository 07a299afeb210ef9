"""A store in a few lines, without a database: the meaning of each effect, and nothing else.

The tests of the flow drive it by hand. What a `Notebook` holds is what would be on disk.
"""

from __future__ import annotations

from typing import Any

from bide.clock import SystemClock
from bide.engine.context import RunContext, Surroundings, TaskContext
from bide.engine.drive import perform
from bide.engine.flow import Flow
from bide.engine.opening import Request
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    Assignment,
    Begin,
    Begun,
    Checkpoint,
    Commit,
    Emit,
    Ending,
    Join,
    Load,
    Loaded,
    Outcome,
    Record,
    RunInfo,
    Start,
    Wait,
)
from bide.engine.work import work
from bide.types import RunStatus, WaitStatus

LIVE = (RunStatus.RUNNING, RunStatus.WAITING, RunStatus.BLOCKED)


class Notebook:
    """One thread, as it is saved."""

    def __init__(self) -> None:
        self.checkpoints: dict[int, Checkpoint] = {}
        self.results: dict[str, Outcome] = {}
        self.errors: dict[str, str] = {}
        self.waits: dict[str, Wait] = {}
        self.status: RunStatus | None = None
        self.epoch = 0

    @property
    def head(self) -> int:
        return max(self.checkpoints, default=0)

    @property
    def open_waits(self) -> list[Wait]:
        return [wait for wait in self.waits.values() if wait.status is WaitStatus.OPEN]

    def perform(self, effect: Any) -> Any:
        """Save or read; each effect is one transaction."""
        return {Load: self._load, Begin: self._begin, Record: self._record, Commit: self._commit}[type(effect)](effect)

    def _load(self, load: Load) -> Loaded:
        # Whoever reads a running run here is its successor: the one who drove it is gone.
        run = RunInfo("run", self.status, self.epoch, is_orphan=True) if self.status in LIVE else None
        checkpoint = self.checkpoints.get(self.head if load.seq is None else load.seq)
        uid = "uid" if self.checkpoints else None
        return Loaded(uid, self.head, run, checkpoint, self.results, self.errors, {}, tuple(self.waits.values()))

    def _begin(self, begin: Begin) -> Begun:
        assert begin.expected.head == self.head, "the thread is taken as it was read"
        self.epoch += 1
        self.status = RunStatus.RUNNING
        for question, answer in begin.answers:
            self.waits[question.id] = Wait(question, WaitStatus.ANSWERED, answer)
        if begin.forget:
            self._forget()
        if begin.checkpoint is not None:
            self.checkpoints[begin.checkpoint.seq] = begin.checkpoint
        return Begun("thread", "uid", "run")

    def _record(self, record: Record) -> None:
        self.results = self.results | {outcome.task.id: outcome for outcome in record.outcomes}

    def _commit(self, commit: Commit) -> None:
        if commit.changed is not None:
            assert commit.checkpoint.seq == self.head + 1, "a checkpoint is written on the head it was computed from"
            self.checkpoints[commit.checkpoint.seq] = commit.checkpoint
        if commit.is_over:
            self._forget()
        else:
            done = {outcome.task.id: outcome for outcome in commit.outcomes if outcome.is_done}
            self.results = self.results | done
            self.errors = {o.task.id: repr(o.error) for o in commit.outcomes if o.error is not None}
        self.waits = self.waits | {question.id: Wait(question, WaitStatus.OPEN) for question in commit.opens}
        self.status = commit.status

    def _forget(self) -> None:
        self.results, self.errors, self.waits = {}, {}, {}


class Codec:
    """Questions need a digest, and nothing is stored as bytes here."""

    def encode(self, value: Any, path: str) -> bytes:
        return repr(value).encode()

    def digest(self, value: Any) -> str:
        return repr(value)


class Journal:
    """Nodes may ask; steps inside nodes are not part of these tests."""

    codec = Codec()
    blocking = False


class Hand:
    """Drives a flow one effect at a time, and runs tasks where it stands, in the order they were started."""

    def __init__(self, spec: GraphSpec, notebook: Notebook) -> None:
        self.spec = spec
        self.notebook = notebook
        self.started: list[Assignment] = []
        around = Surroundings(config={}, clock=SystemClock())
        self.context = RunContext(spec, Request(None), around, thread_id="t", journal=Journal())
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
        return None if isinstance(effect, Emit) else self.notebook.perform(effect)
