"""From a `StateGraph` to the `GraphSpec` that the engine runs. Everything that can be known ahead is computed here."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from bide.engine.channels import Barrier, Channel
from bide.engine.spec import Branch, Call, GraphSpec, NodeSpec
from bide.graph.calls import read_call
from bide.graph.schema import Read, read_update, reader_with_extras
from bide.types import START, UNSET

if TYPE_CHECKING:
    from bide.graph.state import StateGraph


def build_spec(graph: StateGraph, name: str) -> GraphSpec:
    """Freeze a checked graph."""
    joins = {join_name(sources, target): (sources, target) for sources, target in sorted(graph.joins)}
    channels: dict[str, Channel] = dict(graph.channels)
    channels |= {key: Barrier(frozenset(sources)) for key, (sources, _) in joins.items()}
    whole = reader_with_extras(frozenset(joins)) if graph.schema.is_dict else graph.schema.read
    nodes = {node.name: _node(graph, node.name, whole, joins) for node in graph.nodes.values()}
    return GraphSpec(
        name=name,
        nodes=nodes,
        start=_start(graph, whole),
        channels=channels,
        joins={key: target for key, (_, target) in joins.items()},
        input_keys=frozenset(graph.input.keys),
        output_keys=tuple(graph.output.keys),
        state_keys=frozenset(graph.channels),
        read_update=read_update,
        fingerprint=_fingerprint(graph, channels),
        open_state=graph.schema.is_dict,
        fleeting=tuple(key for key, channel in graph.channels.items() if channel.fleeting),
        begins=tuple(key for key, channel in graph.channels.items() if channel.initial() is not UNSET),
    )


def join_name(sources: tuple[str, ...], target: str) -> str:
    """Name the barrier channel of an edge from several nodes."""
    return f"join:{'+'.join(sorted(sources))}:{target}"


def _node(graph: StateGraph, name: str, whole: Read, joins: dict[str, tuple[tuple[str, ...], str]]) -> NodeSpec:
    node = graph.nodes[name]
    return NodeSpec(
        name=name,
        call=read_call(node.action, f"Node {name!r}"),
        read=whole if node.schema is graph.schema else node.schema.read,
        edges=_edges(graph, name),
        branches=_branches(graph, name, whole),
        joins=tuple(key for key, (sources, _) in joins.items() if name in sources),
    )


def _start(graph: StateGraph, whole: Read) -> NodeSpec:
    return NodeSpec(START, Call(_nothing, False), whole, _edges(graph, START), _branches(graph, START, whole))


def _nothing(state: Any) -> None:
    """START does nothing of its own: the input is written for it."""


def _edges(graph: StateGraph, name: str) -> tuple[str, ...]:
    return tuple(sorted(target for source, target in graph.edges if source == name))


def _branches(graph: StateGraph, source: str, whole: Read) -> tuple[Branch, ...]:
    return tuple(
        Branch(name, read_call(path, f"The conditional edge {name!r} after {source!r}"), whole, path_map)
        for name, path, path_map in graph.branches.get(source, ())
    )


def _fingerprint(graph: StateGraph, channels: dict[str, Channel]) -> str:
    parts = [
        sorted(graph.nodes),
        sorted(graph.edges),
        sorted(graph.joins),
        sorted((source, name) for source, known in graph.branches.items() for name, _, _ in known),
        sorted((key, type(channel).__name__) for key, channel in channels.items()),
    ]
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
