"""The task that runs right now, and what its code may do: ask (`interrupt`) and look around (`get_config` …).

One context variable, set for the length of a task. Nothing is smuggled through config keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

from bide.engine.plan import planned_at, question_id
from bide.engine.run_context import Journal, RunContext
from bide.engine.spec import PREVIOUS
from bide.engine.values import CUSTOM, Assignment, Emit, JournalEntry, Question, Wait
from bide.errors import (
    GraphError,
    InterruptError,
    InvalidAnswerError,
    InvalidUpdateError,
    NodeTimeoutError,
    ReplayMismatchError,
    StepError,
    WaitCancelled,
    WaitExpired,
)
from bide.shape import build, json_schema
from bide.types import UNSET, Command, Overwrite, Runtime, StreamWriter, WaitStatus
from bide.waits.asked import WaitOptions, read_needs_of, schema_by_hand


class Pause(BaseException):
    """Unwinds a node that asked a question. If you see this, an `except BaseException` or a bare `except:` caught it.

    It is no `Exception`, so that `except Exception` lets it pass. Re-raise it, or catch narrower.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(f"node {question.node!r} waits for an answer; this signal must not be caught")
        self.question = question


class Leave(BaseException):
    """Unwinds a node whose code called a graph that told the graph around it where to go. Not to be caught."""

    def __init__(self, commands: tuple[Command[Any], ...]) -> None:
        super().__init__("a graph inside this node leads elsewhere; this signal must not be caught")
        self.commands = commands

    def as_result(self) -> list[Command[Any]]:
        """Return what the node is taken to have returned."""
        return [Command(update=command.update, goto=command.goto) for command in self.commands]


class TaskContext:
    """One task while it runs: its answers, its journal, and what it has asked so far."""

    __slots__ = (
        "asked",
        "assignment",
        "attempt",
        "calls",
        "carried",
        "children",
        "config",
        "frames",
        "inner",
        "pulse",
        "run",
        "space",
        "step_counts",
        "steps",
        "streamed",
        "task",
        "told",
        "unawaited",
        "unkeyed",
        "visited",
        "waits",
    )

    def __init__(self, run: RunContext, assignment: Assignment) -> None:
        self.run = run
        self.assignment = assignment
        self.task = assignment.task
        waits = assignment.waits
        own = self.task.id
        self.waits: dict[str, Wait] = (
            {wait.question.key: wait for wait in waits if wait.question.task_id == own} if waits else {}
        )
        self.steps: Mapping[str, JournalEntry] = assignment.steps
        """The steps that are in the journal: from earlier runs, and from earlier attempts of this one."""
        self.asked: list[Question] = []
        self.inner: tuple[Question, ...] = ()
        """What graphs and tasks inside this task ask."""
        self.carried: list[Any] = []
        self.frames: dict[str, int] | None = None
        """Where graphs inside this task that go on between calls now stand."""
        self.children: list[Any] | None = None
        """Tasks that this task has started and must not outlive."""
        self.config = run.config
        self.unawaited: dict[str, Any] = {}
        """Async steps that were begun and that nobody has awaited yet."""
        self.told: list[Emit] | None = None
        """What tasks that this one has started have to tell, when nobody listens yet."""
        self.streamed: set[str] | None = None
        """Ids of messages that models have told already, when somebody listens."""
        self.attempt = 1
        self.pulse: Callable[[bool], None] | None = None
        """Who wants to know that the node is alive: whoever waits for it only so long."""
        self.space = ""
        self.begin_again()

    def begin_again(self) -> None:
        """Count questions, steps and calls from the start: the node runs from its top."""
        self.unkeyed = 0
        self.calls = 0
        self.step_counts: dict[str, int] = {}
        self.visited: set[str] = set()

    @property
    def has_more(self) -> bool:
        """Whether the task leaves more than what its node returned."""
        is_told = self.streamed is not None or self.told is not None
        is_more = is_told or self.unawaited or self.carried or self.children or self.frames
        return bool(is_more or self.assignment.steps or self.space)

    def remember(self, key: str, entry: JournalEntry) -> None:
        """Know a step that was just made, so that another attempt does not make it again."""
        self.own_steps()[key] = entry

    def own_steps(self) -> dict[str, JournalEntry]:
        """Return the known steps as a dict that is this task's alone."""
        if self.steps is self.assignment.steps:
            self.steps = dict(self.steps)
        return self.steps  # type: ignore[return-value]

    def runtime(self) -> Runtime[Any]:
        """Describe the run to the node."""
        run, checkpoint = self.run, self.assignment.checkpoint
        return Runtime(
            thread_id=run.thread_id,
            run_id=run.run_id,
            task_id=self.task.id,
            node=self.task.node,
            step=checkpoint.step + 1,
            config=self.config,
            stream_writer=self.write,
            context=run.around.context,
            resume_value=checkpoint.resume_value,
            store=run.around.items,
            heartbeat=self.heartbeat,
            attempt=self.attempt,
            previous=checkpoint.values.get(PREVIOUS),
            control=run.request.control,
        )

    def write(self, data: Any) -> None:
        """Send a `custom` event to whoever reads the stream; to nobody, if nobody does."""
        _check_not_given_up(self, "The stream writer")
        self.sign_of_life()
        if self.run.tell is not None and CUSTOM in self.run.request.live:
            self.run.tell(Emit(CUSTOM, data, self.run.ns))

    def heartbeat(self) -> None:
        """Say that the node is alive: its idle timeout begins anew."""
        if self.pulse is not None and not _is_given_up(self):
            self.pulse(True)

    def sign_of_life(self) -> None:
        """Note that the node has done something, where its timeout counts that."""
        if self.pulse is not None and not _is_given_up(self):
            self.pulse(False)

    def unvisited(self) -> Iterable[str]:
        """Name the steps in the journal that this replay did not make."""
        return (key for key in self.assignment.steps if key not in self.visited and not key.startswith("@"))


_current: ContextVar[TaskContext | None] = ContextVar("bide_task", default=None)
_inside: ContextVar[tuple[TaskContext, str] | None] = ContextVar("bide_step", default=None)
_attempt: ContextVar[tuple[TaskContext, int] | None] = ContextVar("bide_attempt", default=None)


def running_task() -> TaskContext | None:
    """Return the task whose code runs right now, outside any step of it; None when there is none."""
    context = _current.get()
    outer = _inside.get()
    return None if context is None or (outer is not None and outer[0] is context) else context


def mark_attempt(context: TaskContext) -> None:
    """Let the code that runs from here on belong to the present attempt: when that is given up, it may do no more."""
    _attempt.set((context, context.attempt))


def _is_given_up(context: TaskContext) -> bool:
    attempt = _attempt.get()
    return attempt is not None and attempt[0] is context and attempt[1] != context.attempt


def _check_not_given_up(context: TaskContext, caller: str) -> None:
    if _is_given_up(context):
        raise NodeTimeoutError(
            f"{caller} was called by node {context.task.node!r} after its time was over. The attempt was given up; "
            f"nothing was written.",
            node=context.task.node,
        )


def task_context(caller: str) -> TaskContext:
    """Return the running task, or tell the caller that there is none."""
    context = _current.get()
    if context is None:
        kind = InterruptError if caller == "interrupt()" else StepError
        raise kind(
            f"{caller} was called outside a node. It works only inside the code of a node, a task or an entrypoint "
            f"while it runs; threads that you start yourself must run in contextvars.copy_context()."
        )
    _check_not_given_up(context, caller)
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
    **options: Unpack[WaitOptions],
) -> Any:
    """Pause this thread until somebody answers, and return the answer.

    The thread is saved and leaves memory. On resume the node runs again from its top, and this call returns the
    answer at once; put effects that must not be repeated into `step()`. Without `key`, questions are told apart by
    their order, and a question that reads differently on replay, though the state is the same, is an error: the answer
    was given to the first one.
    `update` is merged into the state together with the pause, once.

    `wake` is a condition (`bide.waits`): a fact that satisfies it answers. After `timeout` ("48h") the call returns
    `default`; without one it raises `WaitExpired`; `on_timeout="cancel"` or `"fail"` ends the run instead. `title`,
    `assignees` and `tags` are for the inbox; `remind_every` and `escalate_after` tell those people again, and then
    `escalate_to`.
    """
    context = task_context("interrupt()")
    journal = context.run.journal
    if journal is None:
        raise InterruptError(
            f"Node {context.task.node!r} called interrupt(), but the outermost graph has no store, so nobody could "
            f'ever resume it. Compile it with one, or give it to @entrypoint: checkpointer="sqlite:///bide.db", or '
            f"MemorySaver() for a try-out. A store of a graph inside does not count."
        )
    question = _question(context, journal, value, key, response_schema, update)
    wait = context.waits.get(question.key)
    if wait is not None and wait.status is not WaitStatus.OPEN:
        return _settled(context, question, wait, (response_schema, options), is_keyed=key is not None)
    needs = read_needs_of(options, question.schema)
    _ask(context, question._replace(needs=needs, schema=question.schema or schema_by_hand(needs)))


def _question(context: TaskContext, journal: Journal, value: Any, key: str | None, shape: Any, update: Any) -> Question:
    if key is None:
        key = f"#{context.space}{context.unkeyed}"
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
    if spec.value_key is not None or ":" in context.task.id.rpartition("|")[2]:
        raise InvalidUpdateError(
            f"interrupt(update=…) in {node!r}: an entrypoint and a task have no state that could be updated. Leave "
            f"update out; what is worth keeping is returned by a task, or saved with entrypoint.final(save=…)."
        )
    pairs = spec.read_update(update)
    if pairs is None:
        raise InvalidUpdateError(f"interrupt(update={update!r}) in node {node!r} must be a dict of state keys.")
    spec.check_keys(pairs, f"interrupt(update=…) in node {node!r} holds")
    for key, item in pairs.items():
        journal.codec.encode(item.value if isinstance(item, Overwrite) else item, f"state[{key!r}]")


def _settled(
    context: TaskContext, question: Question, wait: Wait, said: tuple[Any, WaitOptions], *, is_keyed: bool
) -> Any:
    """Return what a question was settled with, if it is the same question; `said` is what was said about it."""
    asked = wait.question
    shape, options = said
    default = options.get("default", UNSET)
    # After an edit from outside, or an update that came with the pause, a question may well read differently.
    is_as_planned = planned_at(context.task.id) == context.assignment.checkpoint.seq
    if not is_keyed and is_as_planned and asked.digest != question.digest:
        raise ReplayMismatchError(
            f"Node {question.node!r} asks another question on replay than the one that was answered.\n"
            f"  answered: {asked.value!r}\n  asked now: {question.value!r}\n"
            f"An answer counts only for the question it was given to. Make what the question is built from repeatable "
            f"(put it into step(), or into an earlier node), or name the question: interrupt(…, key='…')."
        )
    if wait.status is WaitStatus.CANCELLED:
        why = wait.answer if isinstance(wait.answer, dict) else {}
        who, reason = why.get("by"), why.get("reason")
        raise WaitCancelled(
            f"The question of node {question.node!r} was withdrawn{f' by {who}' if who else ''}"
            f"{f': {reason}' if reason else ''}.",
            wait_id=question.id,
        )
    if wait.status is WaitStatus.EXPIRED:
        if default is not UNSET:
            return default
        raise WaitExpired(
            f"Nobody answered node {question.node!r} in time. Catch WaitExpired in the node, or give "
            f"interrupt(…, default=…).",
            wait_id=question.id,
        )
    if shape is None:
        return wait.answer
    try:
        return build(shape, wait.answer)
    except InvalidAnswerError as problem:
        # The update came with the first asking; asking again does not bring it a second time.
        needs = read_needs_of(options, question.schema)
        _ask(context, question._replace(refused=problem, update=None, needs=needs))


def _ask(context: TaskContext, question: Question) -> None:
    if any(asked.id == question.id for asked in context.asked):
        raise InterruptError(
            f"Node {question.node!r} asks two questions with the key {question.key!r}. Give each its own key."
        )
    context.asked.append(question)
    raise Pause(question)


def get_config() -> Mapping[str, Any]:
    """Return the config of the running call, as it was given to `invoke`."""
    return task_context("get_config()").config


def get_runtime() -> Runtime[Any]:
    """Return what the running node may know of its run."""
    return task_context("get_runtime()").runtime()


def get_store() -> Any:
    """Return the long-term store of the running graph."""
    context = task_context("get_store()")
    if context.run.around.items is None:
        raise GraphError(
            "This graph has no long-term store. It has one when it is compiled with a checkpointer, or with "
            "compile(store=InMemoryStore())."
        )
    return context.run.around.items


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
    "Leave",
    "Pause",
    "TaskContext",
    "entering",
    "get_config",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "inside_step",
    "interrupt",
    "leaving",
    "mark_attempt",
    "running_task",
    "task_context",
]
