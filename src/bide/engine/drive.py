"""The interpreter of a flow in plain Python; `adrive` is its sister with asyncio.

Both perform effects and yield events while tasks run; the last thing that they yield is what the flow returned. They
decide nothing: what happens, and in which order, is told by `flow` and `work`, once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bide.engine.context import RunContext, TaskContext, entering, leaving
from bide.engine.spec import GraphSpec
from bide.engine.tally import Tally
from bide.engine.values import CUSTOM, Assignment, Begun, Emit, Join, Outcome, Start
from bide.engine.work import Story, work

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

E = TypeVar("E")

MOST_THREADS = 128
"""How many sync tasks of one step run at once, unless `max_concurrency` says less."""


class Saver(Protocol):
    """What saves a run. Blocking; async callers hop to a thread unless it is quick."""

    blocking: bool

    def perform(self, effect: Any) -> Any:
        """Do one of Load, Begin, Record, Commit, Edit."""
        ...

    def abandon(self, reason: BaseException) -> None:
        """Let go of a run that its caller has dropped; a no-op when it has ended."""
        ...


def run(flow: Generator[Any, Any, E], crew: Crew, saver: Saver | None) -> Iterator[Emit | E]:
    """Perform a flow in the caller's thread."""
    reply: Any = None
    problem: Exception | None = None
    try:
        while True:
            try:
                effect = flow.send(reply) if problem is None else flow.throw(problem)
            except StopIteration as told:
                yield told.value
                return
            reply = problem = None
            kind = effect.__class__
            try:
                if kind is Start:
                    crew.start(effect.assignments)
                elif kind is Join:
                    reply = yield from crew.join()
                elif kind is Emit:
                    yield effect
                else:
                    reply = save(saver, effect, crew.context)
            except Exception as error:  # noqa: BLE001 — the flow decides what an error means
                problem = error
    except BaseException as reason:
        crew.close()
        if saver is not None:
            crew.tally.when_idle(partial(saver.abandon, reason))
        raise
    finally:
        crew.close()


def save(saver: Saver | None, effect: Any, context: RunContext) -> Any:
    """Have one effect saved; tell the tasks of the run whose thread they are part of."""
    assert saver is not None, "a flow without a store saves nothing"
    reply = saver.perform(effect)
    if reply.__class__ is Begun:
        context.belong(reply)
    return reply


class Workforce:
    """What both crews have: the run that they work for, and threads for sync nodes, made when they are needed."""

    def __init__(self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool) -> None:
        self.spec = spec
        self.context = context
        self.most = most
        self.is_live = is_live
        self.lone: Assignment | None = None
        self.has_failed = False
        self.tally = Tally()
        self._pool: ThreadPoolExecutor | None = None

    def threads(self) -> ThreadPoolExecutor:
        """Return the threads of this crew."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # brings logging along: a tenth of `import bide`

            self._pool = ThreadPoolExecutor(self.most or MOST_THREADS, thread_name_prefix="bide-task")
        return self._pool

    def close(self) -> None:
        """Let go of the threads; those in the middle of a node finish by themselves, and no other task begins."""
        self.has_failed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False)


class Crew(Workforce):
    """Runs tasks for `run`: a lone one in the caller's thread, several in threads of their own."""

    def __init__(self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool) -> None:
        super().__init__(spec, context, most=most, is_live=is_live)
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        if is_live:
            context.emit = lambda data: self.inbox.put(Emit(CUSTOM, data))

    def start(self, assignments: tuple[Assignment, ...]) -> None:
        """Start tasks. With a live stream even a lone one gets a thread, so that its events flow while it runs."""
        if len(assignments) == 1 and not self.is_live:
            self.lone = assignments[0]
            return
        self.has_failed = False
        self.tally.begin(len(assignments))
        for assignment in assignments:
            self.threads().submit(copy_context().run, self._work, assignment)

    def join(self) -> Generator[Emit, None, list[Outcome]]:
        """Yield events until a task has finished; return every outcome there is by then."""
        if self.lone is not None:
            context = TaskContext(self.context, self.lone)
            self.lone = None
            return [perform(work(self.spec, context), context)]
        outcomes: list[Outcome] = []
        while True:
            try:
                item = self.inbox.get(block=not outcomes)
            except Empty:
                return outcomes
            if isinstance(item, Emit):
                yield item
            elif isinstance(item, BaseException):
                raise item
            else:
                outcomes.append(item)

    def _work(self, assignment: Assignment) -> None:
        try:
            self._work_now(assignment)
        finally:
            self.tally.end()

    def _work_now(self, assignment: Assignment) -> None:
        if self.has_failed:
            self.inbox.put(Outcome(assignment.task, is_skipped=True))
            return
        context = TaskContext(self.context, assignment)
        try:
            outcome = perform(work(self.spec, context), context)
        except BaseException as signal:  # noqa: BLE001 — handed to the caller's thread, which raises it
            self.inbox.put(signal)
            return
        self.has_failed = self.has_failed or outcome.error is not None
        self.inbox.put(outcome)


def perform(story: Story, context: TaskContext) -> Outcome:
    """Make the calls of a task's story, right here."""
    token = entering(context)
    try:
        action = next(story)
        while True:
            try:
                value = action.call.function(*action.args, **action.kwargs)
            except BaseException as error:  # noqa: BLE001 — the story decides which of them are outcomes
                action = story.throw(error)
            else:
                action = story.send(value)
    except StopIteration as told:
        outcome: Outcome = told.value
        return outcome
    finally:
        leaving(token)
