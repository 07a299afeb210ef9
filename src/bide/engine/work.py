"""The story of one task: call the node, read what it returned, let its conditional edges choose.

A generator that yields the calls to make, so that one telling serves sync and async nodes.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from typing import Any

from bide.engine.actions import Action, Stopped, action, check_heard, settle_children, swallowed_by
from bide.engine.apply import seen_after
from bide.engine.attempts import cared_for
from bide.engine.care import NO_CARE
from bide.engine.context import Leave, Pause, TaskContext
from bide.engine.plan import Place, checked_places
from bide.engine.returned import Read, Write, read_result
from bide.engine.spec import FRAMES, Branch, GraphSpec, NodeSpec
from bide.engine.values import Outcome
from bide.errors import (
    InterruptError,
    InterruptSwallowedError,
    InvalidUpdateError,
    ReplayMismatchError,
    StepError,
)
from bide.messages import with_ids
from bide.types import START, UNSET, Command, Send

Story = Generator[Any, Any, Outcome]


def work(spec: GraphSpec, context: TaskContext) -> Story:
    """Run one task to its outcome. Only signals that are not ours (Ctrl-C, cancellation) pass through."""
    task = context.task
    node = spec.start if task.node == START else spec.nodes[task.node]
    try:
        if context.assignment.routes_only:
            return Outcome(task, routes=(yield from route(spec, node, context, ())))
        given = _given(node, context)
        if node.care is NO_CARE and task.timeout is None and node.subgraph is None:
            result = yield action(node.call, given, context)
            check_heard(context)
            read = read_result(spec, context, given, result)
        else:
            read = yield from cared_for(spec, node, context, given)
        if node.branches or read.up or context.has_more:
            return (yield from _complete(spec, node, context, read))
        return Outcome(task, read.writes, read.goto, (), (), read.returned)
    except (Pause, Leave, Stopped, Exception, BaseExceptionGroup) as error:  # noqa: BLE001 — the outcome of its task
        if context.children:
            try:
                yield from settle_children(context)
            except Exception as unheard:  # noqa: BLE001 — the first error is the one to tell
                error.add_note(f"A task that it had started failed, too: {unheard!r}")
        if isinstance(error, Leave):
            return (yield from _led_elsewhere(spec, node, context, error))
        return _unfinished(context, error)


def _complete(spec: GraphSpec, node: NodeSpec, context: TaskContext, read: Read) -> Story:
    """Finish a task that leaves more than an update: where it leads, and what happened inside it."""
    if context.unawaited:
        raise _not_awaited(context)
    if context.children:
        yield from settle_children(context)
        if context.inner:
            raise Pause(context.inner[0])
    routes: tuple[Place, ...] = ()
    if node.branches and not read.up:
        routes = yield from route(spec, node, context, read.writes)
    if context.assignment.steps:
        _check_replayed(context)
    writes = read.writes if context.streamed is None else with_ids(read.writes)
    if context.frames:
        writes = (*writes, (FRAMES, context.frames))
    outcome = Outcome(context.task, writes, read.goto, routes, (), read.returned)
    return _with_rest(outcome, context, read.up) if context.has_more or read.up else outcome


def _led_elsewhere(spec: GraphSpec, node: NodeSpec, context: TaskContext, leave: Leave) -> Story:
    """Finish a node whose code called a graph that told this one where to go, as if the node had said so itself."""
    try:
        return (yield from _complete(spec, node, context, read_result(spec, context, None, leave.as_result())))
    except (Pause, Exception) as error:  # noqa: BLE001 — as above
        return _unfinished(context, error)


def _with_rest(outcome: Outcome, context: TaskContext, up: tuple[Command[Any], ...]) -> Outcome:
    """Add what few tasks have: words to the graph above, checkpoints of graphs inside, messages told on the way."""
    return outcome._replace(
        up=up,
        carried=tuple(context.carried),
        is_cached=context.space == "cached",
        streamed=context.streamed or frozenset(),
        told=tuple(context.told or ()),
    )


def _unfinished(context: TaskContext, error: BaseException) -> Outcome:
    """Tell a task that asks from one that failed. What is neither (Ctrl-C, cancellation) goes on up."""
    outcome = _told(context, error)
    if context.carried or context.told:
        outcome = outcome._replace(carried=tuple(context.carried), told=tuple(context.told or ()))
    return outcome


def _told(context: TaskContext, error: BaseException) -> Outcome:
    task, asks = context.task, (*context.inner, *context.asked)
    if isinstance(error, Pause):
        if error.question not in asks:
            return Outcome(task, error=_stray_pause(error, context))
        return Outcome(task, asks=asks)
    if isinstance(error, Stopped):
        return Outcome(task, error=error.drained, asks=context.inner, is_skipped=error.drained is None)
    if isinstance(error, BaseExceptionGroup):
        # asyncio.TaskGroup wraps what its tasks raise, a pause among it; a failure beside it counts more.
        rest = error.split(Pause)[1]
        if rest is None:
            return Outcome(task, asks=asks)
        if isinstance(rest, Exception):
            return Outcome(task, error=rest, asks=context.inner)
    if isinstance(error, Exception):
        return Outcome(task, error=_hidden_pause(error, context), asks=context.inner)
    raise error


def route(
    spec: GraphSpec, node: NodeSpec, context: TaskContext, writes: Sequence[Write]
) -> Generator[Action, Any, tuple[Place, ...]]:
    """Let the conditional edges of a node choose, each on the state with that node's own writes."""
    values = context.assignment.checkpoint.values
    places: list[Place] = []
    for branch in node.branches:
        seen = seen_after(spec, values, writes, whole=branch.reads_all)
        try:
            chosen = yield action(branch.call, branch.read(seen), context)
        except Pause as pause:
            if not context.assignment.routes_only:
                raise
            raise InterruptError(
                f"The conditional edge {branch.name!r} after {node.name!r} called interrupt(), but no node runs here "
                f"that could be paused. Ask in a node, and let the edge read the answer from the state."
            ) from pause
        check_heard(context)
        places += _destinations(spec, node, branch, chosen)
    return tuple(places)


def _given(node: NodeSpec, context: TaskContext) -> Any:
    arg = context.task.arg
    return node.read(context.assignment.checkpoint.values) if arg is UNSET else arg


# ── Where it leads ─────────────────────────────────────────────────────────────────────────────────────────────


def _destinations(spec: GraphSpec, node: NodeSpec, branch: Branch, chosen: Any) -> list[Place]:
    where = f"The conditional edge {branch.name!r} after {node.name!r}"
    choices = list(chosen) if isinstance(chosen, list | tuple | set) else [chosen]
    if branch.destinations is None:
        return checked_places(spec, choices, where)
    places: list[Place] = []
    for choice in choices:
        if isinstance(choice, Send):
            places.append(choice)
        elif isinstance(choice, Hashable) and choice in branch.destinations:
            places.append(branch.destinations[choice])
        else:
            known = ", ".join(repr(key) for key in branch.destinations)
            raise InvalidUpdateError(
                f"{where} returned {choice!r}, which its path map does not hold. It holds: {known}."
            )
    return checked_places(spec, places, where)


# ── What went wrong ────────────────────────────────────────────────────────────────────────────────────────────


def _not_awaited(context: TaskContext) -> StepError:
    for coroutine in context.unawaited.values():
        coroutine.close()
    key = next(iter(context.unawaited))
    return StepError(
        f"Node {context.task.node!r} called step() for {key!r} and did not await it, so it was not made. The function "
        f"is async: write `await step(…)`."
    )


def _hidden_pause(error: Exception, context: TaskContext) -> Exception:
    if not context.asked or context.assignment.routes_only or isinstance(error, InterruptSwallowedError):
        return error
    swallowed = swallowed_by(context)
    swallowed.__cause__ = error
    return swallowed


def _stray_pause(pause: Pause, context: TaskContext) -> Exception:
    return InterruptError(
        f"Node {context.task.node!r} was left by the pause of another task ({pause.question.node!r}). "
        f"A node must not keep or re-raise the signal of another one."
    )


def _check_replayed(context: TaskContext) -> None:
    for key in context.unvisited():
        raise ReplayMismatchError(
            f"Node {context.task.node!r} finished without making step {key!r}, which it had made before its pause.\n"
            f"  recorded: {key}\n  now: (not made)\n"
            f"Its code or its inputs changed between the two runs. Keep the step, or answer this thread with the code "
            f"that asked; if the step is no longer wanted, fork the thread from an earlier checkpoint."
        )
