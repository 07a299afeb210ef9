"""`step()`: one journaled call inside a node, made once however often the node replays."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from bide.engine.context import TaskContext, inside_step, interrupt, task_context
from bide.engine.run_context import Journal
from bide.engine.values import JournalEntry
from bide.errors import ReplayMismatchError, StepError
from bide.types import Effect


@dataclass(frozen=True, slots=True)
class Done:
    """What `verify` returns when the effect in doubt has happened, with its result."""

    value: Any = None


class NotDone:
    """What `verify` returns when the effect in doubt has surely not happened."""


Verify = Callable[[str], Done | NotDone | type[NotDone] | None]


def step(
    function: Callable[..., Any],
    *args: Any,
    key: str | None = None,
    effect: Effect = "idempotent",
    verify: Verify | None = None,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)` once, keep its result durably, and return it at every replay of this node.

    An `async` function gives something to await. A parameter named `idempotency_key` is filled with a key that is the
    same at every attempt. `effect` says what a crash in the middle means:
    `"idempotent"`: the call may be repeated, with the same key · `"once"`: never repeated on doubt; `verify(key)` is
    asked, else a person · `"tx"`: `function(connection, …)` writes to the store's own database, in the same transaction
    as the journal.
    """
    context = task_context("step()")
    made = _make(context, function, args, kwargs, key, effect, verify)
    if inspect.iscoroutinefunction(function):
        return _to_await(context, made)
    return _perform(_story(context, made))


def _to_await(context: TaskContext, made: _Made) -> Coroutine[Any, Any, Any]:
    """Return an async step to be awaited; one that nobody awaits is told when the node ends, since it is not made."""
    from asyncio import get_running_loop  # a fifth of the time of `import bide`, which sync callers need not spend

    try:
        get_running_loop()
    except RuntimeError:
        raise StepError(
            f"step({made.name}): {made.name!r} is async and {context.task.node!r} is a plain function, so nothing "
            f"would run it. Make the node `async def`, write `await step({made.name}, …)`, and run it with ainvoke()."
        ) from None
    journal = context.run.journal
    waiting: Coroutine[Any, Any, Any]

    async def begin() -> Any:
        context.unawaited.pop(made.key, None)
        return await _perform_async(_story(context, made), hops=journal is not None and journal.blocking)

    waiting = context.unawaited[made.key] = begin()
    return waiting


class _Made(NamedTuple):
    key: str
    name: str
    digest: str
    effect: Effect
    verify: Verify | None
    idempotency_key: str
    call: Callable[..., Any]
    arguments: list[Any]

    def entry(self, *, is_done: bool, value: Any = None) -> JournalEntry:
        return JournalEntry(self.name, self.digest, is_done, value)


class _Write(NamedTuple):
    """A write to the journal: blocking, so async nodes hop to a thread for it."""

    call: Callable[..., Any]
    args: tuple[Any, ...]


class _Effect(NamedTuple):
    """A call of the user's function."""

    call: Callable[..., Any]
    key: str


def _make(
    context: TaskContext,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    key: str | None,
    effect: Effect,
    verify: Verify | None,
) -> _Made:
    if not callable(function):
        raise StepError(
            f"step() got {function!r}, which cannot be called. It takes the function and its arguments apart: "
            f"step(charge, order), not step(charge(order))."
        )
    if effect not in ("idempotent", "once", "tx"):
        raise StepError(f"step(effect={effect!r}): choose 'idempotent', 'once' or 'tx'.")
    if effect == "tx" and inspect.iscoroutinefunction(function):
        raise StepError("step(effect='tx') takes a plain function: it runs inside the store's own transaction.")
    name: str = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    if key is None:
        # The occurrence is counted when step() is called, not when it is awaited, so that gather() is repeatable.
        count = context.step_counts[name] = context.step_counts.get(name, 0) + 1
        key = f"{name}#{count}"
    if context.space:
        key = f"{context.space}:{key}"
    if key in context.visited:
        raise StepError(f"Two steps of node {context.task.node!r} have the key {key!r}. Give each its own key.")
    context.visited.add(key)
    journal = context.run.journal
    arguments = [list(args), dict(kwargs)]
    digest = "" if journal is None else journal.codec.digest(arguments)
    identity = f"{context.run.uid}|{context.task.id}|{key}"
    stable = blake2b(identity.encode(), digest_size=16).hexdigest()
    named = {**kwargs, "idempotency_key": stable} if _wants_key(function, kwargs) else dict(kwargs)
    return _Made(key, name, digest, effect, verify, stable, lambda *first: function(*first, *args, **named), arguments)


def _wants_key(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> bool:
    if "idempotency_key" in kwargs:
        return False
    code = getattr(function, "__code__", None)
    if code is not None:
        return "idempotency_key" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return "idempotency_key" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _story(context: TaskContext, made: _Made) -> Generator[_Write | _Effect, Any, Any]:
    """Tell what a step does, for both the sync and the async performer."""
    journal, task = context.run.journal, context.task
    if journal is None:
        if made.effect == "tx":
            raise StepError("step(effect='tx') needs a store: compile(checkpointer=…).")
        return (yield _Effect(made.call, made.key))
    context.sign_of_life()
    before = context.steps.get(made.key)
    if before is not None:
        _check(context, made, before)
        if before.is_done:
            return before.value
        found = _settle_doubt(context, made, before)
        if isinstance(found, Done):
            entry = made.entry(is_done=True, value=found.value)
            yield _Write(journal.keep, (task, made.key, entry))
            context.remember(made.key, entry)
            return found.value
    yield from _stand_firm(journal)
    if made.effect == "tx":
        value = yield _Write(_transact, (journal, context, made))
        context.remember(made.key, made.entry(is_done=True, value=value))
        return value
    if made.effect == "once" and before is None:
        yield _Write(journal.intend, (task, made.key, made.entry(is_done=False)))
        # To write that may have taken as long as a lease lasts; then a successor has asked and been told: not done.
        journal.check_held()
    try:
        value = yield _Effect(made.call, made.key)
    except Exception as error:
        if made.effect == "once":
            # It may have happened all the same; whoever is asked later should know what was raised.
            entry = made.entry(is_done=False, value=repr(error))
            yield _Write(journal.intend, (task, made.key, entry))
            context.remember(made.key, entry)
        raise
    entry = made.entry(is_done=True, value=value)
    yield _Write(journal.keep, (task, made.key, entry))
    context.remember(made.key, entry)
    _check_arguments(journal, made, task.node)
    return value


def _stand_firm(journal: Journal) -> Generator[_Write, Any, None]:
    """Make sure that the run is ours, and that what a step rests on is saved.

    If the steps before were lost, what is done outside could be done again as that of another step.
    """
    journal.check_held()
    if journal.is_behind:
        yield _Write(journal.catch_up, ())
        journal.check_held()


def _check_arguments(journal: Journal, made: _Made, node: str) -> None:
    """Tell that a step has changed what it was given: on replay nobody does that again."""
    if journal.codec.digest(made.arguments) != made.digest:
        warnings.warn(
            f"Step {made.key!r} of node {node!r} changed one of its arguments in place. Its result is kept, the change "
            f"is not: when the node runs again, the step is not made, and the argument stays as it was. Return what "
            f"you want to keep.",
            stacklevel=3,
        )


def _transact(journal: Journal, context: TaskContext, made: _Made) -> Any:
    return journal.transact(context.task, made.key, made.entry(is_done=True), made.call)


def _check(context: TaskContext, made: _Made, before: JournalEntry) -> None:
    if before.name != made.name or before.digest != made.digest:
        differs = (
            f"  recorded: {before.name}\n  now: {made.name}"
            if before.name != made.name
            else f"  recorded arguments: digest {before.digest[:12]}\n  arguments now: digest {made.digest[:12]}"
        )
        raise ReplayMismatchError(
            f"Step {made.key!r} of node {context.task.node!r} is not the step that was recorded.\n{differs}\n"
            f"The recorded result belongs to another call, so it was not used, and nothing was run. Let arguments "
            f"depend only on state, answers and other steps; if you changed the code, give the step another key=."
        )


def _settle_doubt(context: TaskContext, made: _Made, before: JournalEntry) -> Done | NotDone:
    """Decide about a `once` step that was begun and never reported success."""
    found = made.verify(made.idempotency_key) if made.verify is not None else None
    if isinstance(found, Done):
        return found
    if found is NotDone or isinstance(found, NotDone):
        return NotDone()
    what = "its worker was stopped before it reported" if before.value is None else f"it raised {before.value}"
    answer = interrupt(
        {
            "type": "step_in_doubt",
            "step": made.key,
            "node": context.task.node,
            "idempotency_key": made.idempotency_key,
            "message": f"Step {made.key!r} was begun, and {what}. Did it happen? "
            "Answer {'happened': true, 'result': …}, or {'happened': false} to have it made.",
        },
        key=f"{made.key}?",
        response_schema={
            "type": "object",
            "properties": {"happened": {"type": "boolean"}, "result": {}},
            "required": ["happened"],
        },
    )
    return Done(answer.get("result")) if answer["happened"] else NotDone()


def _perform(story: Generator[_Write | _Effect, Any, Any]) -> Any:
    reply: Any = None
    problem: Exception | None = None
    while True:
        try:
            action = story.send(reply) if problem is None else story.throw(problem)
        except StopIteration as told:
            return told.value
        reply = problem = None
        if isinstance(action, _Write):
            reply = action.call(*action.args)
            continue
        try:
            with inside_step(action.key):
                reply = action.call()
        except Exception as error:  # noqa: BLE001 — the story decides what is written about it, and raises it
            problem = error


async def _perform_async(story: Generator[_Write | _Effect, Any, Any], *, hops: bool) -> Any:
    from asyncio import to_thread  # a fifth of the time of `import bide`, which sync callers need not spend

    from bide.engine.shield import to_its_end

    reply: Any = None
    problem: Exception | None = None
    while True:
        try:
            action = story.send(reply) if problem is None else story.throw(problem)
        except StopIteration as told:
            return told.value
        reply = problem = None
        if isinstance(action, _Write):
            made = to_thread(action.call, *action.args) if hops else None
            reply = await to_its_end(made) if made is not None else action.call(*action.args)
            continue
        try:
            with inside_step(action.key):
                reply = await action.call()
        except Exception as error:  # noqa: BLE001 — the story decides what is written about it, and raises it
            problem = error
