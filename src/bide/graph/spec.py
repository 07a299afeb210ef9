"""From a `StateGraph` to the `GraphSpec` that the engine runs. Everything that can be known ahead is computed here."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from bide.codec import Codec
from bide.engine.care import NO_CARE, Care, read_limits, read_retry
from bide.engine.channels import Barrier, Channel, LastValue, Pointers
from bide.engine.spec import DEFERRED, FRAMES, GATHERED, GIVEN, Branch, Call, GraphSpec, NodeSpec
from bide.graph.calls import read_call
from bide.graph.options import NodeOptions
from bide.graph.schema import Read, read_update, reader_with_extras
from bide.types import START, UNSET

if TYPE_CHECKING:
    from bide.graph.state import StateGraph

UNNAMED = "graph"
"""What a graph is called that was compiled without a name; nothing to put above a picture."""


def build_spec(graph: StateGraph, name: str) -> GraphSpec:
    """Freeze a checked graph."""
    joins = {join_name(sources, target): (sources, target) for sources, target in sorted(graph.joins)}
    channels: dict[str, Channel] = dict(graph.channels)
    channels |= {key: Barrier(frozenset(sources)) for key, (sources, _) in joins.items()}
    own = {DEFERRED: any(node.is_deferred for node in graph.nodes.values()), GATHERED: _has_fanin(graph)}
    used = [key for key, is_used in own.items() if is_used]
    channels |= {FRAMES: Pointers(), GIVEN: LastValue(), **{key: LastValue() for key in used}}
    hidden = frozenset((*joins, FRAMES, GIVEN, *used))
    whole = reader_with_extras(hidden) if graph.schema.is_dict else graph.schema.read
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
        codec=Codec(graph.types),
        deferred=frozenset(node.name for node in graph.nodes.values() if node.is_deferred),
        open_state=graph.schema.is_dict,
        fleeting=tuple(key for key, channel in graph.channels.items() if channel.fleeting),
        begins=tuple(key for key, channel in graph.channels.items() if channel.initial() is not UNSET),
    )


def _has_fanin(graph: StateGraph) -> bool:
    return any(node.is_fanin for node in graph.nodes.values())


def join_name(sources: tuple[str, ...], target: str) -> str:
    """Name the barrier channel of an edge from several nodes."""
    return f"~join:{'+'.join(sorted(sources))}:{target}"


def _node(graph: StateGraph, name: str, whole: Read, joins: dict[str, tuple[tuple[str, ...], str]]) -> NodeSpec:
    node = graph.nodes[name]
    return NodeSpec(
        name=name,
        call=node.call,
        read=whole if node.schema is graph.schema else node.schema.read,
        edges=_edges(graph, name),
        branches=_branches(graph, name, whole),
        joins=tuple(key for key, (sources, _) in joins.items() if name in sources),
        subgraph=node.subgraph,
        care=care_of(node.options, graph.defaults),
        is_feeder=any(graph.nodes[target].is_fanin for target in _targets(graph, name) if target in graph.nodes),
        is_fanin=node.is_fanin,
        destinations=node.destinations,
    )


def care_of(options: NodeOptions, defaults: NodeOptions) -> Care:
    """Put together what is done for a node, its own policies before those of the graph."""
    chosen: dict[str, Any] = {**defaults, **{name: value for name, value in options.items() if value is not None}}
    handler = chosen.get("error_handler")
    care = Care(
        retry=read_retry(chosen.get("retry_policy")),
        cache=chosen.get("cache_policy"),
        limits=read_limits(chosen.get("timeout")),
        handler=None if handler is None else read_call(handler, f"The error handler {handler!r}"),
    )
    return NO_CARE if care == NO_CARE else care


def _start(graph: StateGraph, whole: Read) -> NodeSpec:
    return NodeSpec(START, Call(_nothing, False), whole, _edges(graph, START), _branches(graph, START, whole))


def _nothing(state: Any) -> None:
    """START does nothing of its own: the input is written for it."""


def _edges(graph: StateGraph, name: str) -> tuple[str, ...]:
    return tuple(sorted(target for source, target in graph.edges if source == name))


def _targets(graph: StateGraph, name: str) -> set[str]:
    """Name every place that a node's edges lead to."""
    joined = {target for sources, target in graph.joins if name in sources}
    chosen = {target for _, _, path_map, _ in graph.branches.get(name, ()) for target in (path_map or {}).values()}
    return {*_edges(graph, name), *joined, *chosen}


def _branches(graph: StateGraph, source: str, whole: Read) -> tuple[Branch, ...]:
    return tuple(
        Branch(name, call, whole if schema is graph.schema else schema.read, path_map, schema is graph.schema)
        for name, call, path_map, schema in graph.branches.get(source, ())
    )


def _fingerprint(graph: StateGraph, channels: dict[str, Channel]) -> str:
    parts = [
        sorted(graph.nodes),
        sorted(graph.edges),
        sorted(graph.joins),
        sorted((source, name) for source, known in graph.branches.items() for name, *_ in known),
        sorted((key, type(channel).__name__) for key, channel in graph.channels.items()),
    ]
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
