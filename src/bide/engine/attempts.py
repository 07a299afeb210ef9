"""A node with a policy: attempts and back-off, its cache, its error handler; and a node that is a graph. Pure.

Everything that must survive a crash is in the task's journal, under keys that begin with `@`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, NamedTuple

from bide.engine.actions import Descend, Rest, Settle, Stopped, Write, action, check_heard, take_over
from bide.engine.care import policy_for, read_limits
from bide.engine.context import TaskContext
from bide.engine.nested import frames_after, site_of
from bide.engine.returned import Read, read_ending, read_result
from bide.engine.spec import GraphSpec, NodeSpec
from bide.engine.values import JournalEntry
from bide.errors import (
    CorruptDataError,
    GraphDrained,
    GraphError,
    InterruptSwallowedError,
    LeaseLostError,
    NodeFailure,
    ReplayMismatchError,
)
from bide.types import NodeError

ATTEMPTS = "@attempts"
FAILED = "@failed"

_NOT_THE_NODES = (InterruptSwallowedError, ReplayMismatchError, LeaseLostError, GraphDrained, Stopped)
"""Errors of ours, which no policy of the node may hide."""


class Returns(NamedTuple):
    """What is made of a function's result, and how that is kept in a cache."""

    read: Callable[[GraphSpec, TaskContext, Any, Any], Any]
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]
    key: Callable[[Callable[..., Any], Any], Any]
    """How a cache policy's `key_func` is asked."""


def _pack_update(read: Read) -> Any:
    return None if read.returned or read.up else [[list(pair) for pair in read.writes], list(read.goto)]


def _unpack_update(kept: Any) -> Read:
    writes, goto = kept
    return Read(tuple((name, value) for name, value in writes), tuple(goto))


UPDATE = Returns(read_result, _pack_update, _unpack_update, lambda key_func, given: key_func(given))
"""A node returns an update of the state."""
VALUE = Returns(
    lambda spec, context, given, result: result,
    lambda value: [value],
    lambda kept: kept[0],
    lambda key_func, given: key_func(*given[0], **given[1]),
)
"""A function that a node's code calls returns a value."""

Reading = Generator[Any, Any, Any]


def cared_for(
    spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any, returns: Returns = UPDATE
) -> Generator[Any, Any, Any]:
    """Run a node as its policies say; return what it returned, or what its handler did."""
    key = None if _has_begun(node, context) else _cache_key(node, context, given, returns)
    place = cache_place(spec, node)
    if key is not None:
        kept = yield Write(_cache(context).get, (place, key))
        if kept is not None:
            context.space = "cached"
            return _unpacked(returns, spec.codec.decode(kept, _called(node)), node)
    read = yield from _handled(spec, node, context, given, returns)
    packed = None if key is None or context.space == "handler" else returns.pack(read)
    if packed is not None:
        assert node.care.cache is not None
        body = spec.codec.encode(packed, f"result of {node.name!r}")
        yield Write(_cache(context).put, (place, key, body, node.care.cache.ttl))
    return read


def _called(node: NodeSpec) -> str:
    return f"cached result of node {node.name!r}"


def _unpacked(returns: Returns, kept: Any, node: NodeSpec) -> Any:
    try:
        return returns.unpack(kept)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
        raise CorruptDataError(
            f"Cannot read {_called(node)}: {problem}. It was damaged, or written by a newer Bide. Forget it with "
            f"clear_cache([{node.name!r}])."
        ) from problem


def cache_place(spec: GraphSpec, node: NodeSpec) -> str:
    """Name where the results of a node are kept: another function under the same name has results of its own."""
    function: Any = node.call.function
    who = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    if node.subgraph is not None:
        who = f"{node.subgraph.spec.name}.{node.subgraph.spec.fingerprint}"
    return f"{spec.name}/{node.name}/{who}"


def _has_begun(node: NodeSpec, context: TaskContext) -> bool:
    """Whether the task ran before: its own steps and answers count then, and are no business of other threads."""
    has_asked = any(wait.question.kind == "call" for wait in context.waits.values())
    return bool(context.steps) or has_asked or (node.subgraph is not None and not context.assignment.is_fresh)


def _cache(context: TaskContext) -> Any:
    return context.run.around.cache


def _cache_key(node: NodeSpec, context: TaskContext, given: Any, returns: Returns) -> str | None:
    policy = node.care.cache
    if policy is None or context.run.around.cache is None:
        return None
    what = given if policy.key_func is None else returns.key(policy.key_func, given)
    return context.run.spec.codec.digest(what)


def _handled(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any, returns: Returns) -> Reading:
    """Run the node; when it has failed for good, let its handler decide. A failure once told is not tried again."""
    handler, journal = node.care.handler, context.run.journal
    before = context.steps.get(FAILED)
    if handler is None:
        return (yield from _attempts(spec, node, context, given, returns))
    if before is not None:
        error: Exception = NodeFailure(*before.value)
    else:
        try:
            return (yield from _attempts(spec, node, context, given, returns))
        except _NOT_THE_NODES:
            raise
        except Exception as problem:  # noqa: BLE001 — the handler is told, whatever it is
            error = problem
        if journal is not None:
            entry = JournalEntry(FAILED, "", True, [type(error).__name__, str(error)])
            yield Write(journal.keep, (context.task, FAILED, entry))
    yield from _end_children(context)
    context.begin_again()
    context.space = "handler"
    result = yield action(handler, given, context, error=NodeError(node.name, error))
    check_heard(context)
    # The steps of the node that failed are not missing when its handler does not make them.
    context.visited |= {key for key in context.assignment.steps if not key.startswith("handler:")}
    return returns.read(spec, context, given, result)


def _attempts(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any, returns: Returns) -> Reading:
    """Try, and try again after errors that pass; how often and until when is known after a crash, too."""
    policies, journal = node.care.retry, context.run.journal
    attempt, until = _next_attempt(context)
    while True:
        if until is not None:
            yield Rest(until)
            if context.run.crew.stopped.is_set():
                raise Stopped  # whoever called has gone away: the rest of the series is for who goes on with the thread
        context.attempt = attempt
        try:
            return (yield from _attempt(spec, node, context, given, returns))
        except _NOT_THE_NODES:
            raise
        except Exception as error:
            policy = policy_for(policies, error)
            # An error that no policy covers ends the series: going on later begins a new one.
            most = attempt if policy is None else policy.max_attempts
            until = context.run.around.clock.now() + (0 if policy is None else policy.delay_ms(attempt, Random()))
            if journal is not None and (policy is not None or attempt > 1):
                told = [attempt, until, most, f"{type(error).__name__}: {error}"]
                yield Write(journal.intend, (context.task, ATTEMPTS, JournalEntry(ATTEMPTS, "", False, told)))
            if attempt >= most:
                if policy is not None:
                    error.add_note(f"It was attempt {attempt} of {most}.")
                raise
        yield from _end_children(context)
        context.begin_again()
        # What graphs inside had to hand on belongs to the attempt that failed; the next begins where they are saved.
        context.carried, context.inner = [], ()
        attempt += 1


def _end_children(context: TaskContext) -> Generator[Any, Any, None]:
    """Wait for the tasks of an attempt that failed; what they asked and raised is not the next one's."""
    if context.children:
        yield Settle(tuple(context.children))
        context.children = None


def _next_attempt(context: TaskContext) -> tuple[int, int | None]:
    """Return which attempt comes next, and until when to wait for it: a series that a crash has cut short goes on."""
    before = context.steps.get(ATTEMPTS)
    if before is None:
        return 1, None
    made, until, most = before.value[:3]
    return (made + 1, until) if made < most else (1, None)


def _attempt(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any, returns: Returns) -> Reading:
    if node.subgraph is not None:
        if context.task.timeout is not None:
            raise GraphError(
                f"Send({node.name!r}, timeout=…): the node is a graph, which cannot be given up half way. Give "
                f"timeouts to the nodes inside it."
            )
        return (yield from _inside(spec, node, context, given))
    limits = node.care.limits if context.task.timeout is None else read_limits(context.task.timeout)
    result = yield action(node.call, given, context, limits)
    check_heard(context)
    return returns.read(spec, context, given, result)


def _inside(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    """Run the graph that this node is."""
    sub = node.subgraph
    assert sub is not None
    site = site_of(sub, context.task, context.assignment, call=None)
    if context.attempt > 1:
        site = site._replace(is_fresh=False)
    ending = yield Descend(sub, given, site)
    take_over(context, ending)
    if not ending.up:
        context.frames = frames_after(sub, site, ending, context.frames)
    return read_ending(spec, sub.spec, context, given, ending)
