"""One graph on its way, step by step: what is common to the thread's own graph and to graphs inside its tasks.

A walk decides; it does nothing itself. It yields effects and is sent what came of them. How its steps, pauses, ends and
failures are saved is told by `flow` for the thread's own graph, and by `nested` for the others.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from bide.engine.apply import edited_checkpoint, next_checkpoint
from bide.engine.opening import Opening, Request
from bide.engine.plan import branch_of, held_after, held_before, place_in_tree
from bide.engine.ready import ready_tasks
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    PAUSED,
    RESULT,
    SAVED,
    TASK,
    VALUES,
    Assignment,
    Checkpoint,
    Emit,
    Ending,
    Join,
    Outcome,
    Question,
    Record,
    Start,
    Task,
)
from bide.errors import CodecError, GraphDrained, GraphRecursionError, InvalidUpdateError
from bide.types import Command, WaitStatus

Flow = Generator[Any, Any, Ending]
Saving = Generator[Any, Any, None]


class Walk:
    """Where a graph stands, and what is known of its present step."""

    __slots__ = (
        "apart",
        "budget",
        "carried",
        "checkpoint",
        "ended",
        "is_fresh",
        "is_settled",
        "known",
        "left",
        "request",
        "results",
        "saves",
        "spec",
        "steps",
        "uid",
        "unsaved",
        "untold",
        "waits",
        "wants",
    )

    def __init__(self, spec: GraphSpec, request: Request, opening: Opening, uid: str) -> None:
        self.spec = spec
        self.request = request
        self.wants = request.wants
        self.saves = request.durable
        self.budget = request.recursion_limit
        self.uid = uid
        self.checkpoint = opening.checkpoint
        self.results = dict(opening.results)
        self.steps = opening.steps
        self.waits = opening.waits
        self.is_fresh = opening.is_fresh
        self.ended = opening.ended
        self.known = (opening.waits, opening.steps) if opening.is_replay else None
        """What is known of all steps, when the graph goes through them once more."""
        if self.known is not None:
            self._recall()
        self.unsaved: list[Outcome] = []
        self.untold: list[Emit] = []
        self.carried: list[Any] = []
        self.apart: list[Any] = []
        """Checkpoints inside tasks that ask or failed: with updates that may be saved only with their questions."""
        self.left: list[Question] = []
        """What tasks asked in the step that failed."""
        self.is_settled = False

    # ── How it is saved: the outermost graph and those inside others differ in this alone ──────────────────────────

    def save_step(
        self, after: Checkpoint, changed: frozenset[str], outcomes: list[Outcome], held: tuple[Question, ...]
    ) -> Saving:
        """Save a step that is over."""
        raise NotImplementedError

    def save_pause(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        opens: Sequence[Question],
        asks: Sequence[Question],
    ) -> Saving:
        """Save that tasks ask: new questions, the updates made with them, and results so far."""
        raise NotImplementedError

    def save_hold(self, held: tuple[Question, ...]) -> Saving:
        """Save that the graph stops before or after a node."""
        raise NotImplementedError

    def save_end(self) -> Saving:
        """Save that nothing is left to do."""
        raise NotImplementedError

    def save_failure(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        asks: Sequence[Question],
        failed: Sequence[Outcome],
        error: Exception,
    ) -> Saving:
        """Save what failed, what finished, and what asks all the same."""
        raise NotImplementedError

    # ── The way ────────────────────────────────────────────────────────────────────────────────────────────────────

    def to_the_end(self, *, is_new: bool) -> Flow:
        """Go step by step until the graph is done, or waits."""
        if VALUES in self.wants and not (is_new and self.spec.value_key is not None):
            yield Emit(VALUES, self.checkpoint)
        if is_new and SAVED in self.wants:
            yield Emit(SAVED, self.checkpoint)
        held = self._still_held()
        while self.checkpoint.tasks or held:
            if self.request.before and not held:
                held = held_before(self.request.before, self.checkpoint, self.waits, self._begun(), self.uid)
            if held:
                return (yield from self._pause(held))
            if self.budget <= 0:
                raise GraphRecursionError(self._too_long())
            if self.request.control is not None and self.request.control.is_draining:
                raise GraphDrained(self._drained())
            self.budget -= 1
            outcomes = yield from self._run_step()
            asks = [question for outcome in outcomes if outcome.asks for question in outcome.asks]
            if asks or len(outcomes) < len(self.checkpoint.tasks):
                return (yield from self._pause_asking(outcomes, asks))
            up = [command for outcome in outcomes if outcome.up for command in outcome.up]
            if up:
                return (yield from self._leave(outcomes, up))
            held = yield from self._finish_step(outcomes)
        yield from self.save_end()
        return Ending(self.checkpoint, (), carried=tuple(self.carried))

    def _still_held(self) -> tuple[Question, ...]:
        """Return the questions after finished nodes that nobody has answered yet."""
        if not self.waits:
            return ()
        return tuple(
            wait.question
            for wait in self.waits
            if wait.status is WaitStatus.OPEN
            and wait.question.kind in ("return", "after")
            and branch_of(self.checkpoint.prefix, wait.question.task_id) == wait.question.task_id
        )

    # ── One step ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _run_step(self) -> Generator[Any, Any, list[Outcome]]:
        """Run every task that can run; return the outcomes of this step so far, in task order."""
        tasks: Sequence[Task] = self.checkpoint.tasks
        if len(tasks) == 1 and not (self.waits or self.results or self.steps or self.wants):
            yield Start((Assignment(tasks[0], self.checkpoint, is_fresh=self.is_fresh),))
            outcome: Outcome = (yield Join())[0]
            if outcome.carried:
                (self.carried if outcome.is_done else self.apart).extend(outcome.carried)
            if outcome.error is None:
                return [] if outcome.is_skipped else [outcome]
            yield from self._fail_step([outcome], [outcome])
        runnable = self._runnable()
        finished = dict(self.results)
        if runnable:
            yield Start(tuple([self._assign(task) for task in runnable]))
            if TASK in self.wants:
                for task in runnable:
                    yield Emit(TASK, (self.checkpoint, task))
            yield from self._join(len(runnable), finished)
        outcomes = [finished[task.id] for task in tasks if task.id in finished]
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if failed:
            yield from self._fail_step(outcomes, failed)
        return outcomes

    def _begun(self) -> set[str]:
        """Name the tasks of this step that have run before, to their end or to a question."""
        asked = (wait.question for wait in self.waits if wait.question.kind == "call" or self._is_inside(wait.question))
        prefix = self.checkpoint.prefix
        return {branch_of(prefix, task_id) for task_id in (*(q.task_id for q in asked), *self.results, *self.steps)}

    def _is_inside(self, question: Question) -> bool:
        return branch_of(self.checkpoint.prefix, question.task_id) != question.task_id

    def _runnable(self) -> list[Task]:
        """Return the tasks that have no result yet and do not wait for an answer."""
        return ready_tasks(self.checkpoint, self.results, self.waits, self.ended)

    def _assign(self, task: Task) -> Assignment:
        if not self.waits and not self.steps:
            return Assignment(task, self.checkpoint, is_fresh=self.is_fresh)
        own, below = task.id, f"{task.id}:"
        waits = tuple(
            wait for wait in self.waits if wait.question.task_id == own or wait.question.task_id.startswith(below)
        )
        kin = {id_: steps for id_, steps in self.steps.items() if id_.startswith(below)}
        return Assignment(task, self.checkpoint, waits, self.steps.get(own, {}), is_fresh=self.is_fresh, kin=kin)

    def _join(self, running: int, finished: dict[str, Outcome]) -> Saving:
        while running:
            batch: Sequence[Outcome] = yield Join()
            running -= len(batch)
            for outcome in batch:
                if not outcome.is_skipped:
                    finished[outcome.task.id] = outcome
                if outcome.carried:
                    (self.carried if outcome.is_done else self.apart).extend(outcome.carried)
            done = [outcome for outcome in batch if outcome.is_done]
            if self.saves and done and running:
                yield from self._record(done, finished)
            else:
                self.unsaved += done
            if RESULT in self.wants:
                told = [finished[outcome.task.id] for outcome in batch if not outcome.is_skipped]
                for outcome in told:
                    self.untold += (*outcome.told, Emit(RESULT, (self.checkpoint, outcome)))
                if running:
                    yield from self._tell()

    def _record(self, done: list[Outcome], finished: dict[str, Outcome]) -> Saving:
        """Save results while siblings run. One that cannot be stored is that task's own failure, and nobody else's."""
        carried, self.carried = tuple(self.carried), []
        try:
            yield Record(tuple(done), carried)
        except CodecError:
            for outcome in done:
                try:
                    yield Record((outcome,), carried)
                    carried = ()
                except CodecError as problem:
                    finished[outcome.task.id] = Outcome(outcome.task, error=problem)
            self.carried += carried

    def _tell(self) -> Saving:
        """Tell what has been saved. Not before: whoever hears of a result may leave, and it must not be lost."""
        told, self.untold = self.untold, []
        yield from told

    def _finish_step(self, outcomes: list[Outcome]) -> Generator[Any, Any, tuple[Question, ...]]:
        """Apply a step in which every task has finished; return the pauses that stand after it."""
        try:
            after, changed = next_checkpoint(self.spec, self.checkpoint, outcomes)
        except InvalidUpdateError as problem:
            # A result that cannot be applied must not be kept: it would stand in the way of the mended node for ever.
            blamed = [outcome.task for outcome in outcomes if outcome.task.id in problem.task_ids]
            failed = [Outcome(task, error=problem) for task in blamed]
            self.unsaved = [outcome for outcome in self.unsaved if outcome.task.id not in problem.task_ids]
            yield from self._fail_step(outcomes, failed)
            raise
        held = tuple([question for outcome in outcomes if outcome.returns for question in outcome.returns])
        if self.request.after:
            held += held_after(self.request.after, after, (), self.uid)
        if self.saves:
            try:
                yield from self.save_step(after, changed, outcomes, held)
            except CodecError as problem:
                yield from self._fail_unstorable(outcomes, problem)
        if after.is_migrated:
            after = after._replace(is_migrated=False)  # it is written now, all of it
        self.checkpoint, self.results, self.steps, self.waits = after, {}, {}, ()
        # A graph that is not saved goes through all its steps again: what is inside its later tasks may be known.
        self.is_fresh = self.is_fresh or self.saves
        self.unsaved = []
        if self.known is not None:
            self._recall()
        yield from self._tell()
        if SAVED in self.wants:
            yield Emit(SAVED, after)
        if VALUES in self.wants and changed:
            yield Emit(VALUES, after)
        return held

    def _recall(self) -> None:
        """Find what is known of the tasks of this step from a time when the graph has come here before."""
        assert self.known is not None
        waits, steps = self.known
        prefix, here = self.checkpoint.prefix, {task.id for task in self.checkpoint.tasks}
        self.waits = tuple(wait for wait in waits if branch_of(prefix, wait.question.task_id) in here)
        self.steps = {id_: made for id_, made in steps.items() if branch_of(prefix, id_) in here}
        self.is_fresh = False

    def _fail_unstorable(self, outcomes: list[Outcome], problem: CodecError) -> Saving:
        """Blame those whose results cannot be stored, and keep the others', so that they need not run again."""
        finished = {outcome.task.id: outcome for outcome in outcomes}
        yield from self._record(outcomes, finished)
        failed = [outcome for outcome in finished.values() if outcome.error is not None]
        if not failed:
            raise problem
        self.unsaved = []
        yield from self._fail_step(list(finished.values()), failed)

    def _leave(self, outcomes: list[Outcome], up: list[Command[Any]]) -> Flow:
        """End this graph at once, because a node told the graph around it where to go."""
        yield from self._tell()
        finished = frozenset(outcome.task.id for outcome in outcomes)
        return Ending(self.checkpoint, (), finished, up=tuple(up), carried=tuple(self.carried))

    # ── Pauses ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _pause(self, held: tuple[Question, ...]) -> Flow:
        """Stop where the graph was told to stop, or where a finished node asked."""
        if not self.is_settled and self.saves:
            yield from self.save_hold(held)
        return (yield from self._paused(held))

    def _pause_asking(self, outcomes: list[Outcome], asks: list[Question]) -> Flow:
        """Stop because tasks ask: the updates they made with their questions, and all results so far, are saved."""
        checkpoint, changed = self._with_pause_updates(asks)
        opens, every = self._all_asks(outcomes, asks)
        yield from self.save_pause(checkpoint, changed if checkpoint is not self.checkpoint else None, opens, every)
        yield from self._tell()
        self.checkpoint = checkpoint
        refused = next((question.refused for question in asks if question.refused is not None), None)
        finished = frozenset(outcome.task.id for outcome in outcomes if outcome.is_done)
        if refused is not None and not checkpoint.prefix:
            raise refused
        done = tuple(outcome for outcome in outcomes if outcome.is_done)
        return (yield from self._paused(every, finished, done))

    def _all_asks(
        self, outcomes: Sequence[Outcome], asks: Sequence[Question]
    ) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        """Return the questions that are new, and all that are open, in task order."""
        prefix = self.checkpoint.prefix
        known = {wait.question.id for wait in self.waits if wait.status is WaitStatus.OPEN}
        ran = {outcome.task.id for outcome in outcomes}
        still = [
            wait.question
            for wait in self.waits
            if wait.status is WaitStatus.OPEN and branch_of(prefix, wait.question.task_id) not in ran
        ]
        order = {task.id: index for index, task in enumerate(self.checkpoint.tasks)}
        every = sorted(
            [*still, *asks],
            key=lambda question: (order[branch_of(prefix, question.task_id)], place_in_tree(question)),
        )
        return tuple(question for question in asks if question.id not in known), tuple(every)

    def _with_pause_updates(self, asks: Sequence[Question]) -> tuple[Checkpoint, frozenset[str]]:
        writes: list[tuple[str, Any]] = []
        for question in asks:
            if question.update is not None and not self._is_inside(question):
                pairs = self.spec.read_update(question.update)
                if pairs is None:
                    raise InvalidUpdateError(f"interrupt(update={question.update!r}) must be a dict of state keys.")
                self.spec.check_keys(pairs, f"interrupt(update=…) in node {question.node!r} holds")
                writes += pairs.items()
        return edited_checkpoint(self.spec, self.checkpoint, writes, source="interrupt")

    def _paused(
        self, asks: tuple[Question, ...], finished: frozenset[str] = frozenset(), done: tuple[Outcome, ...] = ()
    ) -> Flow:
        is_stopped = not asks
        carried = (*self.carried, *self.apart)
        ending = Ending(self.checkpoint, asks, finished, done, carried=carried, is_stopped=is_stopped)
        if PAUSED in self.wants and not is_stopped:
            yield Emit(PAUSED, ending)
        return ending

    # ── Failures ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _fail_step(self, outcomes: list[Outcome], failed: list[Outcome]) -> Saving:
        """Keep what finished and what asks, tell every error, raise the first in task order."""
        error = failed[0].error
        assert error is not None
        note = f"During task with name {failed[0].task.node!r} and id {failed[0].task.id!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        asks = [question for outcome in outcomes for question in outcome.asks]
        if self.saves:
            checkpoint, changed = self._with_pause_updates(asks)
            opens, _ = self._all_asks(outcomes, asks)
            yield from self.save_failure(
                checkpoint, changed if checkpoint is not self.checkpoint else None, opens, failed, error
            )
        # Not before: a question must not be saved by the graph around this one if its own update could not be.
        self.left = asks
        yield from self._tell()
        raise error

    def _too_long(self) -> str:
        saved = "The state is saved: go on with invoke(None, config), or allow" if self.saves else "Allow"
        return (
            f"The run took {self.request.recursion_limit} steps without reaching its end; the next would run "
            f'{", ".join(self.checkpoint.next)}. {saved} more with config={{"recursion_limit": …}}.'
        )

    def _drained(self) -> str:
        reason = self.request.control.reason if self.request.control is not None else None
        told = f" ({reason})" if reason else ""
        saved = "The state is saved: go on with invoke(None, config)." if self.saves else "Nothing was saved."
        return f"The run was asked to stop{told}, and did before {', '.join(self.checkpoint.next)}. {saved}"


__all__ = ["Flow", "Saving", "Walk"]
