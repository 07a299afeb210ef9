"""From a graph, and perhaps a thread in it, to a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bide.engine.spec import GraphSpec, NodeSpec
from bide.picture import Picture, PictureEdge, PictureNode
from bide.types import END, START, StateSnapshot

Marks = Mapping[str, str]
"""Node → how it stands: visited, paused, failed, next."""
Inner = Mapping[str, tuple[Marks, Any]]
"""Node that is a graph → the same for the nodes inside it."""


def picture_of(
    spec: GraphSpec, *, xray: int | bool = False, marks: Marks | None = None, inner: Inner | None = None
) -> Picture:
    """Draw a graph; `xray` opens the graphs inside it, so many levels deep."""
    marks, inner = marks or {}, inner or {}
    edges = list(_edges(spec))
    depth = xray if isinstance(xray, bool) else xray - 1
    nodes = [PictureNode(START, kind="start")]
    for node in spec.nodes.values():
        inside = None
        if node.subgraph is not None and xray:
            below = inner.get(node.name, ({}, {}))
            inside = picture_of(node.subgraph.spec, xray=depth, marks=below[0], inner=below[1])
        kind = "node" if node.subgraph is None else "subgraph"
        nodes.append(PictureNode(node.name, kind=kind, mark=marks.get(node.name, ""), inside=inside))  # type: ignore[arg-type]
    nodes.append(PictureNode(END, kind="end"))
    return Picture(tuple(nodes), tuple(edges), title=spec.name)


def _edges(spec: GraphSpec) -> Iterator[PictureEdge]:
    for node in (spec.start, *spec.nodes.values()):
        found = list(_edges_of(spec, node))
        yield from found
        # A node that leads nowhere ends its branch.
        if not found:
            yield PictureEdge(node.name, END)


def _edges_of(spec: GraphSpec, node: NodeSpec) -> Iterator[PictureEdge]:
    for target in node.edges:
        yield PictureEdge(node.name, target)
    for join in node.joins:
        yield PictureEdge(node.name, spec.joins[join], is_join=True)
    for branch in node.branches:
        places = {name: name for name in spec.nodes} if branch.destinations is None else branch.destinations
        for label, target in places.items():
            shown = "" if str(label) == target else str(label)
            yield PictureEdge(node.name, target, label=shown, is_conditional=True)
    for target in node.destinations:
        if target in spec.nodes or target == END:
            yield PictureEdge(node.name, target, is_conditional=True)


def marks_of(snapshot: StateSnapshot, visited: frozenset[str]) -> dict[str, str]:
    """Say of each node how it stands in a thread; what is open now counts more than what was."""
    marks = dict.fromkeys(visited, "visited")
    for task in snapshot.tasks:
        if task.result is not None:
            marks[task.name] = "visited"
        elif task.error is not None:
            marks[task.name] = "failed"
        elif task.interrupts:
            marks[task.name] = "paused"
        elif task.name in snapshot.next:
            marks[task.name] = "next"
    return marks
