"""`CompiledGraph`: a graph that runs. Every async method is the same few lines over the other driver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from copy import copy
from typing import Any, Self, Unpack

from bide.clock import Clock, SystemClock
from bide.engine.apply import seen_now
from bide.engine.attempts import cache_place
from bide.engine.drive import Crew, run
from bide.engine.spec import GraphSpec, Subgraph
from bide.engine.values import Emit, Ending
from bide.errors import GraphError, GraphInterrupt
from bide.graph.batches import abatch, batch
from bide.graph.door import Config, Options, check_choice, checkpoint_id, merged_config, read_config
from bide.graph.inside import aitems_of_call, items_of_call, task_around
from bide.graph.result import GraphOutput, Result, pick_keys
from bide.graph.session import (
    Build,
    Session,
    inner_shaper,
    nodes_that_await,
    open_cache,
    open_items,
    open_session,
    open_store,
)
from bide.graph.streaming import output_of, read_modes, wanted
from bide.graph.telling import Teller
from bide.graph.threads import Threads
from bide.store import Store
from bide.store.rows import Lease
from bide.types import INTERRUPT, Durability, OnPaused

Part = Any


class CompiledGraph(Threads):
    """A graph that runs: `invoke`, `stream`, `get_state`, `update_state`, and the same with an `a` in front."""

    def __init__(
        self, spec: GraphSpec, checkpointer: Store | str | bool | None, build: Build, builder: Any = None
    ) -> None:
        check_choice("on_paused", build.on_paused, OnPaused)
        check_choice("durability", build.durability, Durability)
        self.spec = spec
        self.name = spec.name
        self.builder = builder
        self.build = build
        self.keeps = checkpointer if isinstance(checkpointer, bool) else None
        """How it is saved as a part of another graph; see `compile`."""
        self.checkpointer = None if isinstance(checkpointer, bool) else checkpointer
        self.cache = open_cache(build.cache, self.store, spec)
        self.bound: Config = {}
        """What `with_config` has said."""
        self.async_nodes = tuple(nodes_that_await(spec))
        self.is_lent = False
        """Whether its store is that of an application, and not one that it was compiled with."""

    @property
    def checkpointer(self) -> Store | None:
        """The store of this graph, under the name that LangGraph gives it; may be set after compiling."""
        return self.store

    @checkpointer.setter
    def checkpointer(self, store: Store | str | None) -> None:
        self.store = open_store(store)
        self.clock: Clock = self.store.clock if self.store is not None else SystemClock()
        self.items = open_items(self.build.items, self.store)

    def __repr__(self) -> str:
        return f"<graph {self.name!r}: {', '.join(self.spec.nodes)}>"

    def as_subgraph(self) -> Subgraph:
        """Return this graph as a part of another."""
        return Subgraph(self.spec, self.keeps, self.build.before, self.build.after, self.bound)

    def with_config(self, config: Config | None = None, **more: Any) -> Self:
        """Return the same graph with a config that every call begins with."""
        bound = copy(self)
        bound.bound = merged_config(merged_config(self.bound, config) or {}, more) or {}
        read_config(bound.bound)
        return bound

    # ── Running ────────────────────────────────────────────────────────────────────────────────────────────────────

    def invoke(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Any:
        """Run until the graph is done or waits, and return the state.

        `input` is a dict of state keys for a new run, `Command(resume=…)` to answer, `None` to go on. Called in the
        code of a node, the graph becomes a part of that node's thread.
        """
        if "stream_mode" in options:
            return list(self.stream(input, config, **options))
        around = task_around(self, config, options)
        if around is not None:
            *_, inner = items_of_call(self, around, input, (config, options), frozenset())
            return self._inner_result(inner, options)
        session = open_session(self, input, config, options, ())
        ending = None
        for item in self._drive(session):
            ending = item
        return self._result(session, ending, options)

    async def ainvoke(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Any:
        """Do what `invoke` does, with asyncio."""
        if "stream_mode" in options:
            return [part async for part in self.astream(input, config, **options)]
        around = task_around(self, config, options)
        if around is not None:
            async with aclosing(aitems_of_call(self, around, input, (config, options), frozenset())) as told:
                *_, inner = [item async for item in told]
            return self._inner_result(inner, options)
        session = open_session(self, input, config, options, ())
        ending = None
        async with aclosing(self._adrive(session)) as items:
            async for item in items:
                ending = item
        return self._result(session, ending, options)

    def stream(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Iterator[Part]:
        """Run, and yield what happens while it happens. A pause ends the stream with an interrupt part."""
        modes = read_modes(options.get("stream_mode", "updates"))
        around = task_around(self, config, options)
        if around is not None:
            shaper = inner_shaper(self, around, modes, options)
            for told in items_of_call(self, around, input, (config, options), wanted(modes)):
                if isinstance(told, Emit):
                    yield from shaper.parts(told)
            return
        session = open_session(self, input, config, options, modes)
        for item in self._drive(session):
            if isinstance(item, Emit):
                yield from session.shaper.parts(item)
            else:
                self._result(session, item, options)

    async def astream(
        self, input: Any, config: Config | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[Part]:
        """Do what `stream` does, with asyncio."""
        modes = read_modes(options.get("stream_mode", "updates"))
        around = task_around(self, config, options)
        if around is not None:
            shaper = inner_shaper(self, around, modes, options)
            async with aclosing(aitems_of_call(self, around, input, (config, options), wanted(modes))) as inner:
                async for told in inner:
                    for part in shaper.parts(told) if isinstance(told, Emit) else ():
                        yield part
            return
        session = open_session(self, input, config, options, modes)
        async with aclosing(self._adrive(session)) as items:
            async for item in items:
                if isinstance(item, Emit):
                    for part in session.shaper.parts(item):
                        yield part
                else:
                    self._result(session, item, options)

    def drive(self, given: Any, lease: Lease, config: Config, options: Options) -> Ending:
        """Drive a run that was claimed, until it is done or waits: what a worker does. Async nodes run as well."""
        tell = options.pop("tell", None)
        teller = Teller(self.store, tell) if tell and self.store is not None else None
        if teller is not None and teller.subgraphs:
            options["subgraphs"] = True
        session = open_session(self, given, config, options, () if teller is None else teller.modes, lease)
        if teller is not None and session.recorder is not None:
            teller.attach(session.shaper, lease, session.recorder.hold.writer)
            session.recorder.teller = teller
        hear = None if teller is None else teller.hear
        if not self.async_nodes:
            for item in self._drive(session):
                ending = item
                if hear is not None and isinstance(item, Emit):
                    hear(item)
        else:
            ending = _to_the_end(lambda: self._adrive(session), hear)
        assert isinstance(ending, Ending), "a driver ends with an Ending"
        return ending

    def events(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Iterator[dict[str, Any]]:
        """Run, and yield a dict for each update; the last one has the type `interrupt` or `final`, and the state."""
        session = open_session(self, input, config, options, ("updates",))
        for item in self._drive(session):
            if isinstance(item, Ending):
                yield _last_event(self._result(session, item, options), item)
                return
            for update in session.shaper.payloads("updates", item):
                if INTERRUPT not in update:
                    yield from ({"type": "update", "node": node, "update": change} for node, change in update.items())

    def batch(
        self, inputs: Sequence[Any], config: Config | Sequence[Config] | None = None, **options: Any
    ) -> list[Any]:
        """Invoke the graph for each input, several at a time (`max_concurrency`); results in the order of the inputs.

        `return_exceptions=True` gives errors back in place of results.
        """
        return batch(self, inputs, config, **options)

    async def abatch(
        self, inputs: Sequence[Any], config: Config | Sequence[Config] | None = None, **options: Any
    ) -> list[Any]:
        """Do what `batch` does, with asyncio."""
        return await abatch(self, inputs, config, **options)

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the kept results of these nodes, or of all that have a cache policy."""
        for name in self.spec.nodes if nodes is None else nodes:
            if name not in self.spec.nodes:
                raise GraphError(f"There is no node {name!r}. Known nodes: {', '.join(self.spec.nodes)}.")
            if self.cache is not None:
                self.cache.clear(cache_place(self.spec, self.spec.nodes[name]))

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Do what `clear_cache` does, with asyncio."""
        from asyncio import to_thread  # a fifth of `import bide`, which sync callers need not spend

        await to_thread(self.clear_cache, nodes)

    def get_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> Iterator[tuple[str, CompiledGraph]]:
        """Yield the graphs that are nodes of this one, with their names; `recurse` goes on inside them (`a|b`)."""
        for node in () if self.builder is None else self.builder.nodes.values():
            if isinstance(node.action, CompiledGraph):
                if namespace in (None, node.name):
                    yield node.name, node.action
                below = None if namespace is None else namespace.removeprefix(f"{node.name}|")
                if recurse and (namespace is None or below != namespace):
                    for name, inner in node.action.get_subgraphs(namespace=below, recurse=True):
                        yield f"{node.name}|{name}", inner

    # ── How it is done ─────────────────────────────────────────────────────────────────────────────────────────────

    def _drive(self, session: Session) -> Iterator[Emit | Ending]:
        if self.async_nodes:
            raise GraphError(
                f"{self.async_nodes[0]!r} is async, so this graph runs with `await graph.ainvoke(…)` or `astream`. "
                f"invoke() and stream() are for graphs whose nodes are plain functions."
            )
        return run(session.flow, Crew(self.spec, session.context, **session.crew), session.recorder)

    def _adrive(self, session: Session) -> AsyncGenerator[Emit | Ending, None]:
        from bide.engine.adrive import AsyncCrew, arun  # asyncio is a fifth of `import bide`; sync callers need none

        return arun(session.flow, AsyncCrew(self.spec, session.context, **session.crew), session.recorder)

    def _result(self, session: Session, ending: Any, options: Options) -> Any:
        assert isinstance(ending, Ending), "a driver ends with an Ending"
        recorder, checkpoint = session.recorder, ending.checkpoint
        interrupts = tuple(question.shown() for question in ending.asks if not question.is_static)
        seen = seen_now(self.spec, checkpoint, ending.outcomes)
        output = pick_keys(output_of(self.spec, seen), options.get("output_keys"))
        if session.raises and ending.is_paused:
            ask = ending.asks[0]
            raise GraphInterrupt(node=ask.node, state=output, value=ask.value, next=ending.next, interrupts=interrupts)
        if session.version == "v2":
            return GraphOutput(output, interrupts)
        if self.spec.value_key is not None or not isinstance(output, dict):
            if not ending.is_paused:
                return output
            output = {}
        return Result(
            output,
            interrupts=interrupts,
            next=ending.next,
            is_interrupted=ending.is_paused,
            thread_id=None if recorder is None else recorder.thread_id,
            checkpoint_id=None if recorder is None else checkpoint_id(recorder.uid, checkpoint.seq),
        )

    def _inner_result(self, ending: Any, options: Options) -> Any:
        """Return what code inside a node gets from a graph that it called: there is no thread of its own to name."""
        output = pick_keys(output_of(self.spec, ending.checkpoint), options.get("output_keys"))
        if options.get("version") == "v2":
            return GraphOutput(output, ())
        if not isinstance(output, dict):
            return output
        return Result(output, interrupts=(), next=(), is_interrupted=False, thread_id=None, checkpoint_id=None)


def _to_the_end(
    begin: Callable[[], AsyncGenerator[Emit | Ending, None]], hear: Callable[[Emit], None] | None
) -> Emit | Ending:
    """Drive with asyncio, in a thread that has no loop of its own yet."""
    import asyncio  # a fifth of `import bide`; whoever has async nodes needs it anyway

    async def last() -> Emit | Ending:
        ending = None
        async with aclosing(begin()) as told:
            async for item in told:
                ending = item
                if hear is not None and isinstance(item, Emit):
                    hear(item)
        assert ending is not None, "a driver ends with an Ending"
        return ending

    return asyncio.run(last())


def _last_event(result: Any, ending: Ending) -> dict[str, Any]:
    if not ending.is_paused:
        return {"type": "final", "state": result.value if isinstance(result, Result) else result}
    return {
        "type": "interrupt",
        "node": ending.asks[0].node,
        "state": result.value,
        "checkpoint": result.checkpoint_id,
        "interrupts": result.interrupts,
    }


__all__ = ["Build", "CompiledGraph"]
