"""`replay_check`: would the threads that wait now still go on with the code as it is now?

Each paused node is run again against its own journal: recorded steps and answers are returned, and the check stops
where the node would do something new. Nothing is written, and no step is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bide.codec import Codec
from bide.engine.context import TaskContext
from bide.engine.drive import Crew, perform
from bide.engine.fitting import check_fits
from bide.engine.opening import Request
from bide.engine.run_context import RunContext, Surroundings
from bide.engine.spec import GraphSpec
from bide.engine.values import Assignment, Loaded, Outcome, Question, Task
from bide.engine.work import work
from bide.errors import BideError


class ReplayReport(NamedTuple):
    """What became of one paused task of one thread."""

    thread_id: str
    node: str
    task_id: str
    breaks: bool
    reason: str
    """Why it would break, or how far the check got."""


class Reached(BaseException):
    """The node has come to the end of its journal, and would now do something new."""


class DryJournal:
    """A journal that gives out what it holds, and ends the replay before anything is done."""

    blocking = False
    is_behind = False
    store = None

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def catch_up(self) -> None:
        """Do nothing: nothing is saved here."""

    def check_held(self) -> None:
        """End the replay: a step that is not in the journal would be made now."""
        raise Reached("a step that it has not made yet")

    def perform(self, effect: Any) -> Any:
        """End the replay: something would be saved."""
        raise Reached("something that would be saved")

    def inside(self, spec: GraphSpec, ns: str, prefix: str) -> Any:
        """End the replay: a graph inside would run."""
        raise Reached("a graph that it calls")

    def abandon(self, reason: BaseException) -> None:
        """Nothing is held."""

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Nothing is written, so nothing needs to be compared."""
        return True

    intend = keep = transact = spawn = lambda self, *args: self.perform(args)


def check_step(spec: GraphSpec, loaded: Loaded, around: Surroundings) -> Iterator[ReplayReport]:
    """Replay every task of a graph that waits for an answer to its own question."""
    checkpoint = loaded.checkpoint
    if checkpoint is None:
        return
    try:
        check_fits(spec, checkpoint)
    except BideError as problem:
        yield ReplayReport(loaded.thread_id, ", ".join(checkpoint.next), "", True, str(problem))
        return
    for task in checkpoint.tasks:
        open_asks = [wait.question for wait in loaded.open_waits if _is_of(wait.question, task)]
        if open_asks and spec.nodes[task.node].subgraph is None:
            reason, breaks = _replayed(spec, loaded, task, open_asks, around)
            yield ReplayReport(loaded.thread_id, task.node, task.id, breaks, reason)


def _is_of(question: Question, task: Task) -> bool:
    return question.kind == "call" and (
        question.task_id == task.id or question.task_id.startswith((f"{task.id}:", f"{task.id}|"))
    )


def _replayed(
    spec: GraphSpec, loaded: Loaded, task: Task, asks: Sequence[Question], around: Surroundings
) -> tuple[str, bool]:
    """Run one task against its journal; say how that went, and whether it would break."""
    assert loaded.checkpoint is not None
    waits = tuple(wait for wait in loaded.waits if _is_of(wait.question, task))
    kin = {id_: steps for id_, steps in loaded.steps.items() if id_.startswith(f"{task.id}:")}
    steps = loaded.steps.get(task.id, {})
    journal = DryJournal(spec.codec)
    run = RunContext(spec, Request(None), around, thread_id=loaded.thread_id, journal=journal)
    run.uid = loaded.uid or ""
    context = TaskContext(run, Assignment(task, loaded.checkpoint, waits, steps, is_fresh=False, kin=kin))
    try:
        outcome = _run(spec, context, run)
    except Reached as reached:
        return f"replays its journal, and comes to {reached}", False
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}", True
    if not outcome.asks:
        return f"finishes without asking {asks[0].value!r}, which waits for an answer", True
    left_out = next(iter(context.unvisited()), None)
    if left_out is not None:
        return f"asks again, but without making step {left_out!r} before, whose result is recorded", True
    return _compared(outcome.asks, asks)


def _run(spec: GraphSpec, context: TaskContext, run: RunContext) -> Outcome:
    node = spec.nodes[context.task.node]
    if not node.call.is_async:
        Crew(spec, run, most=None, is_live=False)
        return perform(work(spec, context), context)
    import asyncio

    from bide.engine.adrive import AsyncCrew, aperform

    async def replay() -> Outcome:
        AsyncCrew(spec, run, most=None, is_live=False)
        return await aperform(work(spec, context), context)

    return asyncio.run(replay())


def _compared(now: Sequence[Question], then: Sequence[Question]) -> tuple[str, bool]:
    before = {question.id: question for question in then}
    for question in now:
        old = before.get(question.id)
        if old is None:
            return f"asks {question.value!r}, which it had not asked; {then[0].value!r} waits for an answer", True
        if old.digest and question.digest != old.digest and question.key.startswith("#"):
            return f"asks {question.value!r} where it had asked {old.value!r}, and the answer would be refused", True
    return f"asks {now[0].value!r} again", False
