"""Looking at threads and changing them from outside: `get_state`, its history, `update_state`, `fork`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from bide.clock import Clock
from bide.engine.drive import Crew, run
from bide.engine.edit import Change, edit, fork, read_writes
from bide.engine.opening import Request
from bide.engine.run_context import RunContext, Surroundings
from bide.engine.spec import GraphSpec
from bide.engine.values import Load, Loaded
from bide.errors import BideError, GraphError, UnknownCheckpointError, UnknownThreadError
from bide.graph.door import Config, merged_config, read_config, read_ns, read_reference, shown_config, shown_ns
from bide.graph.hold import Hold
from bide.graph.inner_forks import fork_inside
from bide.graph.recorder import Recorder
from bide.graph.replay_check import ReplayReport, check_step
from bide.graph.session import NO_STORE, Build
from bide.graph.snapshot import empty_snapshot, live_snapshot, past_snapshot, with_inner_states
from bide.store import Store
from bide.types import START, StateSnapshot, StateUpdate

if TYPE_CHECKING:
    from bide.graph.drawing import Inner, Marks
    from bide.picture import Picture

T = TypeVar("T")


class Place(NamedTuple):
    """What a config points at: a thread, a graph in it, and perhaps one of its checkpoints."""

    recorder: Recorder
    """Of the graph that is meant: the thread's own, or one inside it."""
    spec: GraphSpec
    seq: int | None
    root: Recorder


class Threads:
    """The part of a compiled graph that reads and edits stored threads."""

    spec: GraphSpec
    store: Store | None
    clock: Clock
    build: Build
    bound: Config

    # ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def get_state(self, config: Config, *, subgraphs: bool = False) -> StateSnapshot:
        """Show the thread as it stands, or, with a checkpoint_id in `config`, as it stood there.

        `subgraphs=True` shows the graphs inside its tasks, too: `snapshot.tasks[0].state`.
        """
        place = self._place(config)
        snapshot, loaded = self._look(place)
        return with_inner_states(snapshot, place.recorder, place.spec, loaded, subgraphs=subgraphs)

    def _look(self, place: Place) -> tuple[StateSnapshot, Loaded]:
        recorder = place.recorder
        loaded = place.root.perform(Load(place.seq if place.root is recorder else None))
        if place.root is not recorder:
            loaded = recorder.look_inside(place.seq)
        if loaded.checkpoint is None:
            return empty_snapshot(recorder.thread_id), loaded
        if place.seq is not None and loaded.checkpoint.seq != loaded.head:
            shown = past_snapshot(place.spec, recorder.thread_id, recorder.uid, loaded.checkpoint, recorder.asked())
            return shown, loaded
        return live_snapshot(place.spec, recorder.thread_id, loaded), loaded

    def written_state(self, config: Config) -> StateSnapshot:
        """Show a checkpoint as it was written: the same whenever one looks.

        `get_state` also shows what its tasks have done and asked since.
        """
        place = self._place(config)
        recorder = place.recorder
        loaded = recorder.perform(Load(place.seq))
        if loaded.checkpoint is None:
            return empty_snapshot(recorder.thread_id)
        shown = past_snapshot(place.spec, recorder.thread_id, recorder.uid, loaded.checkpoint, ())
        return with_inner_states(shown, recorder, place.spec, loaded, subgraphs=False)

    async def aget_state(self, config: Config, *, subgraphs: bool = False) -> StateSnapshot:
        """Do what `get_state` does, with asyncio."""
        return await _in_thread(lambda: self.get_state(config, subgraphs=subgraphs))

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

    def _history(self, config: Config, filter: Mapping[str, Any], before: Config | None) -> Iterator[StateSnapshot]:
        place = self._place(config)
        recorder = place.recorder
        place.root.perform(Load(None))
        pinned = read_reference(before)
        asked = recorder.asked()
        for checkpoint in recorder.all(before=pinned.seq if pinned is not None else 2**62):
            snapshot = past_snapshot(place.spec, recorder.thread_id, recorder.uid, checkpoint, asked)
            if all((snapshot.metadata or {}).get(key) == value for key, value in filter.items()):
                yield with_inner_states(snapshot, recorder, place.spec, None, subgraphs=False)

    # ── Pictures ───────────────────────────────────────────────────────────────────────────────────────────────────

    def get_graph(self, config: Config | None = None, *, xray: int | bool = False) -> Picture:
        """Draw the graph; with the config of a thread, show where that thread stands in it.

        `xray=True` opens the graphs inside it, a number so many levels of them. The picture has `draw_mermaid()`,
        `draw_svg()`, `draw_png()` and `draw_ascii()`.
        """
        from bide.graph.drawing import picture_of  # only those who draw pay for it

        names_thread = bool(config) and bool((config or {}).get("configurable"))
        if not names_thread:
            return picture_of(self.spec, xray=xray)
        marks, inner = self._marks(config or {}, deep=bool(xray))
        return picture_of(self.spec, xray=xray, marks=marks, inner=inner)

    async def aget_graph(self, config: Config | None = None, *, xray: int | bool = False) -> Picture:
        """Do what `get_graph` does, with asyncio."""
        return await _in_thread(lambda: self.get_graph(config, xray=xray))

    def _marks(self, config: Config, *, deep: bool) -> tuple[Marks, Inner]:
        from bide.graph.drawing import marks_of

        snapshot = self.get_state(config)
        visited = frozenset(name for name in self._visited(config) if name != START)
        inner: dict[str, tuple[Marks, Inner]] = {}
        if deep:
            for task in snapshot.tasks:
                if isinstance(task.state, dict):
                    inner[task.name] = self._marks(task.state, deep=True)
        return marks_of(snapshot, visited), inner

    def _visited(self, config: Config) -> Iterator[str]:
        """Name the nodes that have finished on the way to where a config points, along its own branch."""
        place = self._place(config)
        place.root.perform(Load(None))
        wanted: int | None = place.seq
        for checkpoint in place.recorder.all():
            if wanted is None or checkpoint.seq == wanted:
                yield from (origin.node for origin in checkpoint.origins)
                wanted = checkpoint.parent if checkpoint.parent is not None else -1

    # ── Changed code ───────────────────────────────────────────────────────────────────────────────────────────────

    def replay_check(self, thread_ids: Iterable[str] | None = None) -> list[ReplayReport]:
        """Replay every paused node against its journal with the code as it is now, and say which threads would break.

        Without `thread_ids`, all threads of this graph that wait. Steps are not made and nothing is written; code of a
        node outside `step()` does run.
        """
        store = self._stored()
        chosen = store.waiting_threads(self.spec.name) if thread_ids is None else [str(id_) for id_ in thread_ids]
        return [report for thread_id in chosen for report in self._replayed(thread_id)]

    async def areplay_check(self, thread_ids: Iterable[str] | None = None) -> list[ReplayReport]:
        """Do what `replay_check` does, with asyncio."""
        return await _in_thread(lambda: self.replay_check(thread_ids))

    def _replayed(self, thread_id: str) -> Iterator[ReplayReport]:
        config = {"configurable": {"thread_id": thread_id}}
        place = self._place(config)
        around = Surroundings(config=config, clock=self.clock, items=getattr(self, "items", None))
        try:
            loaded = place.root.perform(Load(None))
            yield from self._replayed_at(place.root, self.spec, loaded, around)
        except BideError as problem:
            yield ReplayReport(thread_id, "", "", True, f"{type(problem).__name__}: {problem}")

    def _replayed_at(
        self, recorder: Recorder, spec: GraphSpec, loaded: Loaded, around: Surroundings
    ) -> Iterator[ReplayReport]:
        yield from check_step(spec, loaded, around)
        for task in () if loaded.checkpoint is None else loaded.checkpoint.tasks:
            node = spec.nodes.get(task.node)
            if node is not None and node.subgraph is not None and node.subgraph.keeps is not False:
                inner = recorder.inside_task(node.subgraph, task.id)
                yield from self._replayed_at(inner, node.subgraph.spec, inner.look_inside(None), around)

    # ── Editing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def update_state(
        self, config: Config, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Change the state of a thread that does not run, and return the config of the new checkpoint.

        Without `as_node`, the thread keeps standing where it stands: open questions stay open, and conditional edges
        that led there choose again. With it, the thread stands as if that node had just returned `values`.
        """
        if as_node == "__copy__":
            return self.fork(config)
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: Config, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Do what `update_state` does, with asyncio."""
        if as_node == "__copy__":
            return await self.afork(config)
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: Config, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Apply several updates, one checkpoint for each inner list, and return the config of the last."""
        for step in _checked(supersteps):
            place, story = self._edits(config, step)
            crew = Crew(place.spec, self._context(place, config), most=None, is_live=False)
            for item in run(story, crew, place.recorder):
                checkpoint = item
            config = self._edited(place, checkpoint)
        return dict(config)

    async def abulk_update_state(self, config: Config, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Do what `bulk_update_state` does, with asyncio."""
        from bide.engine.adrive import AsyncCrew, arun  # asyncio is a fifth of `import bide`; sync callers need none

        for step in _checked(supersteps):
            place, story = self._edits(config, step)
            crew = AsyncCrew(place.spec, self._context(place, config), most=None, is_live=False)
            async for item in arun(story, crew, place.recorder):
                checkpoint = item
            config = self._edited(place, checkpoint)
        return dict(config)

    def fork(self, config: Config, values: Any = None, *, answers: Any = None) -> dict[str, Any]:
        """Begin another branch of the thread at a checkpoint, and return its config; `invoke(None, it)` goes on there.

        `values` are merged into the state of the branch. `answers` answers what was asked at that checkpoint, as
        `{question id: answer}`, or as one answer to its only question: the way to answer differently, after all.
        History stays as it is.
        """
        place = self._place(config)
        if place.root is not place.recorder and answers is None and place.seq is not None:
            writes = read_writes(place.spec, values)
            recorder = fork_inside(place.root, place.recorder.ns, place.seq, writes)
            return shown_config(recorder.thread_id, recorder.uid, 1, recorder.ns)
        crew = Crew(place.spec, self._context(place, config), most=None, is_live=False)
        story = fork(place.spec, values, answers, place.seq, lambda: place.recorder.asked())
        for item in run(story, crew, place.recorder):
            checkpoint = item
        return self._edited(place, checkpoint)

    async def afork(self, config: Config, values: Any = None, *, answers: Any = None) -> dict[str, Any]:
        """Do what `fork` does, with asyncio."""
        return await _in_thread(lambda: self.fork(config, values, answers=answers))

    def _edits(self, config: Config, step: Sequence[StateUpdate]) -> tuple[Place, Any]:
        place = self._place(config)
        if place.root is not place.recorder and place.seq is not None and not self._is_live(place):
            # The graph inside has ended, or its branch was left: the edit begins another one.
            recorder = fork_inside(place.root, place.recorder.ns, place.seq, [])
            place = place._replace(recorder=recorder, seq=None)
        if place.root is not place.recorder:
            place.root.perform(Load(None))
            _check_there(place)
        changes = [Change(update.values, update.as_node) for update in step]
        return place, edit(place.spec, changes, place.seq)

    def stands_at(self, config: Config) -> bool:
        """Whether a config points at where the thread stands right now."""
        return self._is_live(self._place(config))

    def _is_live(self, place: Place) -> bool:
        """Whether the graph inside stands at this checkpoint, in the step that its thread is in."""
        head = place.root.perform(Load(None)).checkpoint
        if place.recorder.ns.startswith("@"):
            kept = place.recorder.look_inside(None).checkpoint
            return kept is not None and kept.seq == place.seq
        live = head is not None and any(place.recorder.ns.split("|")[0] == task.id for task in head.tasks)
        loaded = place.recorder.look_inside(None) if live else None
        return loaded is not None and loaded.checkpoint is not None and loaded.checkpoint.seq == place.seq

    # ── How it is done ─────────────────────────────────────────────────────────────────────────────────────────────

    def _place(self, config: Config) -> Place:
        read = read_config(merged_config(self.bound, config))
        reference = read_reference(read.checkpoint_id)
        if read.thread_id is None and reference is None:
            raise UnknownThreadError('Say which thread: config={"configurable": {"thread_id": …}}.')
        hold = Hold(self._stored(), read.thread_id or "", "sync")
        ns = read_ns(read.checkpoint_ns)
        root = Recorder(hold, self.spec, reference if not ns else None, migrate=self.build.migrate)
        seq = None if reference is None else reference.seq
        if not ns:
            return Place(root, self.spec, seq, root)
        spec = inner_spec(self.spec, ns)
        return Place(root.inside(spec, ns, "" if ns.startswith("@") else f"{ns}|"), spec, seq, root)

    def _stored(self) -> Store:
        if self.store is None:
            raise GraphError(f"This graph has no store, so there is no state to look at. {NO_STORE}")
        return self.store

    def _context(self, place: Place, config: Config) -> RunContext:
        around = Surroundings(config=read_config(config).shown, clock=self.clock)
        return RunContext(place.spec, Request(None), around, thread_id=place.recorder.thread_id)

    def _edited(self, place: Place, checkpoint: Any) -> dict[str, Any]:
        recorder = place.recorder
        return shown_config(recorder.thread_id, recorder.uid, checkpoint.seq, recorder.ns)


def _check_there(place: Place) -> None:
    """Refuse to edit a graph that was never there: the edit would go elsewhere, or nowhere."""
    recorder = place.recorder
    if recorder.ns.startswith("@"):
        recorder.stand_where_it_was_left()
    if recorder.look_inside(None).checkpoint is None:
        raise UnknownCheckpointError(
            f"There is no graph at checkpoint_ns {shown_ns(recorder.ns)!r} in thread {recorder.thread_id!r}. Take the "
            f"config from get_state(config, subgraphs=True)."
        )


def inner_spec(spec: GraphSpec, ns: str) -> GraphSpec:
    """Find the graph at a place inside another one, by the names of the nodes on the way."""
    for element in ns.removeprefix("@").split("|"):
        name = element if ns.startswith("@") else element.partition(":")[0].partition(".")[2]
        node = spec.nodes.get(name)
        if node is None or node.subgraph is None:
            raise UnknownCheckpointError(
                f"There is no graph at checkpoint_ns {ns!r}: node {name!r} of graph {spec.name!r} is none. Take the "
                f"config from get_state(config, subgraphs=True)."
            )
        spec = node.subgraph.spec
    return spec


def _checked(supersteps: Sequence[Sequence[StateUpdate]]) -> list[list[StateUpdate]]:
    steps = [
        [update if isinstance(update, StateUpdate) else StateUpdate(*update) for update in step] for step in supersteps
    ]
    if not steps or not all(steps):
        raise GraphError("bulk_update_state needs at least one update in each of its lists.")
    return steps


async def _in_thread(function: Callable[[], T]) -> T:
    from asyncio import to_thread  # a fifth of the time of `import bide`, which sync callers need not spend

    return await to_thread(function)
