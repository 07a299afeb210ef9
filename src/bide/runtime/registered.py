"""The graphs that an application knows, each with the lanes in which its runs are ready."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from bide.errors import GraphError, did_you_mean
from bide.graph.compiled import CompiledGraph
from bide.graph.session import open_cache
from bide.store import Store
from bide.store.lanes import DEFAULT_QUEUE, lane_of

Given = Mapping[str, CompiledGraph] | Iterable[CompiledGraph] | CompiledGraph


class Registered(NamedTuple):
    """A graph under the name that its threads carry."""

    name: str
    graph: CompiledGraph
    version: str = ""
    """Of new runs, when they are pinned: only workers of the same version go on with them."""


def _named(given: Given) -> Iterable[tuple[str, CompiledGraph]]:
    if isinstance(given, Mapping):
        return given.items()
    several = [given] if isinstance(given, CompiledGraph) else given
    return [(getattr(graph, "name", "?"), graph) for graph in several]


def named_graphs(given: Given) -> list[tuple[str, CompiledGraph]]:
    """Return each graph with the name that it was given under: one, several, or a dict of them."""
    if isinstance(given, Mapping):
        return list(given.items())
    several = [given] if isinstance(given, CompiledGraph) else given
    return [(getattr(graph, "name", "?"), graph) for graph in several]


class Graphs:
    """The graphs of an application."""

    def __init__(self, store: Store, given: Given, versions: Mapping[str, str]) -> None:
        self._known: dict[str, Registered] = {}
        for name, graph in named_graphs(given):
            self._add(store, name, graph, versions.get(name, ""))
        wrong = [version for version in versions.values() if not isinstance(version, str) or set(version) & set("@/\0")]
        if wrong:
            raise GraphError(f"The version {wrong[0]!r} must be a text without '@' and '/'.")
        unknown = set(versions) - set(self._known)
        if unknown:
            raise GraphError(f"versions names {min(unknown)!r}, which is no graph here. Known: {self.listed()}.")

    def _add(self, store: Store, name: str, graph: CompiledGraph, version: str) -> None:
        if not isinstance(graph, CompiledGraph):
            raise GraphError(f"{graph!r} is no compiled graph. Give builder.compile(name='…').")
        if name != graph.name:
            raise GraphError(
                f"A graph named {graph.name!r} was given as {name!r}. Its threads are stored under its own name: "
                f"compile(name={name!r}), or register it as {graph.name!r}."
            )
        if name in self._known:
            raise GraphError(f"Two graphs are named {name!r}. Name them when compiling: compile(name='…').")
        if graph.store is not None and graph.store is not store and graph.is_lent:
            # It is another application's as well, perhaps one that was closed: this one has its own copy.
            graph = copy(graph)
            graph.checkpointer = None
        if graph.store is None:
            graph.checkpointer = store
            graph.is_lent = True
            graph.cache = open_cache(graph.build.cache, store, graph.spec)
        elif graph.store is not store:
            raise GraphError(
                f"Graph {name!r} was compiled with a store of its own, and an application has one. Compile it without "
                f"checkpointer=…, or open the application with that store: Bide(graph.checkpointer, …)."
            )
        self._known[name] = Registered(name, graph, version)
        if version:
            store.versions[name] = version

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._known.values())

    def listed(self) -> str:
        """Name them all, for messages."""
        return ", ".join(map(repr, self._known)) or "none"

    def get(self, name: str) -> Registered:
        """Return a graph by its name."""
        found = self._known.get(name)
        if found is None:
            hint = did_you_mean(name, self._known)
            raise GraphError(f"There is no graph {name!r} in this application.{hint} Known: {self.listed()}.")
        return found

    def find(self, name: str) -> CompiledGraph | None:
        """Return a graph by its name, if it is known here."""
        found = self._known.get(name)
        return None if found is None else found.graph

    def lanes(self, queues: Sequence[str] = (DEFAULT_QUEUE,)) -> tuple[str, ...]:
        """Return what a worker with these graphs serves: runs of any version, and those of just its own."""
        if isinstance(queues, str):
            raise GraphError(f"queues={queues!r} is one text. Give a list of names: queues=[{queues!r}].")
        lanes: dict[str, None] = {}
        for queue in queues:
            for name, _, version in self._known.values():
                lanes[lane_of(name, queue)] = None
                lanes[lane_of(name, queue, version)] = None
        return tuple(lanes)
