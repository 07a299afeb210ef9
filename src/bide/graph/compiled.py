"""`CompiledGraph`: a graph that runs. Every async method is the same few lines over the other driver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar, Unpack

from bide.clock import SystemClock, uuid7
from bide.codec import Codec, Registry
from bide.engine.context import RunContext
from bide.engine.drive import Crew, run
from bide.engine.edit import edit
from bide.engine.flow import advance
from bide.engine.spec import GraphSpec
from bide.engine.values import CUSTOM, Emit, Ending, Load, Loaded
from bide.errors import GraphError, GraphInterrupt, UnknownThreadError
from bide.graph.door import (
    Config,
    Options,
    check_choice,
    check_options,
    checkpoint_id,
    read_config,
    read_reference,
    read_request,
    shown_config,
)
from bide.graph.recorder import Recorder
from bide.graph.result import Result
from bide.graph.snapshot import empty_snapshot, live_snapshot, past_snapshot
from bide.graph.streaming import Shaper, output_of, read_modes, wanted
from bide.store import Store
from bide.types import INTERRUPT, UNSET, Command, Durability, OnPaused, StateSnapshot

Part = Any
T = TypeVar("T")


class _Session(NamedTuple):
    """One call, made ready: what the drivers need, and how to show what they tell."""

    flow: Any
    context: RunContext
    recorder: Recorder | None
    most: int | None
    is_live: bool
    shaper: Shaper
    is_single: bool
    raises: bool

    @property
    def crew(self) -> dict[str, Any]:
        """How the tasks of this call are run."""
        return {"most": self.most, "is_live": self.is_live}


def open_store(store: Store | str | None) -> Store | None:
    """Return a store, opened by its URL if need be; None stays None, and anything else is a mistake."""
    if isinstance(store, str):
        return Store.open(store)
    if store is not None and not isinstance(store, Store):
        raise GraphError(
            f"checkpointer={store!r} is no store: give a Store, MemorySaver(), or a URL as 'sqlite:///bide.db'."
        )
    return store


class CompiledGraph:
    """A graph that runs: `invoke`, `stream`, `get_state`, `update_state`, and the same with an `a` in front."""

    def __init__(
        self,
        spec: GraphSpec,
        store: Store | str | None,
        types: Registry,
        *,
        before: frozenset[str] = frozenset(),
        after: frozenset[str] = frozenset(),
        on_paused: OnPaused = "error",
        durability: Durability = "sync",
    ) -> None:
        check_choice("on_paused", on_paused, OnPaused)
        check_choice("durability", durability, Durability)
        self.spec = spec
        self.name = spec.name
        self.checkpointer = store
        self.before = before
        self.after = after
        self.on_paused = on_paused
        self.durability = durability
        self._codec = Codec(types)
        self._async_nodes = tuple(
            node.name
            for node in (*spec.nodes.values(), spec.start)
            if node.call.is_async or any(branch.call.is_async for branch in node.branches)
        )

    @property
    def checkpointer(self) -> Store | None:
        """The store of this graph, under the name that LangGraph gives it; may be set after compiling."""
        return self.store

    @checkpointer.setter
    def checkpointer(self, store: Store | str | None) -> None:
        self.store = open_store(store)
        self._clock = self.store.clock if self.store is not None else SystemClock()

    # ── Running ────────────────────────────────────────────────────────────────────────────────────────────────────

    def invoke(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Any:
        """Run until the graph is done or waits, and return the state.

        `input` is a dict of state keys for a new run, `Command(resume=…)` to answer, `None` to go on.
        """
        if "stream_mode" in options:
            return list(self.stream(input, config, **options))
        session = self._open(input, config, options, ())
        ending = None
        for item in self._drive(session):
            ending = item
        return self._result(session, ending)

    async def ainvoke(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Any:
        """Do what `invoke` does, with asyncio."""
        if "stream_mode" in options:
            return [part async for part in self.astream(input, config, **options)]
        session = self._open(input, config, options, ())
        ending = None
        async with aclosing(self._adrive(session)) as items:
            async for item in items:
                ending = item
        return self._result(session, ending)

    def stream(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Iterator[Part]:
        """Run, and yield what happens while it happens. A pause ends the stream with an interrupt part."""
        session = self._open(input, config, options, read_modes(options.get("stream_mode", "updates")))
        for item in self._drive(session):
            if isinstance(item, Emit):
                yield from self._parts(session, item)
            else:
                self._result(session, item)

    async def astream(
        self, input: Any, config: Config | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[Part]:
        """Do what `stream` does, with asyncio."""
        session = self._open(input, config, options, read_modes(options.get("stream_mode", "updates")))
        async with aclosing(self._adrive(session)) as items:
            async for item in items:
                if isinstance(item, Emit):
                    for part in self._parts(session, item):
                        yield part
                else:
                    self._result(session, item)

    def events(self, input: Any, config: Config | None = None, **options: Unpack[Options]) -> Iterator[dict[str, Any]]:
        """Run, and yield a dict for each update; the last one has the type `interrupt` or `final`, and the state."""
        session = self._open(input, config, options, ("updates",))
        for item in self._drive(session):
            if isinstance(item, Ending):
                yield self._last_event(session, self._result(session, item), item)
                return
            for _, update in session.shaper.parts(item):
                if INTERRUPT not in update:
                    yield from ({"type": "update", "node": node, "update": change} for node, change in update.items())

    def _last_event(self, session: _Session, result: Result, ending: Ending) -> dict[str, Any]:
        if not ending.is_paused:
            return {"type": "final", "state": result.value}
        return {
            "type": "interrupt",
            "node": ending.asks[0].node,
            "state": result.value,
            "checkpoint": result.checkpoint_id,
            "interrupts": result.interrupts,
        }

    # ── Looking and editing ────────────────────────────────────────────────────────────────────────────────────────

    def get_state(self, config: Config) -> StateSnapshot:
        """Show the thread as it stands, or, with a checkpoint_id in `config`, as it stood there."""
        recorder, seq = self._reader(config)
        return self._snapshot(recorder, recorder.perform(Load(seq)), is_pinned=seq is not None)

    async def aget_state(self, config: Config) -> StateSnapshot:
        """Do what `get_state` does, with asyncio."""
        return await _in_thread(self.get_state, config)

    def get_state_history(
        self,
        config: Config,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
        order: Literal["desc", "asc"] = "desc",
    ) -> Iterator[StateSnapshot]:
        """Show every checkpoint of a thread, newest first; `filter` compares with a snapshot's metadata."""
        found = self._history(config, filter or {}, before)
        if order == "asc":
            found = iter(list(found)[::-1])
        return islice(found, limit)

    async def aget_state_history(self, config: Config, **options: Any) -> AsyncIterator[StateSnapshot]:
        """Do what `get_state_history` does, with asyncio."""
        for snapshot in await _in_thread(lambda: list(self.get_state_history(config, **options))):
            yield snapshot

    def update_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Change the state of a thread that does not run, and return the config of the new checkpoint.

        Without `as_node`, the thread keeps standing where it stands: open questions stay open, and conditional edges
        that led there choose again. With it, the thread stands as if that node had just returned `values`.
        """
        recorder, seq = self._reader(config)
        context = self._context(recorder, config)
        crew = Crew(self.spec, context, most=None, is_live=False)
        for item in run(edit(self.spec, values, as_node, seq), crew, recorder):
            checkpoint = item
        return self._edited(recorder, checkpoint)

    async def aupdate_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Do what `update_state` does, with asyncio."""
        from bide.engine.adrive import AsyncCrew, arun  # asyncio is a fifth of `import bide`; sync callers need none

        recorder, seq = self._reader(config)
        context = self._context(recorder, config)
        crew = AsyncCrew(self.spec, context, most=None, is_live=False)
        async for item in arun(edit(self.spec, values, as_node, seq), crew, recorder):
            checkpoint = item
        return self._edited(recorder, checkpoint)

    # ── How it is done ─────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, given: Any, config: Config | None, options: Options, modes: tuple[str, ...]) -> _Session:
        """Read the caller's words and make a session of them. Nothing is read or written yet."""
        check_options(options)
        read = read_config(config)
        reference = read_reference(options.get("checkpoint") or read.checkpoint_id)
        thread_id = read.thread_id
        if self.store is not None and thread_id is None and reference is None:
            thread_id = self._new_thread(given)
        recorder = None
        if self.store is not None:
            durability = options.get("durability") or self.durability
            recorder = Recorder(self.store, self.spec, self._codec, thread_id, reference, durability, read.metadata)
        request = read_request(
            given,
            options,
            read,
            (self.before, self.after, self.on_paused),
            wants=wanted(modes),
            durable=recorder is not None,
        )
        self._check_storeless(given, request.before | request.after)
        context = RunContext(
            spec=self.spec,
            thread_id=thread_id,
            config=read.shown,
            context=options.get("context"),
            emit=None,
            journal=recorder,
        )
        return _Session(
            flow=advance(self.spec, request),
            context=context,
            recorder=recorder,
            most=read.max_concurrency,
            is_live=CUSTOM in request.wants,
            shaper=Shaper(self.spec, modes, partial(self._config_of, recorder), self._clock),
            is_single=isinstance(options.get("stream_mode", ""), str),
            raises=options.get("raise_on_interrupt", False),
        )

    def _new_thread(self, given: Any) -> str:
        """Name the thread of a call that names none: fine for new input, useless for going on."""
        if given is None or (isinstance(given, Command) and given.resume is not UNSET):
            raise UnknownThreadError(
                'Going on needs to know the thread: config={"configurable": {"thread_id": …}}, or checkpoint=….'
            )
        return uuid7(self._clock.now())

    def _check_storeless(self, given: Any, static: frozenset[str]) -> None:
        unknown = static - self.spec.nodes.keys() - {"*"}
        if unknown:
            raise GraphError(
                f"There is no node {min(unknown)!r} to pause at. Known nodes: {', '.join(self.spec.nodes)}."
            )
        if self.store is not None:
            return
        if given is None or static or (isinstance(given, Command) and given.resume is not UNSET):
            raise GraphError(
                "This graph has no store, so it cannot pause or go on. Compile it with one: "
                'graph.compile(checkpointer="sqlite:///bide.db"), or MemorySaver() for a try-out.'
            )

    def _drive(self, session: _Session) -> Iterator[Emit | Ending]:
        if self._async_nodes:
            raise GraphError(
                f"{self._async_nodes[0]!r} is async, so this graph runs with `await graph.ainvoke(…)` or `astream`. "
                f"invoke() and stream() are for graphs whose nodes are plain functions."
            )
        return run(session.flow, Crew(self.spec, session.context, **session.crew), session.recorder)

    def _adrive(self, session: _Session) -> AsyncGenerator[Emit | Ending, None]:
        from bide.engine.adrive import AsyncCrew, arun  # asyncio is a fifth of `import bide`; sync callers need none

        return arun(session.flow, AsyncCrew(self.spec, session.context, **session.crew), session.recorder)

    def _parts(self, session: _Session, event: Emit) -> Iterator[Part]:
        for mode, payload in session.shaper.parts(event):
            yield payload if session.is_single else (mode, payload)

    def _result(self, session: _Session, ending: Any) -> Result:
        assert isinstance(ending, Ending), "a driver ends with an Ending"
        recorder, checkpoint = session.recorder, ending.checkpoint
        interrupts = tuple(question.shown() for question in ending.asks if not question.is_static)
        result = Result(
            output_of(self.spec, checkpoint),
            interrupts=interrupts,
            next=ending.next,
            is_interrupted=ending.is_paused,
            thread_id=None if recorder is None else recorder.thread_id,
            checkpoint_id=None if recorder is None else checkpoint_id(recorder.uid, checkpoint.seq),
        )
        if session.raises and ending.is_paused:
            ask = ending.asks[0]
            raise GraphInterrupt(
                node=ask.node, state=result.value, value=ask.value, next=ending.next, interrupts=interrupts
            )
        return result

    def _stored(self) -> Store:
        if self.store is None:
            raise GraphError(
                "This graph has no store, so there is no state to look at. Compile it with one: "
                'graph.compile(checkpointer="sqlite:///bide.db").'
            )
        return self.store

    def _reader(self, config: Config) -> tuple[Recorder, int | None]:
        read = read_config(config)
        reference = read_reference(read.checkpoint_id)
        if read.thread_id is None and reference is None:
            raise UnknownThreadError('Say which thread: config={"configurable": {"thread_id": …}}.')
        recorder = Recorder(self._stored(), self.spec, self._codec, read.thread_id, reference)
        return recorder, None if reference is None else reference.seq

    def _context(self, recorder: Recorder, config: Config) -> RunContext:
        shown = read_config(config).shown
        return RunContext(
            spec=self.spec, thread_id=recorder.thread_id, config=shown, context=None, emit=None, journal=None
        )

    def _edited(self, recorder: Recorder, checkpoint: Any) -> dict[str, Any]:
        return shown_config(recorder.thread_id, recorder.uid, checkpoint.seq)

    def _snapshot(self, recorder: Recorder, loaded: Loaded, *, is_pinned: bool) -> StateSnapshot:
        if loaded.checkpoint is None:
            return empty_snapshot(recorder.thread_id)
        if is_pinned and loaded.checkpoint.seq != loaded.head:
            return past_snapshot(self.spec, recorder.thread_id, recorder.uid, loaded.checkpoint, recorder.asked())
        return live_snapshot(self.spec, recorder.thread_id, loaded)

    def _history(self, config: Config, filter: Mapping[str, Any], before: Config | None) -> Iterator[StateSnapshot]:
        recorder, _ = self._reader(config)
        recorder.perform(Load(None))
        pinned = read_reference(before)
        last = pinned.seq if pinned is not None else 2**62
        asked = recorder.asked()
        while True:
            page = recorder.page(before=last, most=50)
            for checkpoint in page:
                snapshot = past_snapshot(self.spec, recorder.thread_id, recorder.uid, checkpoint, asked)
                if all((snapshot.metadata or {}).get(key) == value for key, value in filter.items()):
                    yield snapshot
            if len(page) < 50:
                return
            last = page[-1].seq

    def _config_of(self, recorder: Recorder | None, seq: int) -> dict[str, Any]:
        if recorder is None:
            return {"configurable": {}}
        return shown_config(recorder.thread_id, recorder.uid, seq)


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    from asyncio import to_thread  # see _adrive

    return await to_thread(function, *args)
