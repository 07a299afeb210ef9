"""A graph that the code of a node calls: it becomes a part of that node's thread, with the same store and lease."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bide.engine.actions import Descend, take_over
from bide.engine.context import Leave, TaskContext, running_task
from bide.engine.drive import items_inside
from bide.engine.nested import frames_after, site_of
from bide.engine.values import Emit, Ending
from bide.errors import GraphError, InvalidUpdateError
from bide.graph.door import check_options, merged_config, read_config
from bide.graph.session import read_context
from bide.graph.validate import static_nodes
from bide.types import UNSET

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


def items_of_call(
    graph: CompiledGraph, context: TaskContext, given: Any, call: Said, wants: frozenset[str]
) -> Iterator[Emit | Ending]:
    """Run a graph inside the task whose code calls it, right here; yield what it tells, and at last its ending."""
    if graph.async_nodes:
        raise GraphError(
            f"{graph.async_nodes[0]!r} is async, so this graph runs with `await graph.ainvoke(…)`. Call it in an async "
            f"node."
        )
    action = _descent(graph, context, given, call)._replace(wants=wants)
    for item in items_inside(action, context):
        yield _ended(context, action, item) if isinstance(item, Ending) else item


async def aitems_of_call(
    graph: CompiledGraph, context: TaskContext, given: Any, call: Said, wants: frozenset[str]
) -> AsyncGenerator[Emit | Ending, None]:
    """Do what `items_of_call` does, on the event loop."""
    from bide.engine.adrive import items_inside as aitems_inside  # asyncio is a fifth of `import bide`

    action = _descent(graph, context, given, call)._replace(wants=wants)
    items = aitems_inside(action, context)
    under_way = UnderWay(items)
    context.children = [*(context.children or ()), under_way]
    try:
        async for item in items:
            under_way.is_held = True
            yield _ended(context, action, item) if isinstance(item, Ending) else item
            under_way.is_held = False
    finally:
        under_way.ended.set()
        context.children = [child for child in context.children or () if child is not under_way] or None


class UnderWay:
    """A graph that the code of a node has called and that has not ended: the node must not end before it."""

    asks: tuple[Any, ...] = ()
    carried: tuple[Any, ...] = ()
    unheard: Exception | None = None

    def __init__(self, items: AsyncGenerator[Any, None]) -> None:
        from asyncio import Event

        self.items = items
        self.ended = Event()
        self.is_held = False
        """Whether the code that reads its stream has stopped in the middle of it."""

    async def settled(self) -> None:
        """Wait for its end; a stream that nobody reads on is closed."""
        if self.is_held:
            await self.items.aclose()
            return
        await self.ended.wait()


Said = tuple[Any, Mapping[str, Any]]
"""The config and the options of a call."""


def _descent(graph: CompiledGraph, context: TaskContext, given: Any, call: Said) -> Descend:
    config, options = call
    check_options(options)
    for name in _OUTERMOST:
        if options.get(name) is not None:
            raise InvalidUpdateError(
                f"{name}= counts for the outermost graph, and this one is called inside a node of it. Give it there."
            )
    context.calls += 1
    sub = graph.as_subgraph()
    sub = sub._replace(
        before=sub.before | static_nodes(options.get("interrupt_before")),
        after=sub.after | static_nodes(options.get("interrupt_after")),
    )
    own = merged_config(graph.bound, config) or {}
    read = read_config(own)
    limit = read.recursion_limit if "recursion_limit" in own else None
    said = {key: value for key, value in read.shown.items() if key in own}
    said["configurable"] = {key: value for key, value in read.shown["configurable"].items() if key != "thread_id"}
    given_context = options.get("context")
    context_ = UNSET if given_context is None else read_context(graph.build.context_schema, given_context)
    site = site_of(sub, context.task, context.assignment, call=context.calls)
    if context.attempt > 1:
        site = site._replace(is_fresh=False)
    return Descend(sub._replace(config={}), given, site, limit, config=said, context=context_)


_OUTERMOST = ("control", "durability", "on_paused")


def _ended(context: TaskContext, action: Descend, ending: Ending) -> Ending:
    """Hand on what the graph could not save or decide by itself; a pause unwinds the code that called it."""
    take_over(context, ending)
    if ending.up:
        raise Leave(ending.up)
    context.frames = frames_after(action.sub, action.site, ending, context.frames)
    return ending
