"""Tasks that the code of a node starts (`@task`): each runs beside that code, asks for itself, and is made once.

A child is a task of the thread's tree, with the path of its parent: `12.plan:fetch#2` is the second call of `fetch` in
task `12.plan`. Its result is a line in its parent's journal, under its name and number and with the digest of its
arguments; so a call that was made before is never answered with the result of another one.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

from bide.engine.actions import Write, settle_children
from bide.engine.attempts import VALUE, cared_for
from bide.engine.context import Pause, TaskContext, task_context
from bide.engine.drive import perform
from bide.engine.pool import POOL
from bide.engine.spec import NodeSpec
from bide.engine.values import RESULT, Assignment, Emit, JournalEntry, Outcome, Question, Task
from bide.errors import InterruptSwallowedError, ReplayMismatchError, StepError
from bide.types import WaitStatus


class Child(Future[Any]):
    """The result of a task that was started: `.result()` waits for it, and so does `await`."""

    def __init__(self, parent: TaskContext, node: NodeSpec, key: str, digest: str, call: tuple[Any, ...]) -> None:
        super().__init__()
        self.parent = parent
        self.node = node
        self.key = key
        self.digest = digest
        self.arguments = call
        self.asks: tuple[Question, ...] = ()
        self.carried: list[Any] = []
        self.was_heard = False
        task = Task(f"{parent.task.id}:{key}", node.name)
        waits = tuple(wait for wait in parent.assignment.waits if wait.question.task_id.startswith(task.id))
        kin = {id_: steps for id_, steps in parent.assignment.kin.items() if id_.startswith(f"{task.id}:")}
        steps = parent.assignment.kin.get(task.id, {})
        is_fresh = parent.assignment.is_fresh and parent.attempt == 1
        assignment = Assignment(task, parent.assignment.checkpoint, waits, steps, is_fresh=is_fresh, kin=kin)
        self.context = TaskContext(parent.run, assignment)

    # ── What whoever started it sees ───────────────────────────────────────────────────────────────────────────────

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result; an error of the task is raised here."""
        self.was_heard = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the task; return its error, if it failed."""
        self.was_heard = True
        return super().exception(timeout)

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the result on the event loop."""
        from asyncio import wrap_future  # a fifth of the time of `import bide`, which sync callers need not spend

        self.was_heard = True
        return wrap_future(self).__await__()

    @property
    def unheard(self) -> Exception | None:
        """The error of a task that failed, and whose result nobody asked for."""
        error = super().exception() if self.done() and not self.was_heard else None
        return error if isinstance(error, Exception) else None

    def wait(self) -> None:
        """Wait for its end, whatever it is."""
        super().exception()

    async def settled(self) -> None:
        """Do what `wait` does, on the event loop."""
        from asyncio import wait, wrap_future

        ended = wrap_future(self)
        await wait([ended])
        ended.exception()  # else the loop would complain that nobody looked

    # ── How it runs ────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> Child:
        """Run it, unless its journal or an open question says that there is nothing to run."""
        parent = self.parent
        before = parent.steps.get(self.key)
        if before is not None:
            self._check(before)
            self.set_result(before.value)
            return self
        parent.children = [*(parent.children or ()), self]
        waiting = [wait.question for wait in self.context.assignment.waits if wait.status is WaitStatus.OPEN]
        settled = {wait.question.task_id for wait in self.context.assignment.waits} - {q.task_id for q in waiting}
        if waiting and not settled:
            # Nobody has answered it yet: it is not run again, and asks what it asked.
            self.asks = tuple(waiting)
            self.set_exception(Pause(waiting[0]))
            return self
        parent.own_steps()
        if self.node.call.is_async:
            self._start_on_loop()
        else:
            tally = parent.run.crew.tally
            tally.begin()
            POOL.submit(copy_context().run, self._run)
        return self

    def _check(self, before: JournalEntry) -> None:
        if before.digest != self.digest or before.name != self.node.name:
            raise ReplayMismatchError(
                f"Task {self.key!r} of {self.parent.task.node!r} is not the call that was recorded: its arguments "
                f"differ.\n  recorded arguments: digest {before.digest[:12]}\n  arguments now: digest "
                f"{self.digest[:12]}\nThe recorded result belongs to another call, so it was not used, and nothing "
                f"was run. Call tasks in the same order at every run, with arguments that depend only on the input and "
                f"on other tasks; or give each a name of its own."
            )

    def _run(self) -> None:
        try:
            outcome = perform(self._story(), self.context)
        except BaseException as signal:  # noqa: BLE001 — raised where the result is asked for
            self.set_exception(signal)
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
                self.set_exception(signal)
                if isinstance(signal, asyncio.CancelledError):
                    raise
                return
            self._end(outcome)

        crew = self.parent.run.crew
        try:
            task = asyncio.get_running_loop().create_task(run()) if hasattr(crew, "tasks") else None
        except RuntimeError:
            task = None
        if task is None:
            self.set_result(None)
            raise StepError(
                f"Task {self.node.name!r} is async, so it is called where an event loop runs: in an async node or "
                f"entrypoint, with `await`."
            )
        crew.tasks.add(task)
        task.add_done_callback(crew.tasks.discard)

    def _end(self, outcome: Outcome) -> None:
        self.asks = outcome.asks
        self.carried = [*outcome.carried]
        if outcome.error is not None:
            self.set_exception(outcome.error)
        elif outcome.asks:
            self.set_exception(Pause(outcome.asks[0]))
        else:
            self._tell(outcome)
            self.set_result(outcome.writes[0][1])

    def _story(self) -> Generator[Any, Any, Outcome]:
        """Run the function as its policies say, and keep its result before anybody hears of it."""
        context, parent, node = self.context, self.parent, self.node
        task = context.task
        try:
            value = yield from cared_for(parent.run.spec, node, context, self.arguments, VALUE)
            if context.asked:
                raise InterruptSwallowedError(
                    f"Task {node.name!r} called interrupt({context.asked[0].value!r}) and then caught its signal."
                )
            if context.children:
                yield from settle_children(context)
                if context.inner:
                    raise Pause(context.inner[0])
            journal = parent.run.journal
            if journal is not None:
                entry = JournalEntry(node.name, self.digest, True, value)
                yield Write(journal.keep, (parent.task, self.key, entry))
                parent.remember(self.key, entry)
            return Outcome(task, (("value", value),), carried=tuple(context.carried))
        except Pause:
            if context.children:
                yield from settle_children(context)
            return Outcome(task, asks=(*context.asked, *context.inner), carried=tuple(context.carried))
        except Exception as error:  # noqa: BLE001 — what a task raises is its outcome
            if context.children:
                yield from settle_children(context)
            return Outcome(task, error=error, asks=context.inner, carried=tuple(context.carried))

    def _tell(self, outcome: Outcome) -> None:
        """Tell the reader of a live stream what the task returned."""
        run = self.parent.run
        if run.tell is not None and RESULT in run.request.wants and run.spec.value_key is not None:
            run.tell(Emit(RESULT, (self.context.assignment.checkpoint, outcome), run.ns, run.spec))


def start_child(node: NodeSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Child:
    """Start a task beside the code that calls it."""
    call = node.call
    named = {*kwargs, *call.parameters[: len(args)]}
    injected = tuple((name, what) for name, what in call.injected if name not in named)
    bound = call._replace(function=partial(call.function, *args, **kwargs), takes_state=False, injected=injected)
    parent = task_context(f"task {node.name!r}")
    count = parent.step_counts[node.name] = parent.step_counts.get(node.name, 0) + 1
    key = f"{node.name}#{count}"
    parent.visited.add(key)
    journal = parent.run.journal
    digest = "" if journal is None else journal.codec.digest([list(args), kwargs])
    return Child(parent, replace(node, call=bound), key, digest, (args, kwargs)).begin()


__all__ = ["Child", "start_child"]
