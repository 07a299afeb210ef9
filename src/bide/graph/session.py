"""One call, made ready: the caller's words read, a thread to hold, a flow to drive, and a way to show what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bide.clock import uuid7
from bide.engine.context import TaskContext
from bide.engine.flow import advance
from bide.engine.run_context import RunContext, Surroundings
from bide.engine.spec import GraphSpec
from bide.engine.values import CUSTOM, MESSAGES
from bide.errors import GraphError, InvalidUpdateError, UnknownThreadError
from bide.graph.door import (
    Config,
    Options,
    check_options,
    merged_config,
    read_config,
    read_reference,
    read_request,
    shown_config,
)
from bide.graph.hold import Hold
from bide.graph.live import token_scope
from bide.graph.recorder import Recorder
from bide.graph.streaming import Shaper, wanted
from bide.graph.tokens import langchain_is_loaded
from bide.graph.validate import static_nodes
from bide.store import Store
from bide.store.cache import InMemoryCache, StoredCache
from bide.store.rows import Lease
from bide.types import UNSET, Command, Durability, OnPaused

if TYPE_CHECKING:
    from bide.graph.compiled import CompiledGraph
    from bide.store.items import ItemStore

NO_STORE = 'Compile it with one: graph.compile(checkpointer="sqlite:///bide.db"), or MemorySaver() for a try-out.'


class Build(NamedTuple):
    """What `compile` was told, beside the graph and its store."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    on_paused: OnPaused = "error"
    durability: Durability = "sync"
    context_schema: Any = None
    items: Any = None
    cache: Any = None
    migrate: Callable[..., Any] | None = None


class Session(NamedTuple):
    """One call: what the drivers need, and how to show what they tell."""

    flow: Any
    context: RunContext
    recorder: Recorder | None
    most: int | None
    is_live: bool
    shaper: Shaper
    raises: bool
    version: str

    @property
    def crew(self) -> dict[str, Any]:
        """How the tasks of this call are run."""
        return {"most": self.most, "is_live": self.is_live}


def open_session(
    graph: CompiledGraph,
    given: Any,
    config: Config | None,
    options: Options,
    modes: tuple[str, ...],
    lease: Lease | None = None,
) -> Session:
    """Read the caller's words and make a session of them. Nothing is read or written yet, but for a branch inside.

    With a lease, the run was claimed before.
    """
    check_options(options)
    config = _at_the_root(graph, given, config)
    read = read_config(merged_config(graph.bound, config))
    reference = read_reference(options.get("checkpoint") or read.checkpoint_id)
    thread_id = read.thread_id
    if graph.store is not None and thread_id is None and reference is None:
        thread_id = _new_thread(graph, given)
    recorder = None
    if graph.store is not None and given is None and thread_id is not None and lease is None:
        graph.store.settle_due(thread_id)  # whoever goes on may be the only one who looks at the clock
    if graph.store is not None:
        hold = Hold(graph.store, thread_id or "", options.get("durability") or graph.build.durability, lease)
        recorder = Recorder(hold, graph.spec, reference, read.metadata, migrate=graph.build.migrate)
    subgraphs = bool(options.get("subgraphs"))
    wants = wanted(modes)
    request = read_request(given, options, read, graph.build, wants=wants, durable=recorder is not None)._replace(
        subgraphs=subgraphs, live=wants & {CUSTOM, MESSAGES}, control=options.get("control"), is_held=lease is not None
    )
    _check_storeless(graph, given, request.before | request.after)
    around = Surroundings(
        config=read.shown,
        clock=graph.clock,
        context=read_context(graph.build.context_schema, options.get("context")),
        items=graph.items,
        cache=graph.cache,
        scope=token_scope if MESSAGES in wants or langchain_is_loaded() else None,
    )
    context = RunContext(graph.spec, request, around, thread_id=thread_id, journal=recorder)
    return Session(
        flow=advance(graph.spec, request),
        context=context,
        recorder=recorder,
        most=read.max_concurrency,
        is_live=bool(request.live) or (bool(wants) and (subgraphs or graph.spec.value_key is not None)),
        shaper=Shaper(graph.spec, modes, partial(config_of, recorder), graph.clock, options, read.shown),
        raises=options.get("raise_on_interrupt", False),
        version=options.get("version", "v1"),
    )


def _at_the_root(graph: CompiledGraph, given: Any, config: Config | None) -> Config | None:
    """Let a call at a checkpoint of a graph inside begin a branch there, and go on with the thread as a whole."""
    inner = (config or {}).get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(inner, Mapping) or not inner.get("checkpoint_ns"):
        return config
    if given is not None and not (isinstance(given, Command) and given.resume is not UNSET):
        raise InvalidUpdateError(
            "New input goes to the thread's own graph: leave checkpoint_ns out of the config. With it, invoke(None) "
            "goes on from a checkpoint of a graph inside."
        )
    if given is None and inner.get("checkpoint_id") is not None and not graph.stands_at(config or {}):
        graph.fork(config or {})
    rest = {key: value for key, value in inner.items() if key not in ("checkpoint_ns", "checkpoint_id")}
    return {**(config or {}), "configurable": rest}


def inner_shaper(graph: CompiledGraph, around: TaskContext, modes: tuple[str, ...], options: Options) -> Shaper:
    """Return what shows the stream of a graph that the code of a node calls, to that code."""
    journal: Any = around.run.journal
    return Shaper(graph.spec, modes, partial(config_of, journal), graph.clock, options, around.run.config)


def config_of(recorder: Recorder | None, seq: int, ns: str = "") -> dict[str, Any]:
    """Write the config that leads back to a checkpoint of this call."""
    if recorder is None:
        return {"configurable": {}}
    return shown_config(recorder.thread_id, recorder.uid, seq, ns)


def _new_thread(graph: CompiledGraph, given: Any) -> str:
    """Name the thread of a call that names none: fine for new input, useless for going on."""
    if given is None or (isinstance(given, Command) and given.resume is not UNSET):
        raise UnknownThreadError(
            'Going on needs to know the thread: config={"configurable": {"thread_id": …}}, or checkpoint=….'
        )
    return uuid7(graph.clock.now())


def check_pauses(spec: GraphSpec, said: Mapping[str, Any]) -> None:
    """Refuse to pause at a node that is none."""
    named = static_nodes(said.get("interrupt_before")) | static_nodes(said.get("interrupt_after"))
    _check_nodes(spec, named)


def _check_nodes(spec: GraphSpec, static: frozenset[str]) -> None:
    unknown = static - spec.nodes.keys() - {"*"}
    if unknown:
        raise GraphError(f"There is no node {min(unknown)!r} to pause at. Known nodes: {', '.join(spec.nodes)}.")


def _check_storeless(graph: CompiledGraph, given: Any, static: frozenset[str]) -> None:
    _check_nodes(graph.spec, static)
    if graph.store is not None:
        return
    if given is None or static or (isinstance(given, Command) and given.resume is not UNSET):
        raise GraphError(f"This graph has no store, so it cannot pause or go on. {NO_STORE}")


# ── What a graph is compiled with ──────────────────────────────────────────────────────────────────────────────────


def open_store(store: Store | str | None) -> Store | None:
    """Return a store, opened by its URL or over a pool if need be; None stays None, anything else is a mistake."""
    if isinstance(store, str) or type(store).__module__.partition(".")[0] == "psycopg_pool":
        return Store.open(store)
    if store is not None and not isinstance(store, Store):
        raise GraphError(
            f"checkpointer={store!r} is no store: give a Store, MemorySaver(), or a URL as 'sqlite:///bide.db'."
        )
    return store


def open_items(given: Any, store: Store | None) -> Any:
    """Return the long-term store: the one that was given, or the one in the checkpointer's own database."""
    if isinstance(given, Store):
        return given.items
    if given is not None and not hasattr(given, "search"):
        raise GraphError(f"store={given!r} is no long-term store: give InMemoryStore(), or a Store.")
    items: ItemStore | None = given if given is not None else None if store is None else store.items
    return items


def open_cache(given: Any, store: Store | None, spec: GraphSpec) -> Any:
    """Return where nodes with a cache policy keep results: what was given, or else the checkpointer's own database."""
    if isinstance(given, Store):
        return StoredCache(given)
    if given is not None:
        return given
    if not any(node.care.cache is not None for node in spec.nodes.values()):
        return None
    return StoredCache(store) if store is not None else InMemoryCache()


def read_context(schema: Any, given: Any) -> Any:
    """Make the context that nodes see: of a dict, an instance of the graph's `context_schema`, if that is a class."""
    if schema is None or given is None or not isinstance(given, dict) or not isinstance(schema, type):
        return given
    if hasattr(schema, "model_validate"):
        return schema.model_validate(given)
    if issubclass(schema, dict):
        return given
    try:
        return schema(**given)
    except TypeError as problem:
        raise InvalidUpdateError(
            f"context={given!r} does not fit {schema.__name__}: {problem}. Give its fields by name."
        ) from problem


def nodes_that_await(spec: GraphSpec) -> Iterator[str]:
    """Name the nodes that need an event loop, those of graphs inside this one included."""
    for node in (*spec.nodes.values(), spec.start):
        if (
            node.call.is_async
            or any(branch.call.is_async for branch in node.branches)
            or (node.care.handler is not None and node.care.handler.is_async)
        ):
            yield node.name
        elif node.subgraph is not None:
            yield from (f"{node.name}|{inner}" for inner in nodes_that_await(node.subgraph.spec))
