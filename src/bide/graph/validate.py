"""Every authoring mistake, found when written or at compile, with the name of the thing and the way to mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bide.errors import GraphError, did_you_mean
from bide.graph.calls import name_of
from bide.types import END, START

if TYPE_CHECKING:
    from bide.graph.state import StateGraph


_VALUES = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
"""What stands where a type belongs when somebody gives a state instead of its schema."""


def check_types(keys: Mapping[str, Any]) -> None:
    """Refuse a schema that holds values instead of types."""
    for key, given in keys.items():
        if isinstance(given, _VALUES):
            raise GraphError(
                f"State key {key!r}: {given!r} is no type. A schema says what a key may hold: "
                f"{{{key!r}: {type(given).__name__}}}. Values are given to invoke()."
            )


def check_names(call: str, places: Sequence[Any]) -> None:
    """Refuse edges to or from anything but a name: the function of a node, or a list of targets."""
    for place in places:
        if isinstance(place, str):
            continue
        if isinstance(place, list | tuple | set):
            raise GraphError(f"{call}: an edge leads to one node, and {place!r} are several. Add an edge for each.")
        own = name_of(place)
        meant = f"Edges take names: {own!r}." if own else "Edges take the names of nodes."
        raise GraphError(f"{call}: {place!r} is no name. {meant}")


def check_graph(graph: StateGraph) -> None:
    """Refuse a graph that could not run, or that would end in silence."""
    if not graph.nodes:
        raise GraphError("The graph has no nodes. Add one: graph.add_node('name', function).")
    for source, target in sorted(graph.edges):
        _check_edge(graph, source, target)
    for sources, target in sorted(graph.joins):
        _check_join(graph, sources, target)
    for source, branches in graph.branches.items():
        _check_source(graph, source, f"add_conditional_edges({source!r}, …)")
        for name, _, path_map, _ in branches:
            for target in (path_map or {}).values():
                _check_target(graph, target, f"add_conditional_edges({source!r}, {name}, …)")
    if not any(source == START for source, _ in graph.edges) and START not in graph.branches:
        first = next(iter(graph.nodes))
        raise GraphError(f"The graph has no entry point. Add one: graph.add_edge(START, {first!r}).")


def _check_join(graph: StateGraph, sources: tuple[str, ...], target: str) -> None:
    text = f"add_edge({list(sources)!r}, {target!r})"
    for source in sources:
        _check_edge(graph, source, target, text)
        if source == START:
            raise GraphError(f"{text}: START cannot be waited for; leave it out.")
    if target == END:
        raise GraphError(f"{text}: a run ends by itself when nothing is left to do; leave it out.")


def check_static(graph: StateGraph, names: Sequence[str] | str | None, what: str, *, has_store: bool) -> frozenset[str]:
    """Check the nodes of `interrupt_before` or `interrupt_after`."""
    chosen = static_nodes(names)
    for name in sorted(chosen - {"*"}):
        if name not in graph.nodes:
            raise GraphError(f"{what} names {name!r}, which is no node.{_hint(name, graph)}")
    if chosen and not has_store:
        raise GraphError(
            f"{what} needs a store: without one a paused thread would be lost. "
            f'Compile with compile(checkpointer="sqlite:///bide.db", …), or MemorySaver() for a try-out.'
        )
    return chosen


def static_nodes(names: Sequence[str] | str | None) -> frozenset[str]:
    """Read a list of nodes at which to pause; `"*"` means all."""
    return frozenset((names,) if isinstance(names, str) else names or ())


def _check_edge(graph: StateGraph, source: str, target: str, text: str | None = None) -> None:
    text = text or f"add_edge({source!r}, {target!r})"
    _check_source(graph, source, text)
    _check_target(graph, target, text)


def _check_source(graph: StateGraph, source: str, text: str) -> None:
    if source == END:
        raise GraphError(f"{text}: nothing comes after END.")
    if source != START and source not in graph.nodes:
        raise GraphError(f"{text}: there is no node {source!r}.{_hint(source, graph)}")


def _check_target(graph: StateGraph, target: str, text: str) -> None:
    if target == START:
        raise GraphError(f"{text}: START cannot be gone to. To loop, name the first node.")
    if target != END and target not in graph.nodes:
        raise GraphError(f"{text}: there is no node {target!r}.{_hint(target, graph)}")


def _hint(name: str, graph: StateGraph) -> str:
    if name in ("START", "END"):
        return f" Did you mean {name}, without quotes? from bide import {name}"
    meant = did_you_mean(name, graph.nodes) or f" Add it: graph.add_node({name!r}, function)."
    return f"{meant} Known nodes: {', '.join(map(repr, graph.nodes))}."
