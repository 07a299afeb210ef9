"""Tasks that the code of a node starts (`@task`): each runs beside that code, asks for itself, and is made once.

A child is a task of the thread's tree, with the path of its parent: `12.plan:fetch#2` is the second call of `fetch` in
task `12.plan`. Its result is a line in its parent's journal, under its name and number and with the digest of its
arguments; so a call that was made before is never answered with the result of another one. A call that has only asked
so far leaves a line, too: it is begun, and its question belongs to these arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from re import findall
from threading import Lock
from typing import Any

from bide.engine.actions import Write, settle_children, swallowed_by
from bide.engine.attempts import VALUE, cared_for
from bide.engine.channels import lend
from bide.engine.context import Pause, TaskContext, running_task, task_context
from bide.engine.drive import perform
from bide.engine.plan import place_in_tree
from bide.engine.pool import POOL
from bide.engine.spec import NodeSpec
from bide.engine.values import RESULT, TASK, Assignment, Emit, JournalEntry, Outcome, Question, Task
from bide.errors import InterruptSwallowedError, ReplayMismatchError, StepError
from bide.types import WaitStatus


class Kin(dict[str, Mapping[str, JournalEntry]]):
    """The journals of all tasks below one node: as they were read, and in `grown` as they have become since."""

    def __init__(self, read: Mapping[str, Mapping[str, JournalEntry]]) -> None:
        super().__init__(read)
        self.grown: dict[str, Mapping[str, JournalEntry]] = {}
        self.lock = Lock()

    @classmethod
    def around(cls, parent: TaskContext) -> Kin:
        """Return what is known of the tasks around and below this one: the same for all of them."""
        kin = parent.assignment.kin
        if not isinstance(kin, Kin):
            kin = cls(kin)
            parent.assignment = parent.assignment._replace(kin=kin)
        return kin

    def is_finished(self, task_id: str) -> bool:
        """Whether the result of a task is in the journal of the one that called it."""
        parent, _, key = task_id.rpartition(":")
        entry = self.get(parent, {}).get(key)
        return entry is not None and entry.is_done


class Handle(Future[Any]):
    """The result of a task that was started: `.result()` waits for it, and so does `await`.

    A task that has begun runs to its end: whoever waits may give up (`asyncio.wait_for`), the task does not.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.loop: Any = None
        """The event loop that it runs on, if it is async."""
        self.asks: tuple[Question, ...] = ()
        self.carried: list[Any] = []
        self.was_heard = False
        self.taken_back: list[Any] = []

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result; an error of the task is raised here."""
        self._hear()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the task; return its error, if it failed."""
        self._hear()
        return super().exception(timeout)

    def _hear(self) -> None:
        self.was_heard = True
        if self.loop is not None and not self.done() and running_loop() is self.loop:
            raise StepError(
                f"Task {self.name!r} is async and runs on this event loop, which .result() would stop for ever. "
                f"Write `await {self.name}(…)`."
            )

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the result on the event loop."""
        from asyncio import wrap_future  # a fifth of the time of `import bide`, which sync callers need not spend

        self.was_heard = True
        return wrap_future(self).__await__()

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Call back at its end: on the event loop, if that is where this is asked for, so that `asyncio.wait` works."""
        loop = running_loop()
        super().add_done_callback(fn if loop is None else partial(_call_on_loop, loop, copy_context(), fn))

    def remove_done_callback(self, fn: Callable[[Future[Any]], object]) -> int:
        """Take a callback back that was added on the event loop, as asyncio's futures let one do."""
        self.taken_back.append(fn)
        return 1

    @property
    def unheard(self) -> BaseException | None:
        """The error of a task that failed, and whose result nobody asked for."""
        error = super().exception() if self.done() and not self.was_heard else None
        return None if isinstance(error, Pause) else error

    def wait(self) -> None:
        """Wait for its end, whatever it is."""
        super().exception()

    async def settled(self) -> None:
        """Do what `wait` does, on the event loop."""
        from asyncio import get_running_loop

        ended = get_running_loop().create_future()
        # To wrap it would be to ask for its result, and its failure would then count as heard.
        self.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        await ended


class Child(Handle):
    """A task that was started, and how it runs."""

    def __init__(self, parent: TaskContext, node: NodeSpec, key: str, digest: str, call: tuple[Any, ...]) -> None:
        super().__init__(node.name)
        self.parent = parent
        self.node = node
        self.key = key
        self.digest = digest
        self.arguments = call
        self.kin = Kin.around(parent)
        self.frames_key = f"@frames {key}"
        """Where it is kept how graphs that go on between calls were left."""
        self.attempt = parent.attempt
        self.call = len(parent.visited)
        self.work: Any = None
        """The asyncio task in which it runs, if it is async."""
        task = Task(f"{parent.task.id}:{key}", node.name)
        below = (wait for wait in parent.assignment.waits if _is_below(wait.question.task_id, task.id))
        waits = tuple(sorted(below, key=lambda wait: place_in_tree(wait.question)))
        is_fresh = parent.assignment.is_fresh and parent.attempt == 1
        steps = self.kin.get(task.id, {})
        assignment = Assignment(task, parent.assignment.checkpoint, waits, steps, is_fresh=is_fresh, kin=self.kin)
        self.context = TaskContext(parent.run, assignment)
        # What an earlier attempt of the parent has had it do, is done.
        self.context.steps = self.kin.grown.get(task.id, steps)

    def begin(self) -> Child:
        """Run it, unless its journal or an open question says that there is nothing to run."""
        parent = self.parent
        before = parent.steps.get(self.key)
        if before is not None:
            self._check(before)
            if before.is_done:
                kept = parent.steps.get(self.frames_key)
                self._hand_up(None if kept is None else kept.value)
                self.set_result(lend(before.value))
                return self
        parent.children = parent.children or []
        parent.children.append(self)
        waits = self.context.assignment.waits
        waiting = [wait.question for wait in waits if wait.status is WaitStatus.OPEN]
        answered = {wait.question.task_id for wait in waits} - {question.task_id for question in waiting}
        if waiting and all(map(self.kin.is_finished, answered)):
            # Nobody has answered it yet: it is not run again, and asks what it asked.
            self.asks = tuple(waiting)
            self.set_exception(Pause(waiting[0]))
            return self
        self._start()
        return self

    def _check(self, before: JournalEntry) -> None:
        if before.digest != self.digest or before.name != self.node.name:
            given = ", ".join([*map(repr, self.arguments[0]), *(f"{k}={v!r}" for k, v in self.arguments[1].items())])
            raise ReplayMismatchError(
                f"Task {self.key!r} of {self.parent.task.node!r} is not the call that was recorded: its arguments "
                f"differ.\n  recorded: {before.name}, arguments with digest {before.digest[:12]}\n  now: "
                f"{self.node.name}({given[:200]}), digest {self.digest[:12]}\nThe recorded result belongs to another "
                f"call, so it was not used, and nothing was run. Call tasks in the same order at every run, with "
                f"arguments that depend only on the input and on other tasks; or give each a name of its own."
            )

    # ── How it runs ────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        if self.parent.run.journal is not None:
            self.parent.run.journal.check_held()
        self.parent.own_steps()
        if self.node.call.is_async:
            self._start_on_loop()
            return
        self.set_running_or_notify_cancel()
        self._tell(TASK)
        self.parent.run.crew.tally.begin()
        POOL.submit(copy_context().run, self._run)

    def _run(self) -> None:
        try:
            outcome = perform(self._story(), self.context)
        except BaseException as signal:  # noqa: BLE001 — raised where the result is asked for
            self._leave(signal)
        else:
            self._end(outcome)
        finally:
            self.parent.run.crew.tally.end()

    def _start_on_loop(self) -> None:
        import asyncio

        from bide.engine.adrive import aperform

        async def run() -> None:
            try:
                outcome = await aperform(self._story(), self.context)
            except BaseException as signal:
                self._leave(signal)
                if isinstance(signal, asyncio.CancelledError):
                    raise
                return
            self._end(outcome)

        crew = self.parent.run.crew
        try:
            self.loop = asyncio.get_running_loop() if hasattr(crew, "tasks") else None
        except RuntimeError:
            self.loop = None
        if self.loop is None:
            self.set_result(None)
            raise StepError(
                f"Task {self.node.name!r} is async, so it is called where an event loop runs: in an async node or "
                f"entrypoint, with `await`."
            )
        self.set_running_or_notify_cancel()
        self._tell(TASK)
        self.work = self.loop.create_task(run())
        crew.tasks.add(self.work)
        self.work.add_done_callback(crew.tasks.discard)

    def _story(self) -> Generator[Any, Any, Outcome]:
        """Run the function as its policies say, and keep its result before anybody hears of it."""
        context, parent, node = self.context, self.parent, self.node
        journal = parent.run.journal
        try:
            value = yield from cared_for(parent.run.spec, node, context, self.arguments, VALUE)
            if context.children:
                yield from settle_children(context)
                if context.inner:
                    raise Pause(context.inner[0])
            self._check_replayed()
            if journal is not None:
                if context.frames:
                    entry = JournalEntry("@frames", "", True, context.frames)
                    yield Write(journal.keep, (parent.task, self.frames_key, entry))
                yield from self._keep(journal.keep, JournalEntry(node.name, self.digest, True, value))
            writes = (("value", value),)
            return Outcome(
                context.task,
                writes,
                carried=tuple(context.carried),
                is_cached=context.space == "cached",
                streamed=context.streamed or frozenset(),
                is_value=True,
            )
        except (Pause, Exception, BaseExceptionGroup) as error:  # noqa: BLE001 — what a task raises is its outcome
            if context.children:
                try:
                    yield from settle_children(context)
                except Exception as unheard:  # noqa: BLE001 — the first error is the one to tell
                    error.add_note(f"A task that it had started failed, too: {unheard!r}")
            outcome = self._unfinished(error)
            if outcome.asks and journal is not None and self.key not in parent.steps:
                yield from self._keep(journal.intend, JournalEntry(node.name, self.digest, False))
            return outcome

    def _keep(self, write: Any, entry: JournalEntry) -> Generator[Any, Any, None]:
        yield Write(write, (self.parent.task, self.key, entry))
        # Whoever called may change what it got; another attempt finds what was kept.
        self.parent.remember(self.key, entry._replace(value=lend(entry.value)))

    def _check_replayed(self) -> None:
        for key in self.context.unvisited():
            raise ReplayMismatchError(
                f"Task {self.key!r} of {self.parent.task.node!r} finished without making step {key!r}, which it had "
                f"made before.\n  recorded: {key}\n  now: (not made)\nIts code or its arguments changed between the "
                f"two runs. Keep the step, or go on with the code that made it."
            )

    def _unfinished(self, error: BaseException) -> Outcome:
        """Tell a task that asks from one that failed. Who waits for a task beside it has nothing to ask itself."""
        context = self.context
        if isinstance(error, BaseExceptionGroup):
            # asyncio.TaskGroup wraps what its tasks raise, a pause among it; a failure beside it counts more.
            pauses, rest = error.split(Pause)
            error = rest or _first(pauses or error)
        asks = tuple(map(self._placed, (*context.inner, *context.asked)))
        if isinstance(error, Pause) and asks:
            return Outcome(context.task, asks=asks, carried=tuple(context.carried))
        if not isinstance(error, Exception):
            raise error
        if context.asked and not isinstance(error, InterruptSwallowedError):
            swallowed = swallowed_by(context)
            swallowed.__cause__, error = error, swallowed
        inner = asks[: len(context.inner)]
        return Outcome(context.task, error=error, asks=inner, carried=tuple(context.carried))

    def _placed(self, question: Question) -> Question:
        """Note as which call this one was made; a question that was only read again knows its whole way."""
        is_whole = len(question.place) == len(_calls_in(question.task_id))
        return question if is_whole else question._replace(place=(self.call, *question.place))

    # ── How long its parent waits ──────────────────────────────────────────────────────────────────────────────────

    @property
    def is_given_up(self) -> bool:
        """Whether it goes on though the time of its parent is over."""
        return not self.done() and self.attempt != self.parent.attempt

    def wait(self) -> None:
        """Wait for its end; a thread that was given up is left to itself."""
        if not self.is_given_up:
            super().wait()

    async def settled(self) -> None:
        """Do what `wait` does, on the event loop; a coroutine that was given up is cancelled."""
        if self.is_given_up:
            self.was_heard = True
            if self.work is None:
                return
            self.work.cancel()
        await super().settled()

    # ── How it ends ────────────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, outcome: Outcome) -> None:
        self.asks = outcome.asks
        self.carried = [*outcome.carried]
        self.kin.grown[self.context.task.id] = self.context.own_steps()
        if outcome.is_done or outcome.error is not None:
            self._tell(RESULT, outcome)
        if outcome.error is not None:
            self.set_exception(outcome.error)
        elif outcome.asks:
            self.set_exception(Pause(outcome.asks[0]))
        else:
            self._hand_up(self.context.frames)
            self.set_result(outcome.writes[0][1])

    def _hand_up(self, frames: dict[str, int] | None) -> None:
        """Tell the parent where graphs that go on between calls now stand; it hands that on with its own result."""
        if frames:
            with self.kin.lock:
                self.parent.frames = {**(self.parent.frames or {}), **frames}

    def _leave(self, signal: BaseException) -> None:
        self.carried = [*self.context.carried]
        self.set_exception(signal)

    def _tell(self, kind: str, outcome: Outcome | None = None) -> None:
        """Tell the reader of the stream that the task begins, or how it ended."""
        run, context = self.parent.run, self.context
        if kind not in run.request.wants:
            return
        what = outcome or context.task._replace(arg=self.arguments)
        event = Emit(kind, (context.assignment.checkpoint, what), run.ns, run.spec)
        if run.tell is not None:
            run.tell(event)
            return
        with self.kin.lock:
            # Nobody listens while the node runs; its own result brings along what its tasks have to tell.
            self.parent.told = [*(self.parent.told or ()), *(context.told or ()), event]
            context.told = None


def running_loop() -> Any:
    """Return the event loop that this code runs on, or None."""
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        return None


def _call_on_loop(loop: Any, context: Any, fn: Callable[[Future[Any]], object], ended: Future[Any]) -> None:
    try:
        if fn not in ended.taken_back:  # type: ignore[attr-defined]
            loop.call_soon_threadsafe(fn, ended, context=context)
    except RuntimeError:
        return  # the loop is closed: whoever wanted to know has gone away


def _is_below(task_id: str, path: str) -> bool:
    """Whether a task is this one, or was started by it, or is part of a graph inside it."""
    return task_id.startswith(path) and task_id[len(path) : len(path) + 1] in ("", ":", "|")


def _calls_in(task_id: str) -> list[int]:
    """Return the numbers of the calls on the way to a task."""
    return [int(number) for number in findall(r"#(\d+)", task_id)]


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def start_child(node: NodeSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Child:
    """Start a task beside the code that calls it."""
    call = node.call
    named = {*kwargs, *call.parameters[: len(args)]}
    injected = tuple((name, what) for name, what in call.injected if name not in named)
    bound = call._replace(function=partial(call.function, *args, **kwargs), takes_state=False, injected=injected)
    parent = task_context(f"task {node.name!r}")
    if running_task() is None:
        raise StepError(
            f"Task {node.name!r} was called inside a step. A step is one call that is repeated or skipped as a whole: "
            f"call tasks beside it."
        )
    count = parent.step_counts[node.name] = parent.step_counts.get(node.name, 0) + 1
    key = f"{node.name}#{count}"
    parent.visited.add(key)
    journal = parent.run.journal
    digest = "" if journal is None else journal.codec.digest([list(args), kwargs])
    return Child(parent, replace(node, call=bound), key, digest, (args, kwargs)).begin()


__all__ = ["Child", "start_child"]
