"""The interpreter of a flow with asyncio: async nodes on the loop, sync nodes and a blocking store in threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from bide.engine.actions import Action, Descend, Rest, Settle, Write
from bide.engine.ainbox import AsyncInbox
from bide.engine.context import TaskContext, entering, leaving, mark_attempt
from bide.engine.deadline import Deadline
from bide.engine.drive import MOST_THREADS, Saver, Workforce, go_inside, save, tell_inside
from bide.engine.pool import POOL
from bide.engine.run_context import RunContext
from bide.engine.shield import to_its_end
from bide.engine.spec import GraphSpec
from bide.engine.values import Assignment, Emit, Ending, Join, Outcome, Start
from bide.engine.work import Story, work

E = TypeVar("E")


async def arun(flow: Generator[Any, Any, E], crew: AsyncCrew, saver: Saver | None) -> AsyncGenerator[Emit | E, None]:
    """Perform a flow in the caller's event loop."""
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
            try:
                is_waiting = True
                while is_waiting:
                    events, reply = await _aperform(effect, crew, saver)
                    for event in events:
                        yield event
                    is_waiting = effect.__class__ is Join and not reply
            except Exception as error:  # noqa: BLE001 — the flow decides what an error means
                problem = error
    except BaseException as reason:
        await crew.stop()
        if saver is not None:
            crew.tally.when_idle(partial(saver.abandon, reason))
        raise
    finally:
        crew.close()


async def _aperform(effect: Any, crew: AsyncCrew, saver: Saver | None) -> tuple[Sequence[Emit], Any]:
    """Perform one effect; return the events to tell, and the reply to the flow."""
    kind = effect.__class__
    if kind is Start:
        crew.start(effect.assignments)
        return (), None
    if kind is Join:
        return await crew.join()
    if kind is Emit:
        return (effect,), None
    if saver is not None and saver.blocking:
        return (), await to_its_end(asyncio.to_thread(save, saver, effect, crew.context))
    return (), save(saver, effect, crew.context)


class AsyncCrew(Workforce):
    """Runs tasks for `arun`: async nodes as asyncio tasks, sync nodes in threads."""

    def __init__(
        self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool, outer: Workforce | None = None
    ) -> None:
        super().__init__(spec, context, most=most, is_live=is_live, outer=outer)
        self.tasks: set[asyncio.Task[None]] = set()
        around: AsyncInbox | None = outer.inbox if isinstance(outer, AsyncCrew) else None
        self.inbox: AsyncInbox = AsyncInbox(self.stopped, is_live=is_live, outer=around)
        self.desks = asyncio.Semaphore(MOST_THREADS)
        self.gate = asyncio.Semaphore(most) if most else None
        if is_live and outer is None:
            context.tell = self.inbox.tell

    def start(self, assignments: tuple[Assignment, ...]) -> None:
        """Start tasks; a lone one without a live stream runs in the caller's own asyncio task."""
        if len(assignments) == 1 and not (self.is_live and self.outer is None):
            self.lone = assignments[0]
            return
        self.has_failed = False
        for assignment in assignments:
            task = asyncio.create_task(self._work(assignment), name=f"bide {assignment.task.id}")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def join(self) -> tuple[list[Emit], list[Outcome]]:
        """Return what has come in: events, and outcomes if there are any by then."""
        if self.lone is not None:
            context = TaskContext(self.context, self.lone)
            self.lone = None
            return [], [await aperform(work(self.spec, context), context)]
        items = await self.inbox.take()
        for item in items:
            if isinstance(item, BaseException):
                raise item
        events = [item for item in items if isinstance(item, Emit)]
        return events, [item for item in items if not isinstance(item, Emit)]

    async def _work(self, assignment: Assignment) -> None:
        if self.gate is None:
            await self._work_now(assignment)
            return
        async with self.gate:
            await self._work_now(assignment)

    async def _work_now(self, assignment: Assignment) -> None:
        if self.is_failing and not assignment.routes_only:
            self.inbox.put(Outcome(assignment.task, is_skipped=True))
            return
        context = TaskContext(self.context, assignment)
        try:
            outcome = await self.inbox.throttled(aperform(work(self.spec, context), context))
        except BaseException as signal:
            self.inbox.put(signal)
            if isinstance(signal, asyncio.CancelledError):
                raise
            return
        self.has_failed = self.has_failed or outcome.error is not None
        self.inbox.put(outcome)

    async def stop(self) -> None:
        """Cancel the tasks and wait until they have let go of what they were saving."""
        self.has_failed = True
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)


async def aperform(story: Story, context: TaskContext) -> Outcome:
    """Do what a task's story says, on the loop."""
    scope = context.run.around.scope
    if scope is None:
        return await _aperform_story(story, context)
    with scope(context):
        return await _aperform_story(story, context)


async def _aperform_story(story: Story, context: TaskContext) -> Outcome:
    token = entering(context)
    try:
        action = next(story)
        while True:
            try:
                value = await _do(action, context)
            except BaseException as error:  # noqa: BLE001 — the story decides which of them are outcomes
                action = story.throw(error)
            else:
                action = story.send(value)
    except StopIteration as told:
        outcome: Outcome = told.value
        return outcome
    finally:
        leaving(token)


async def _do(action: Any, context: TaskContext) -> Any:
    kind = action.__class__
    if kind is Action:
        call = action.call
        if call.is_async or call.twin is not None:
            if action.limits is not None:
                return await _call_within(action, context)
            return await (call.twin or call.function)(*action.args, **action.kwargs)
        async with context.run.crew.desks:
            if action.limits is not None:
                return await _call_within(action, context)
            return await in_thread(context, call.function, *action.args, **action.kwargs)
    if kind is Descend:
        return await run_inside(action, context)
    return await _OTHERS[kind](action, context)


async def _write(action: Write, context: TaskContext) -> Any:
    return await to_its_end(asyncio.to_thread(action.function, *action.args))


async def _rest(action: Rest, context: TaskContext) -> None:
    clock = context.run.around.clock
    await clock.asleep((action.until - clock.now()) / 1000)


async def _settle(action: Settle, context: TaskContext) -> None:
    for child in action.children:
        await child.settled()


_OTHERS: dict[type, Callable[[Any, TaskContext], Awaitable[Any]]] = {Write: _write, Rest: _rest, Settle: _settle}


async def run_inside(action: Descend, context: TaskContext) -> Ending:
    """Run a graph inside a task, in the asyncio task of that task."""
    async for item in items_inside(action, context):
        ending = item
    assert isinstance(ending, Ending)
    return ending


async def items_inside(action: Descend, context: TaskContext) -> AsyncGenerator[Emit | Ending, None]:
    """Run a graph inside a task, and yield what it tells; the last item is its ending."""
    inner, flow = go_inside(action, context)
    outer: Workforce = context.run.crew
    crew = AsyncCrew(action.sub.spec, inner, most=outer.most, is_live=outer.is_live, outer=outer)
    async for item in arun(flow, crew, inner.journal):
        if isinstance(item, Emit):
            tell_inside(inner, item)
        yield item


def in_thread(context: TaskContext, function: Callable[..., Any], *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
    """Call a sync function in a thread; the run is not let go of before it has returned."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    tally = context.run.crew.tally

    def reply(value: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def call() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = function(*args, **kwargs)
        except StopIteration as stop:
            # A StopIteration cannot travel through a future; it is an error of the node like any other.
            error = RuntimeError("the node raised StopIteration")
            error.__cause__ = stop
        except BaseException as problem:  # noqa: BLE001 — raised where it is awaited
            error = problem
        finally:
            tally.end()
        try:
            loop.call_soon_threadsafe(reply, value, error)
        except RuntimeError:
            return  # the loop is closed: whoever waited has gone away

    tally.begin()
    POOL.submit(copy_context().run, call)
    return future


async def _call_within(action: Action, context: TaskContext) -> Any:
    """Call a node, and give it up when its time is over: a coroutine is cancelled, a thread is left to itself."""
    deadline = Deadline(action.limits, context)  # type: ignore[arg-type]
    function = action.call.twin or action.call.function
    is_async = action.call.is_async or action.call.twin is not None

    def call() -> Any:
        mark_attempt(context)
        return function(*action.args, **action.kwargs)

    async def acall() -> Any:
        mark_attempt(context)
        return await function(*action.args, **action.kwargs)

    work_: asyncio.Future[Any] = asyncio.ensure_future(acall()) if is_async else in_thread(context, call)
    try:
        while not work_.done():
            left = deadline.left()
            if left <= 0:
                raise deadline.over()
            await asyncio.wait([work_], timeout=min(left, 3600.0))
        context.pulse = None
        return work_.result()
    finally:
        if not work_.done():
            work_.cancel()
            if is_async:
                await asyncio.wait([work_], timeout=1.0)
