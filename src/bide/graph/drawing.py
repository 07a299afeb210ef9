"""From a graph, and perhaps a thread in it, to a picture."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from bide.engine.spec import Call, GraphSpec, NodeSpec
from bide.graph.spec import UNNAMED
from bide.picture import Picture, PictureEdge, PictureNode
from bide.types import END, START, StateSnapshot, TaskSnapshot

Marks = Mapping[str, str]
"""Node → how it stands: visited, paused, failed, next."""
Inner = Mapping[str, tuple[Marks, Any]]
"""Node that is a graph → the same for the nodes inside it."""
WEIGHT = {"visited": 0, "next": 1, "paused": 2, "failed": 3}
"""Which mark counts when tasks of one node stand differently."""


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
    return Picture(tuple(nodes), tuple(edges), title="" if spec.name == UNNAMED else spec.name)


def _edges(spec: GraphSpec) -> Iterator[PictureEdge]:
    # The engine keeps edges by name; a reader looks for the nodes in the order in which they were added.
    place = {name: index for index, name in enumerate((*spec.nodes, END))}
    for node in (spec.start, *spec.nodes.values()):
        found = sorted(_edges_of(spec, node), key=lambda edge: place[edge.target])
        yield from found
        # A node that leads nowhere ends its branch, unless its `Command` leads on: then nobody can say where.
        if not found:
            yield PictureEdge(node.name, END, is_conditional=_may_command(node.call))


def _edges_of(spec: GraphSpec, node: NodeSpec) -> Iterator[PictureEdge]:
    for target in node.edges:
        yield PictureEdge(node.name, target)
    for join in node.joins:
        yield PictureEdge(node.name, spec.joins[join], is_join=True)
    for branch in node.branches:
        places = {name: name for name in (*spec.nodes, END)} if branch.destinations is None else branch.destinations
        for label, target in places.items():
            shown = "" if str(label) == target else str(label)
            yield PictureEdge(node.name, target, label=shown, is_conditional=True)
    for target in node.destinations:
        if target in spec.nodes or target == END:
            yield PictureEdge(node.name, target, is_conditional=True)


def _may_command(call: Call) -> bool:
    """Whether a function seems to return a `Command`: its annotation says so, or its code names one."""
    function = inspect.unwrap(call.function)
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    code = getattr(function, "__code__", None)
    return "Command" in str(annotation) or (code is not None and "Command" in code.co_names)


def marks_of(snapshot: StateSnapshot, visited: frozenset[str]) -> dict[str, str]:
    """Say of each node how it stands in a thread; what is open now counts more than what was."""
    marks = dict.fromkeys(visited, "visited")
    for task in snapshot.tasks:
        mark = _mark_of(task, snapshot.next)
        marks[task.name] = max(mark, marks.get(task.name, mark), key=WEIGHT.__getitem__)
    return marks


def _mark_of(task: TaskSnapshot, unfinished: tuple[str, ...]) -> str:
    if task.result is not None:
        return "visited"
    if task.error is not None:
        return "failed"
    if task.interrupts:
        return "paused"
    # A node that returned nothing has no result either, but it is no longer among those that are still to come.
    return "next" if task.name in unfinished else "visited"
