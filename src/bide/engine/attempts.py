"""A node with a policy: attempts and back-off, its cache, its error handler; and a node that is a graph. Pure.

Everything that must survive a crash is in the task's journal, under keys that begin with `@`.
"""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

from bide.engine.actions import Descend, Rest, Stopped, Write, action
from bide.engine.care import policy_for, read_limits
from bide.engine.context import Pause, TaskContext
from bide.engine.nested import site_of
from bide.engine.returned import Read, read_ending, read_result
from bide.engine.spec import GraphSpec, NodeSpec
from bide.engine.values import JournalEntry
from bide.errors import (
    GraphDrained,
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

Reading = Generator[Any, Any, Read]


def cared_for(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    """Run a node as its policies say; return what it returned, or what its handler did."""
    key = _cache_key(node, context, given)
    if key is not None:
        kept = yield Write(_cache(context).get, (spec.name + "/" + node.name, key))
        if kept is not None:
            context.space = "cached"
            return _read_kept(spec, node, kept)
    read = yield from _handled(spec, node, context, given)
    if key is not None and not read.returned and not read.up:
        body = spec.codec.encode([[list(pair) for pair in read.writes], list(read.goto)], f"result of {node.name!r}")
        assert node.care.cache is not None
        yield Write(_cache(context).put, (spec.name + "/" + node.name, key, body, node.care.cache.ttl))
    return read


def _read_kept(spec: GraphSpec, node: NodeSpec, kept: bytes) -> Read:
    pair: Any = spec.codec.decode(kept, f"cached result of node {node.name!r}")
    writes, goto = pair
    return Read(tuple((name, value) for name, value in writes), tuple(goto))


def _cache(context: TaskContext) -> Any:
    return context.run.around.cache


def _cache_key(node: NodeSpec, context: TaskContext, given: Any) -> str | None:
    policy = node.care.cache
    if policy is None or context.run.around.cache is None:
        return None
    what = given if policy.key_func is None else policy.key_func(given)
    return context.run.spec.codec.digest(what)


def _handled(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    """Run the node; when it has failed for good, let its handler decide. A failure once told is not tried again."""
    handler, journal = node.care.handler, context.run.journal
    before = context.steps.get(FAILED)
    if handler is None:
        return (yield from _attempts(spec, node, context, given))
    if before is not None:
        error: Exception = NodeFailure(*before.value)
    else:
        try:
            return (yield from _attempts(spec, node, context, given))
        except _NOT_THE_NODES:
            raise
        except Exception as problem:  # noqa: BLE001 — the handler is told, whatever it is
            error = problem
        if journal is not None:
            entry = JournalEntry(FAILED, "", True, [type(error).__name__, str(error)])
            yield Write(journal.keep, (context.task, FAILED, entry))
    context.begin_again()
    context.space = "handler"
    result = yield action(handler, given, context, error=NodeError(node.name, error))
    return read_result(spec, context, given, result)


def _attempts(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    """Try, and try again after errors that pass; how often and until when is known after a crash, too."""
    policies, journal = node.care.retry, context.run.journal
    before = context.steps.get(ATTEMPTS)
    if before is not None and policies:
        made, until, most = before.value[:3]
        if made < most:
            context.attempt = made + 1
            yield Rest(until)
    while True:
        try:
            return (yield from _attempt(spec, node, context, given))
        except _NOT_THE_NODES:
            raise
        except Exception as error:
            policy = policy_for(policies, error)
            if policy is None:
                raise
            made = context.attempt
            until = context.run.around.clock.now() + int(policy.delay(made, Random()) * 1000)
            if journal is not None:
                told = [made, until, policy.max_attempts, f"{type(error).__name__}: {error}"]
                yield Write(journal.intend, (context.task, ATTEMPTS, JournalEntry(ATTEMPTS, "", False, told)))
            if made >= policy.max_attempts:
                error.add_note(f"It was attempt {made} of {policy.max_attempts}.")
                raise
        context.begin_again()
        context.attempt = made + 1
        yield Rest(until)


def _attempt(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    if node.subgraph is not None:
        return (yield from _inside(spec, node, context, given))
    limits = node.care.limits if context.task.timeout is None else read_limits(context.task.timeout)
    result = yield action(node.call, given, context, limits)
    if context.asked:
        raise InterruptSwallowedError(
            f"Node {context.task.node!r} called interrupt({context.asked[0].value!r}) and then caught its signal."
        )
    return read_result(spec, context, given, result)


def _inside(spec: GraphSpec, node: NodeSpec, context: TaskContext, given: Any) -> Reading:
    """Run the graph that this node is."""
    sub = node.subgraph
    assert sub is not None
    site = site_of(sub, context.task, context.assignment, spec, call=None)
    if context.attempt > 1:
        site = site._replace(is_fresh=False)
    ending = yield Descend(sub, given, site)
    context.carried += ending.carried
    context.inner = ending.asks
    if ending.error is not None:
        raise ending.error
    if ending.asks:
        raise Pause(ending.asks[0])
    if ending.is_stopped:
        raise Stopped
    if sub.keeps is True and not ending.up:
        context.frames = {**(context.frames or {}), site.ns: ending.checkpoint.seq}
    return read_ending(spec, sub.spec, context, given, ending)
