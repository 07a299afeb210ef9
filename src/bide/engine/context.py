"""The task that runs right now, and what its code may do: ask (`interrupt`) and look around (`get_config` …).

One context variable, set for the length of a task. Nothing is smuggled through config keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from bide.codec import Codec
from bide.engine.plan import planned_at, question_id
from bide.engine.spec import GraphSpec
from bide.engine.values import Assignment, Begun, JournalEntry, Question, Task, Wait
from bide.errors import InterruptError, InvalidAnswerError, InvalidUpdateError, ReplayMismatchError, StepError
from bide.shape import build, json_schema
from bide.types import Overwrite, Runtime, StreamWriter, WaitStatus


class Pause(BaseException):
    """Unwinds a node that asked a question. If you see this, an `except BaseException` or a bare `except:` caught it.

    It is no `Exception`, so that `except Exception` lets it pass. Re-raise it, or catch narrower.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(f"node {question.node!r} waits for an answer; this signal must not be caught")
        self.question = question


class Journal(Protocol):
    """Where the steps of a task are kept, durably, as soon as they are made."""

    codec: Codec
    blocking: bool

    def check_held(self) -> None:
        """Raise LeaseLostError if the run is no longer ours: its steps must not go on."""
        ...

    def intend(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep that a step is about to be made."""
        ...

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep the result of a step."""
        ...

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        ...

    def transact(self, task: Task, key: str, entry: JournalEntry, work: Callable[[Any], Any]) -> Any:
        """Run `work` with a database connection and keep its result in the same transaction."""
        ...


class RunContext:
    """What all tasks of one run share."""

    __slots__ = ("config", "context", "emit", "journal", "run_id", "spec", "thread_id", "uid")

    def __init__(
        self,
        *,
        spec: GraphSpec,
        thread_id: str | None,
        config: Mapping[str, Any],
        context: Any,
        emit: StreamWriter | None,
        journal: Journal | None,
    ) -> None:
        self.spec = spec
        self.thread_id = thread_id
        self.config = config
        self.context = context
        self.emit = emit
        self.journal = journal
        self.uid = ""
        self.run_id: str | None = None

    def belong(self, begun: Begun) -> None:
        """Learn which thread and which run this is, once it has begun."""
        self.uid, self.run_id, self.thread_id = begun.uid, begun.run_id, begun.thread_id
        self.config = {**self.config, "configurable": {**self.config["configurable"], "thread_id": begun.thread_id}}


class TaskContext:
    """One task while it runs: its answers, its journal, and what it has asked so far."""

    __slots__ = ("asked", "assignment", "run", "step_counts", "task", "unkeyed", "visited", "waits")

    def __init__(self, run: RunContext, assignment: Assignment) -> None:
        self.run = run
        self.assignment = assignment
        self.task = assignment.task
        waits = assignment.waits
        self.waits: dict[str, Wait] = {wait.question.key: wait for wait in waits} if waits else {}
        self.unkeyed = 0
        self.asked: list[Question] = []
        self.step_counts: dict[str, int] = {}
        self.visited: set[str] = set()

    def runtime(self) -> Runtime[Any]:
        """Describe the run to the node."""
        run, checkpoint = self.run, self.assignment.checkpoint
        return Runtime(
            thread_id=run.thread_id,
            run_id=run.run_id,
            task_id=self.task.id,
            node=self.task.node,
            step=checkpoint.step + 1,
            config=run.config,
            stream_writer=self.write,
            context=run.context,
            resume_value=checkpoint.resume_value,
        )

    def write(self, data: Any) -> None:
        """Send a `custom` event to whoever reads the stream; to nobody, if nobody does."""
        if self.run.emit is not None:
            self.run.emit(data)

    def unvisited(self) -> Iterable[str]:
        """Name the steps in the journal that this replay did not make."""
        return (key for key in self.assignment.steps if key not in self.visited)


_current: ContextVar[TaskContext | None] = ContextVar("bide_task", default=None)
_inside: ContextVar[tuple[TaskContext, str] | None] = ContextVar("bide_step", default=None)


def task_context(caller: str) -> TaskContext:
    """Return the running task, or tell the caller that there is none."""
    context = _current.get()
    if context is None:
        kind = StepError if caller == "step()" else InterruptError
        raise kind(
            f"{caller} was called outside a node. It works only inside the code of a node while its graph runs; "
            f"threads that you start yourself must run in contextvars.copy_context()."
        )
    outer = _inside.get()
    # A step may run another graph, whose nodes are tasks of their own and not inside this step.
    if outer is not None and outer[0] is context and caller in ("interrupt()", "step()"):
        raise StepError(
            f"{caller} was called inside step {outer[1]!r}. A step is one call that is repeated or skipped as a whole: "
            f"ask and make further steps in the node, beside it."
        )
    return context


@contextmanager
def inside_step(key: str) -> Iterator[None]:
    """Mark that a step's own function runs."""
    context = _current.get()
    token = _inside.set(None if context is None else (context, key))
    try:
        yield
    finally:
        _inside.reset(token)


def interrupt(
    value: Any,
    *,
    key: str | None = None,
    response_schema: Any = None,
    update: Any = None,
) -> Any:
    """Pause this thread until somebody answers, and return the answer.

    The thread is saved and leaves memory. On resume the node runs again from its top, and this call returns the
    answer at once; put effects that must not be repeated into `step()`. Without `key`, questions are told apart by
    their order, and a question that reads differently on replay, though the state is the same, is an error: the answer
    was given to the first one.
    `update` is merged into the state together with the pause, once.
    """
    context = task_context("interrupt()")
    journal = context.run.journal
    if journal is None:
        raise InterruptError(
            f"Node {context.task.node!r} called interrupt(), but the graph has no store, so nobody could ever resume "
            f"it. "
            f'Compile it with one: graph.compile(checkpointer="sqlite:///bide.db"), or MemorySaver() for a try-out.'
        )
    question = _question(context, journal, value, key, response_schema, update)
    wait = context.waits.get(question.key)
    if wait is not None and wait.status is WaitStatus.ANSWERED:
        return _answer(context, question, wait, response_schema, is_keyed=key is not None)
    _ask(context, question)


def _question(context: TaskContext, journal: Journal, value: Any, key: str | None, shape: Any, update: Any) -> Question:
    if key is None:
        key = f"#{context.unkeyed}"
        context.unkeyed += 1
    elif not key or key[0] in "#@":
        raise InterruptError(
            f"interrupt(key={key!r}): a key must not be empty or begin with '#' or '@'. Choose a word."
        )
    task = context.task
    journal.codec.encode(value, f"interrupt value in node {task.node!r}")
    _check_update(context, journal, update)
    return Question(
        id=question_id(context.run.uid, task.id, key),
        task_id=task.id,
        node=task.node,
        key=key,
        kind="call",
        value=value,
        digest=journal.codec.digest(value),
        schema=None if shape is None else json_schema(shape),
        update=update,
    )


def _check_update(context: TaskContext, journal: Journal, update: Any) -> None:
    """Find a mistake in `update` here, where it is the node's own, and not when the pause is saved."""
    if update is None:
        return
    spec, node = context.run.spec, context.task.node
    pairs = spec.read_update(update)
    if pairs is None:
        raise InvalidUpdateError(f"interrupt(update={update!r}) in node {node!r} must be a dict of state keys.")
    spec.check_keys(pairs, f"interrupt(update=…) in node {node!r} holds")
    for key, item in pairs.items():
        journal.codec.encode(item.value if isinstance(item, Overwrite) else item, f"state[{key!r}]")


def _answer(context: TaskContext, question: Question, wait: Wait, shape: Any, *, is_keyed: bool) -> Any:
    asked = wait.question
    # After an edit from outside, or an update that came with the pause, a question may well read differently.
    is_as_planned = planned_at(context.task.id) == context.assignment.checkpoint.seq
    if not is_keyed and is_as_planned and asked.digest != question.digest:
        raise ReplayMismatchError(
            f"Node {question.node!r} asks another question on replay than the one that was answered.\n"
            f"  answered: {asked.value!r}\n  asked now: {question.value!r}\n"
            f"An answer counts only for the question it was given to. Make what the question is built from repeatable "
            f"(put it into step(), or into an earlier node), or name the question: interrupt(…, key='…')."
        )
    if shape is None:
        return wait.answer
    try:
        return build(shape, wait.answer)
    except InvalidAnswerError as problem:
        # The update came with the first asking; asking again does not bring it a second time.
        _ask(context, question._replace(refused=problem, update=None))


def _ask(context: TaskContext, question: Question) -> None:
    if any(asked.id == question.id for asked in context.asked):
        raise InterruptError(
            f"Node {question.node!r} asks two questions with the key {question.key!r}. Give each its own key."
        )
    context.asked.append(question)
    raise Pause(question)


def get_config() -> Mapping[str, Any]:
    """Return the config of the running call, as it was given to `invoke`."""
    return task_context("get_config()").run.config


def get_runtime() -> Runtime[Any]:
    """Return what the running node may know of its run."""
    return task_context("get_runtime()").runtime()


def get_stream_writer() -> StreamWriter:
    """Return a function that sends `custom` events to the reader of the stream."""
    return task_context("get_stream_writer()").write


def entering(context: TaskContext) -> Any:
    """Make `context` the running task; give the result to `leaving`."""
    return _current.set(context)


def leaving(token: Any) -> None:
    """Undo `entering`."""
    _current.reset(token)


__all__ = [
    "Journal",
    "Pause",
    "RunContext",
    "TaskContext",
    "entering",
    "get_config",
    "get_runtime",
    "get_stream_writer",
    "inside_step",
    "interrupt",
    "leaving",
    "task_context",
]
