"""The story of a run, as a generator of effects.

The flow decides; it does nothing itself. It yields what must happen (`Load`, `Begin`, `Start`, `Join`, `Record`,
`Commit`, `Emit`) and is sent what came of it. Two small drivers (`drive`) perform the effects, one synchronously and
one with asyncio, so the story is told once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from bide.engine.apply import edited_checkpoint, next_checkpoint
from bide.engine.opening import NOTHING, Opening, Request, open_thread
from bide.engine.plan import held_after, held_before
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    PAUSED,
    RESULT,
    SAVED,
    TASK,
    VALUES,
    Assignment,
    Begun,
    Checkpoint,
    Commit,
    Emit,
    Ending,
    Join,
    Load,
    Outcome,
    Question,
    Record,
    Start,
    Task,
)
from bide.errors import CodecError, GraphRecursionError, InvalidUpdateError, LeaseLostError, ReplayMismatchError
from bide.types import RunStatus, WaitStatus

Flow = Generator[Any, Any, Ending]


def advance(spec: GraphSpec, request: Request) -> Flow:
    """Take up the thread and drive it until it is done or waits."""
    loaded = (yield Load(request.seq)) if request.durable else NOTHING
    opening = yield from open_thread(spec, request, loaded)
    if isinstance(opening, Ending):
        yield from _tell_unmoved(request, opening)
        return opening
    begun = (yield opening.begin) if request.durable else Begun(None, "", None)
    walk = _Walk(spec, request, opening, begun)
    try:
        return (yield from walk.to_the_end(is_new=opening.begin.checkpoint is not None))
    except LeaseLostError:
        raise  # the thread is another's now; there is nothing left to write
    except Exception as error:
        if request.durable and not walk.is_settled:
            yield from walk.fail(error)
        raise


def _tell_unmoved(request: Request, ending: Ending) -> Generator[Any, Any, None]:
    if VALUES in request.wants:
        yield Emit(VALUES, ending.checkpoint)
    if ending.asks and PAUSED in request.wants:
        yield Emit(PAUSED, ending)


class _Walk:
    """One run on its way through the graph: where it stands, and what it knows of the present step."""

    __slots__ = (
        "budget",
        "checkpoint",
        "durable",
        "is_settled",
        "request",
        "results",
        "spec",
        "steps",
        "uid",
        "unsaved",
        "untold",
        "waits",
        "wants",
    )

    def __init__(self, spec: GraphSpec, request: Request, opening: Opening, begun: Begun) -> None:
        self.spec = spec
        self.request = request
        self.wants = request.wants
        self.durable = request.durable
        self.budget = request.recursion_limit
        self.uid = begun.uid
        self.checkpoint = opening.checkpoint
        self.results = dict(opening.results)
        self.steps = opening.steps
        self.waits = opening.waits
        self.unsaved: list[Outcome] = []
        self.untold: list[Emit] = []
        self.is_settled = False

    def to_the_end(self, *, is_new: bool) -> Flow:
        if VALUES in self.wants:
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
            self.budget -= 1
            outcomes = yield from self._run_step()
            asks = [question for outcome in outcomes if outcome.asks for question in outcome.asks]
            if asks or len(outcomes) < len(self.checkpoint.tasks):
                return (yield from self._pause_asking(outcomes, asks))
            held = yield from self._finish_step(outcomes)
        return (yield from self._finish())

    def _still_held(self) -> tuple[Question, ...]:
        """Return the questions after finished nodes that nobody has answered yet."""
        return tuple(
            wait.question
            for wait in self.waits
            if wait.status is WaitStatus.OPEN and wait.question.kind in ("return", "after")
        )

    # ── One step ───────────────────────────────────────────────────────────────────────────────────────────────

    def _run_step(self) -> Generator[Any, Any, list[Outcome]]:
        """Run every task that can run; return the outcomes of this step so far, in task order."""
        tasks: Sequence[Task] = self.checkpoint.tasks
        if len(tasks) == 1 and not (self.waits or self.results or self.steps or self.wants):
            yield Start((Assignment(tasks[0], self.checkpoint),))
            outcome: Outcome = (yield Join())[0]
            if outcome.error is None:
                return [outcome]
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
        asked = {wait.question.task_id for wait in self.waits if wait.question.kind == "call"}
        return {*asked, *self.results, *self.steps}

    def _runnable(self) -> list[Task]:
        """Return the tasks that have no result yet and do not wait for an answer."""
        waiting = {wait.question.task_id for wait in self.waits if wait.status is WaitStatus.OPEN}
        return [task for task in self.checkpoint.tasks if task.id not in self.results and task.id not in waiting]

    def _assign(self, task: Task) -> Assignment:
        if not self.waits and not self.steps:
            return Assignment(task, self.checkpoint)
        waits = tuple(wait for wait in self.waits if wait.question.task_id == task.id)
        return Assignment(task, self.checkpoint, waits, self.steps.get(task.id, {}))

    def _join(self, running: int, finished: dict[str, Outcome]) -> Generator[Any, Any, None]:
        while running:
            batch: Sequence[Outcome] = yield Join()
            running -= len(batch)
            for outcome in batch:
                if not outcome.is_skipped:
                    finished[outcome.task.id] = outcome
            done = [outcome for outcome in batch if outcome.is_done]
            if self.durable and done and running:
                yield from self._record(done, finished)
            else:
                self.unsaved += done
            if RESULT in self.wants:
                told = [finished[outcome.task.id] for outcome in batch if not outcome.is_skipped]
                self.untold += [Emit(RESULT, (self.checkpoint, outcome)) for outcome in told]
                if running:
                    yield from self._tell()

    def _record(self, done: list[Outcome], finished: dict[str, Outcome]) -> Generator[Any, Any, None]:
        """Save results while siblings run. One that cannot be stored is that task's own failure, and nobody else's."""
        try:
            yield Record(tuple(done))
        except CodecError:
            for outcome in done:
                try:
                    yield Record((outcome,))
                except CodecError as problem:
                    finished[outcome.task.id] = Outcome(outcome.task, error=problem)

    def _tell(self) -> Generator[Any, Any, None]:
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
        if self.durable:
            status = RunStatus.WAITING if held else RunStatus.RUNNING if after.tasks else RunStatus.DONE
            try:
                yield Commit(after, changed, status, tuple(outcomes), opens=held, is_over=True)
            except CodecError as problem:
                yield from self._fail_unstorable(outcomes, problem)
            self.is_settled = status is not RunStatus.RUNNING
        self.checkpoint, self.results, self.steps, self.waits = after, {}, {}, ()
        self.unsaved = []
        yield from self._tell()
        if SAVED in self.wants:
            yield Emit(SAVED, after)
        if VALUES in self.wants and changed:
            yield Emit(VALUES, after)
        return held

    def _fail_unstorable(self, outcomes: list[Outcome], problem: CodecError) -> Generator[Any, Any, None]:
        """Blame those whose results cannot be stored, and keep the others', so that they need not run again."""
        finished = {outcome.task.id: outcome for outcome in outcomes}
        yield from self._record(outcomes, finished)
        failed = [outcome for outcome in finished.values() if outcome.error is not None]
        if not failed:
            raise problem
        self.unsaved = []
        yield from self._fail_step(list(finished.values()), failed)

    # ── Pauses ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _pause(self, held: tuple[Question, ...]) -> Flow:
        """Stop where the graph was told to stop, or where a finished node asked."""
        if not self.is_settled and self.durable:
            yield Commit(self.checkpoint, None, RunStatus.WAITING, opens=held)
            self.is_settled = True
        return (yield from self._paused(held))

    def _pause_asking(self, outcomes: list[Outcome], asks: list[Question]) -> Flow:
        """Stop because tasks ask: the updates they made with their questions, and all results so far, are saved."""
        checkpoint, changed = self._with_pause_updates(asks)
        still = [wait.question for wait in self.waits if wait.status is WaitStatus.OPEN]
        order = {task.id: index for index, task in enumerate(checkpoint.tasks)}
        every = tuple(sorted([*still, *asks], key=lambda question: order[question.task_id]))
        yield Commit(
            checkpoint,
            changed if checkpoint is not self.checkpoint else None,
            RunStatus.WAITING,
            tuple(self.unsaved),
            opens=tuple(asks),
            asks=every,
        )
        self.is_settled = True
        yield from self._tell()
        self.checkpoint = checkpoint
        refused = next((question.refused for question in asks if question.refused is not None), None)
        if refused is not None:
            raise refused
        finished = frozenset(outcome.task.id for outcome in outcomes if outcome.is_done)
        return (yield from self._paused(every, finished))

    def _with_pause_updates(self, asks: Sequence[Question]) -> tuple[Checkpoint, frozenset[str]]:
        writes: list[tuple[str, Any]] = []
        for question in asks:
            if question.update is not None:
                pairs = self.spec.read_update(question.update)
                if pairs is None:
                    raise InvalidUpdateError(f"interrupt(update={question.update!r}) must be a dict of state keys.")
                self.spec.check_keys(pairs, f"interrupt(update=…) in node {question.node!r} holds")
                writes += pairs.items()
        return edited_checkpoint(self.spec, self.checkpoint, writes, source="interrupt")

    def _paused(self, asks: tuple[Question, ...], finished: frozenset[str] = frozenset()) -> Flow:
        ending = Ending(self.checkpoint, asks, finished)
        if PAUSED in self.wants:
            yield Emit(PAUSED, ending)
        return ending

    # ── Ends ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _finish(self) -> Flow:
        if self.durable and not self.is_settled:
            yield Commit(self.checkpoint, None, RunStatus.DONE)
            self.is_settled = True
        return Ending(self.checkpoint, ())

    def _fail_step(self, outcomes: list[Outcome], failed: list[Outcome]) -> Generator[Any, Any, None]:
        """Keep what finished and what asks, tell every error, raise the first in task order."""
        error = failed[0].error
        assert error is not None
        note = f"During task with name {failed[0].task.node!r} and id {failed[0].task.id!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        if self.durable:
            asks = tuple(question for outcome in outcomes for question in outcome.asks)
            checkpoint, changed = self._with_pause_updates(asks)
            yield Commit(
                checkpoint,
                changed if checkpoint is not self.checkpoint else None,
                self._status_after(error, asks),
                (*self.unsaved, *failed),
                opens=asks,
                error=error,
            )
            self.is_settled = True
        yield from self._tell()
        raise error

    def _status_after(self, error: Exception, asks: Sequence[Question]) -> RunStatus:
        if asks or any(wait.status is WaitStatus.OPEN for wait in self.waits):
            return RunStatus.WAITING
        return RunStatus.BLOCKED if isinstance(error, ReplayMismatchError) else RunStatus.FAILED

    def fail(self, error: Exception) -> Generator[Any, Any, None]:
        """End a run that cannot go on. Its last checkpoint stands, and results already recorded are kept."""
        self.is_settled = True
        status = self._status_after(error, ())
        try:
            yield Commit(self.checkpoint, None, status, error=error)
        except Exception as second:  # noqa: BLE001 — the first error is the one to tell; this one goes along with it
            error.add_note(f"The run could not be marked as {status.value} either: {second}")

    def _too_long(self) -> str:
        saved = "The state is saved: go on with invoke(None, config), or allow" if self.durable else "Allow"
        return (
            f"The run took {self.request.recursion_limit} steps without reaching its end; the next would run "
            f'{", ".join(self.checkpoint.next)}. {saved} more with config={{"recursion_limit": …}}.'
        )


__all__ = ["Flow", "advance"]
