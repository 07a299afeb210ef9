"""The interpreter of a flow with asyncio: async nodes on the loop, sync nodes and a blocking store in threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from bide.engine.context import RunContext, TaskContext, entering, leaving
from bide.engine.drive import Saver, Workforce, save
from bide.engine.shield import to_its_end
from bide.engine.spec import GraphSpec
from bide.engine.values import CUSTOM, Assignment, Emit, Join, Outcome, Start
from bide.engine.work import Action, Story, work

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

    def __init__(self, spec: GraphSpec, context: RunContext, *, most: int | None, is_live: bool) -> None:
        super().__init__(spec, context, most=most, is_live=is_live)
        self.tasks: set[asyncio.Task[None]] = set()
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.gate = asyncio.Semaphore(most) if most else None
        if is_live:
            loop = asyncio.get_running_loop()
            context.emit = lambda data: self._emit(loop, Emit(CUSTOM, data))

    def _emit(self, loop: asyncio.AbstractEventLoop, event: Emit) -> None:
        # Nodes in threads write too; from the loop's own thread the order of events must not wait for a callback.
        try:
            on_loop = asyncio.get_running_loop() is loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            self.inbox.put_nowait(event)
        else:
            loop.call_soon_threadsafe(self.inbox.put_nowait, event)

    def start(self, assignments: tuple[Assignment, ...]) -> None:
        """Start tasks; a lone one without a live stream runs in the caller's own asyncio task."""
        if len(assignments) == 1 and not self.is_live:
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
            return [], [await self._perform(work(self.spec, context), context)]
        items = [await self.inbox.get()]
        while not self.inbox.empty():
            items.append(self.inbox.get_nowait())
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
        if self.has_failed:
            self.inbox.put_nowait(Outcome(assignment.task, is_skipped=True))
            return
        context = TaskContext(self.context, assignment)
        try:
            outcome = await self._perform(work(self.spec, context), context)
        except BaseException as signal:
            self.inbox.put_nowait(signal)
            if isinstance(signal, asyncio.CancelledError):
                raise
            return
        self.has_failed = self.has_failed or outcome.error is not None
        self.inbox.put_nowait(outcome)

    async def _perform(self, story: Story, context: TaskContext) -> Outcome:
        token = entering(context)
        try:
            action = next(story)
            while True:
                try:
                    if action.call.is_async:
                        value = await action.call.function(*action.args, **action.kwargs)
                    else:
                        value = await self._in_thread(action)
                except BaseException as error:  # noqa: BLE001 — the story decides which of them are outcomes
                    action = story.throw(error)
                else:
                    action = story.send(value)
        except StopIteration as told:
            outcome: Outcome = told.value
            return outcome
        finally:
            leaving(token)

    async def _in_thread(self, action: Action) -> Any:
        call = copy_context().run
        self.tally.begin()
        return await asyncio.get_running_loop().run_in_executor(self.threads(), self._guarded, call, action)

    def _guarded(self, call: Any, action: Action) -> Any:
        try:
            return call(action.call.function, *action.args, **action.kwargs)
        except StopIteration as stop:
            # A StopIteration cannot travel through a future; it is an error of the node like any other.
            raise RuntimeError("the node raised StopIteration") from stop
        finally:
            self.tally.end()

    async def stop(self) -> None:
        """Cancel the tasks and wait until they have let go of what they were saving."""
        self.has_failed = True
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)
