"""The interpreter of a flow in plain Python; `adrive` is its sister with asyncio.

Both perform effects and yield events while tasks run; the last thing that they yield is what the flow returned. They
decide nothing: what happens, and in which order, is told by `flow`, `nested` and `work`, once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

from bide.engine.actions import Action, Descend, Rest, Settle, Write
from bide.engine.context import TaskContext, entering, leaving, mark_attempt
from bide.engine.deadline import Deadline
from bide.engine.inbox import Inbox
from bide.engine.nested import descend
from bide.engine.plan import shown_element
from bide.engine.pool import POOL
from bide.engine.run_context import RunContext, merged_config
from bide.engine.spec import GraphSpec
from bide.engine.tally import Tally
from bide.engine.values import Assignment, Begun, Emit, Ending, Join, Outcome, Start
from bide.engine.work import Story, work
from bide.types import UNSET

E = TypeVar("E")

MOST_THREADS = 128
"""How many sync tasks of one step run at once, unless `max_concurrency` says less."""
FIRST_THREADS = 4
"""How many begin at once; quick tasks need no more."""
PATIENCE = 0.002
"""After so many seconds without a result, as many threads again are put to work."""


class Saver(Protocol):
    """What saves a run. Blocking; async callers hop to a thread unless it is quick."""

    blocking: bool

    def perform(self, effect: Any) -> Any:
        """Do one of Load, Begin, Prepare, Record, Commit, Edit."""
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
    """What both crews have: the graph that they work for, and the crew around it, if it is inside a task."""

    def __init__(
        self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool, outer: Workforce | None = None
    ) -> None:
        self.spec = spec
        self.context = context
        self.most = most
        self.is_live = is_live
        self.outer = outer
        self.lone: Assignment | None = None
        self.has_failed = False
        self.tally: Tally = Tally() if outer is None else outer.tally
        self.stopped: Event = Event() if outer is None else outer.stopped
        context.crew = self

    @property
    def is_failing(self) -> bool:
        """Whether no further task should begin: one of these, or one beside the task around them, has failed."""
        return self.has_failed or (self.outer is not None and self.outer.is_failing)

    def close(self) -> None:
        """Let go: tasks in the middle finish by themselves, no other begins, and nobody waits for a reader."""
        self.has_failed = True
        if self.outer is None:
            self.stopped.set()


class Crew(Workforce):
    """Runs tasks for `run`: a lone one in the caller's thread, several in threads of their own."""

    def __init__(
        self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool, outer: Workforce | None = None
    ) -> None:
        super().__init__(spec, context, most=most, is_live=is_live, outer=outer)
        self.inbox = Inbox(self.stopped, is_live=is_live)
        self._queue: deque[tuple[Assignment, Context]] = deque()
        self._hands = 0
        self._lock = Lock()
        if is_live and outer is None:
            context.tell = self.inbox.tell

    def start(self, assignments: tuple[Assignment, ...]) -> None:
        """Start tasks. With a live stream even a lone one gets a thread, so that its events flow while it runs."""
        if len(assignments) == 1 and not (self.is_live and self.outer is None):
            self.lone = assignments[0]
            return
        self.has_failed = False
        self.tally.begin(len(assignments))
        self._queue.extend((assignment, copy_context()) for assignment in assignments)
        self._put_to_work(FIRST_THREADS)

    def _put_to_work(self, hands: int) -> None:
        """Have more threads take tasks from the queue, as far as there are tasks for them."""
        with self._lock:
            more = min(hands, len(self._queue), (self.most or MOST_THREADS) - self._hands)
            self._hands += max(more, 0)
        for _ in range(more):
            POOL.submit(self._work_off)

    def join(self) -> Generator[Emit, None, list[Outcome]]:
        """Yield events until a task has finished; return every outcome there is by then."""
        if self.lone is not None:
            context = TaskContext(self.context, self.lone)
            self.lone = None
            return [perform(work(self.spec, context), context)]
        outcomes: list[Outcome] = []
        while True:
            try:
                item = self.inbox.get(block=not outcomes, timeout=PATIENCE if self._queue else None)
            except Empty:
                if outcomes:
                    return outcomes
                self._put_to_work(self._hands or FIRST_THREADS)
                continue
            if isinstance(item, Emit):
                yield item
            elif isinstance(item, BaseException):
                raise item
            else:
                outcomes.append(item)

    def _work_off(self) -> None:
        """Take tasks from the queue until it is empty."""
        while True:
            with self._lock:
                if not self._queue:
                    self._hands -= 1
                    return
                assignment, context = self._queue.popleft()
            try:
                context.run(self._work, assignment)
            finally:
                self.tally.end()

    def _work(self, assignment: Assignment) -> None:
        if self.is_failing and not assignment.routes_only:
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
    """Do what a task's story says, right here."""
    scope = context.run.around.scope
    if scope is None:
        return _perform(story, context)
    with scope(context):
        return _perform(story, context)


def _perform(story: Story, context: TaskContext) -> Outcome:
    token = entering(context)
    try:
        action = next(story)
        while True:
            try:
                value = _do(action, context)
            except BaseException as error:  # noqa: BLE001 — the story decides which of them are outcomes
                action = story.throw(error)
            else:
                action = story.send(value)
    except StopIteration as told:
        outcome: Outcome = told.value
        return outcome
    finally:
        leaving(token)


def _do(action: Any, context: TaskContext) -> Any:
    kind = action.__class__
    if kind is Action:
        if action.limits is None:
            return action.call.function(*action.args, **action.kwargs)
        return _call_within(action, context)
    if kind is Descend:
        return run_inside(action, context)
    return _OTHERS[kind](action, context)


def _rest(action: Rest, context: TaskContext) -> None:
    clock = context.run.around.clock
    clock.sleep((action.until - clock.now()) / 1000, context.run.crew.stopped)


def _settle(action: Settle, context: TaskContext) -> None:
    for child in action.children:
        child.wait()


_OTHERS: dict[type, Callable[[Any, TaskContext], Any]] = {
    Write: lambda action, context: action.function(*action.args),
    Rest: _rest,
    Settle: _settle,
}


def run_inside(action: Descend, context: TaskContext) -> Ending:
    """Run a graph inside a task, in the thread of that task."""
    for item in items_inside(action, context):
        ending = item
    assert isinstance(ending, Ending)
    return ending


def items_inside(action: Descend, context: TaskContext) -> Iterator[Emit | Ending]:
    """Run a graph inside a task, and yield what it tells; the last item is its ending."""
    inner, flow = go_inside(action, context)
    outer: Workforce = context.run.crew
    crew = Crew(action.sub.spec, inner, most=outer.most, is_live=outer.is_live, outer=outer)
    for item in run(flow, crew, inner.journal):
        if isinstance(item, Emit):
            tell_inside(inner, item)
        yield item


def go_inside(action: Descend, context: TaskContext) -> tuple[RunContext, Generator[Any, Any, Ending]]:
    """Prepare to run a graph inside a task: what its tasks share, and its story."""
    run_, sub, site = context.run, action.sub, action.site
    outer = run_.request
    request = outer._replace(
        input=action.given,
        seq=None,
        before=sub.before,
        after=sub.after,
        wants=action.wants | (outer.wants if outer.subgraphs else frozenset()),
        durable=outer.has_thread and sub.keeps is not False,
        recursion_limit=action.limit or outer.recursion_limit,
    )
    journal = None if run_.journal is None else run_.journal.inside(sub.spec, site.ns, site.prefix)
    inner = run_.inside(sub.spec, request, journal, (*run_.ns, *shown_element(site.prefix[:-1].rpartition("|")[2])))
    for said in (sub.config, action.config):
        inner.config = merged_config(inner.config, said) or {} if said else inner.config
    if action.context is not UNSET:
        inner.around = inner.around._replace(context=action.context)
    return inner, descend(sub, request, site, run_.uid)


def tell_inside(inner: RunContext, event: Emit) -> None:
    """Hand an event of a graph inside a task to the reader of the stream."""
    if inner.tell is not None and inner.outer_wants(event.kind):
        inner.tell(event if event.ns else event._replace(ns=inner.ns, spec=inner.spec))


def _call_within(action: Action, context: TaskContext) -> Any:
    """Call a node in a thread of its own, and give it up when its time is over."""
    deadline = Deadline(action.limits, context)  # type: ignore[arg-type]
    answer: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    end = context.run.crew.tally.share()

    def call() -> None:
        mark_attempt(context)
        try:
            answer.put((action.call.function(*action.args, **action.kwargs), None))
        except BaseException as error:  # noqa: BLE001 — raised in the thread that waits for it
            answer.put((None, error))
        finally:
            end()

    POOL.submit(copy_context().run, call)
    while True:
        left = deadline.left()
        if left <= 0:
            end()  # what it does counts no more, so the run need not wait for it
            raise deadline.over()
        try:
            value, error = answer.get(timeout=min(left, 3600.0))
        except Empty:
            continue
        context.pulse = None
        if error is not None:
            raise error
        return value


__all__ = ["Crew", "Saver", "Workforce", "go_inside", "perform", "run", "run_inside", "save", "tell_inside"]
