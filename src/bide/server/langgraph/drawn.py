"""A graph as a list of nodes and a list of edges, as LangChain writes it down: graphs inside it are laid flat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bide.engine.spec import GraphSpec
from bide.graph.drawing import picture_of
from bide.picture import Picture, PictureEdge
from bide.types import END, START


class _Ends(NamedTuple):
    """Where edges that lead to a node arrive, and where those that leave it begin."""

    entry: str
    exit: str


def drawn(spec: GraphSpec, xray: int | bool = False) -> dict[str, Any]:
    """Return the nodes and edges of a graph; `xray` opens those inside it, so many levels deep."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    _lay(picture_of(spec, xray=xray), "", frozenset(), nodes, edges)
    return {"nodes": nodes, "edges": edges}


def _lay(
    picture: Picture, path: str, left_out: frozenset[str], nodes: list[dict[str, Any]], edges: list[dict[str, Any]]
) -> None:
    ends: dict[str, _Ends] = {}
    for node in picture.nodes:
        if node.id in left_out:
            continue
        here = path + node.id
        if node.inside is None:
            nodes.append({"id": here, "type": "runnable", "data": {"id": ["bide", node.kind], "name": node.id}})
            ends[node.id] = _Ends(here, here)
            continue
        inner = _ends_of(node.inside, f"{here}:")
        hidden = frozenset(place for place in (START, END) if f"{here}:{place}" not in inner)
        _lay(node.inside, f"{here}:", hidden, nodes, edges)
        ends[node.id] = inner
    edges += _edges(picture, ends)


def _ends_of(picture: Picture, path: str) -> _Ends:
    """Find where a graph begins and ends: at a node, if that is clear, or at places of its own."""
    first = [edge.target for edge in picture.edges if edge.source == START]
    last = [edge.source for edge in picture.edges if edge.target == END]
    entry = first[0] if len(first) == 1 and first[0] != END else START
    exit = last[0] if len(last) == 1 and last[0] != START else END
    return _Ends(_deep(picture, entry, path).entry, _deep(picture, exit, path).exit)


def _deep(picture: Picture, node_id: str, path: str) -> _Ends:
    node = next(node for node in picture.nodes if node.id == node_id)
    here = path + node_id
    return _Ends(here, here) if node.inside is None else _ends_of(node.inside, f"{here}:")


def _edges(picture: Picture, ends: dict[str, _Ends]) -> Iterator[dict[str, Any]]:
    for edge in picture.edges:
        if edge.source in ends and edge.target in ends:
            yield _edge(edge, ends[edge.source].exit, ends[edge.target].entry)


def _edge(edge: PictureEdge, source: str, target: str) -> dict[str, Any]:
    told: dict[str, Any] = {"source": source, "target": target}
    if edge.label:
        told["data"] = edge.label
    if edge.is_conditional:
        told["conditional"] = True
    return told
