"""A graph that the code of a node calls: it becomes a part of that node's thread, with the same store and lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bide.engine.actions import Descend, take_over
from bide.engine.context import Leave, TaskContext, running_task
from bide.engine.drive import run_inside
from bide.engine.nested import site_of
from bide.engine.values import Ending
from bide.errors import GraphError

if TYPE_CHECKING:
    from bide.graph.compiled import CompiledGraph


def task_around(graph: CompiledGraph, config: Any, options: Mapping[str, Any]) -> TaskContext | None:
    """Return the task whose code makes this call, if the graph shall run inside it.

    It does not when the call names a thread of its own, or when the called graph has another store.
    """
    context = running_task()
    if context is None or context.assignment.routes_only or options.get("checkpoint") is not None:
        return None
    inner = (config or {}).get("configurable") or {} if isinstance(config, Mapping) or config is None else {}
    named = inner.get("thread_id", (graph.bound.get("configurable") or {}).get("thread_id"))
    if named is not None and str(named) != context.run.thread_id:
        return None
    own = graph.store
    is_elsewhere = own is not None and (context.run.journal is None or context.run.journal.store is not own)
    return None if is_elsewhere else context


def call_inside(graph: CompiledGraph, context: TaskContext, given: Any, config: Any) -> Ending:
    """Run a graph inside the task whose code calls it, right here."""
    if graph.async_nodes:
        raise GraphError(
            f"{graph.async_nodes[0]!r} is async, so this graph runs with `await graph.ainvoke(…)`. Call it in an async "
            f"node."
        )
    action = _descent(graph, context, given)
    return _ended(graph, context, action, run_inside(action, context))


async def acall_inside(graph: CompiledGraph, context: TaskContext, given: Any, config: Any) -> Ending:
    """Do what `call_inside` does, on the event loop."""
    from bide.engine.adrive import run_inside as arun_inside  # asyncio is a fifth of `import bide`

    action = _descent(graph, context, given)
    return _ended(graph, context, action, await arun_inside(action, context))


def _descent(graph: CompiledGraph, context: TaskContext, given: Any) -> Descend:
    context.calls += 1
    sub = graph.as_subgraph()
    site = site_of(sub, context.task, context.assignment, context.run.spec, call=context.calls)
    if context.attempt > 1:
        site = site._replace(is_fresh=False)
    return Descend(sub, given, site)


def _ended(graph: CompiledGraph, context: TaskContext, action: Descend, ending: Ending) -> Ending:
    """Hand on what the graph could not save or decide by itself; a pause unwinds the code that called it."""
    take_over(context, ending)
    if ending.up:
        raise Leave(ending.up)
    if action.sub.keeps is True:
        context.frames = {**(context.frames or {}), action.site.ns: ending.checkpoint.seq}
    return ending
