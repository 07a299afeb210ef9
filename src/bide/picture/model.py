"""What there is to draw: nodes, edges, and pictures inside nodes. Plain values; each way to draw them is a module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, SupportsIndex, overload

from bide.errors import GraphError, did_you_mean

Kind = Literal["start", "end", "node", "subgraph"]
Mark = Literal["", "visited", "paused", "failed", "next"]

KINDS = ("start", "end", "node", "subgraph")
MARKS = ("", "visited", "paused", "failed", "next")

FOR_MERMAID = ("curve_style", "node_colors", "wrap_label_n_words", "frontmatter_config")
FOR_A_SERVER = ("draw_method", "background_color", "padding", "max_retries", "retry_delay", "base_url", "proxies")
"""Options of LangGraph's that are taken and not needed: a picture has one look, and no server draws it."""


@dataclass(frozen=True, slots=True)
class PictureNode:
    """One node: `label` is read in place of its id, `note` is a smaller line below, `mark` says where a thread is."""

    id: str
    label: str = ""
    kind: Kind = "node"
    mark: Mark = ""
    inside: Picture | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("mark", self.mark, MARKS)):
            if value not in known:
                raise GraphError(
                    f"Node {self.id!r} cannot be drawn: its {name} {value!r} is unknown.{did_you_mean(value, known)} "
                    f"Give one of {', '.join(map(repr, known))}."
                )

    @property
    def name(self) -> str:
        """What is read in the picture: the label, or else START, END or the id."""
        return self.label or {"start": "START", "end": "END"}.get(self.kind, self.id)


@dataclass(frozen=True, slots=True)
class PictureEdge:
    """One edge: conditional ones are dashed, and those of a join wait for one another before they go on."""

    source: str
    target: str
    label: str = ""
    is_conditional: bool = False
    is_join: bool = False


class Nodes(tuple[PictureNode, ...]):
    """The nodes of a picture in their order, and by id: `nodes["ask"]`, `"ask" in nodes`, `nodes.get("ask")`."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> PictureNode: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[PictureNode, ...]: ...
    @overload
    def __getitem__(self, key: str) -> PictureNode: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> PictureNode | tuple[PictureNode, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = self.get(key)
        if found is None:
            raise KeyError(f"The picture has no node {key!r}.{did_you_mean(key, self.ids)}")
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None if isinstance(key, str) else super().__contains__(key)

    def get(self, id: str) -> PictureNode | None:
        """Return the node with this id, or None."""
        return next((node for node in self if node.id == id), None)

    def keys(self) -> tuple[str, ...]:
        """Return the ids, as LangGraph's dict of nodes does; `dict(nodes)` works, too."""
        return self.ids

    def values(self) -> tuple[PictureNode, ...]:
        """Return the nodes, as a dict of them would."""
        return tuple(self)

    def items(self) -> tuple[tuple[str, PictureNode], ...]:
        """Return pairs of an id and its node, as a dict of them would."""
        return tuple((node.id, node) for node in self)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the nodes, in order."""
        return tuple(node.id for node in self)


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph to look at. The same picture is always drawn the same, to the byte."""

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", Nodes(self.nodes))
        object.__setattr__(self, "edges", tuple(self.edges))
        ids = [node.id for node in self.nodes]
        _refuse_twins(ids)
        _refuse_loose_ends(self.edges, dict.fromkeys(ids))

    def draw_mermaid(self, *, with_styles: bool = True, **ignored: Any) -> str:
        """Return the picture as Mermaid text, for a README or a wiki; without styles, marks are signs alone.

        LangGraph's further options (`curve_style`, `node_colors` …) are taken, and change nothing.
        """
        from bide.picture.mermaid import mermaid_of  # here and below: only those who draw pay for what draws

        _refuse_unknown("draw_mermaid", ignored, ("with_styles",), FOR_MERMAID)
        return mermaid_of(self, with_styles=with_styles)

    def draw_svg(self) -> str:
        """Return the picture as an SVG that needs nothing else, for light and dark pages."""
        from bide.picture.svg import svg_of

        return svg_of(self)

    def draw_png(self, scale: float = 2.0, *, output_file_path: str | Path | None = None) -> bytes:
        """Return the picture as a PNG, `scale` pixels for each unit of the SVG; write it to the path, if one is given.

        A picture of more than 16 million pixels is drawn at the scale that keeps it there.
        """
        from bide.picture.paint import png_of

        data = png_of(self, scale)
        if output_file_path is not None:
            Path(output_file_path).write_bytes(data)
        return data

    def draw_mermaid_png(
        self, scale: float = 2.0, *, output_file_path: str | Path | None = None, **ignored: Any
    ) -> bytes:
        """Return `draw_png()`: it is drawn here, and no server is asked; options for one are ignored."""
        _refuse_unknown("draw_mermaid_png", ignored, ("scale", "output_file_path"), FOR_MERMAID + FOR_A_SERVER)
        return self.draw_png(scale, output_file_path=output_file_path)

    def draw_ascii(self) -> str:
        """Return the picture as plain text, for a terminal."""
        from bide.picture.ascii import ascii_of

        return ascii_of(self)

    def print_ascii(self) -> None:
        """Print `draw_ascii()`."""
        print(self.draw_ascii())  # noqa: T201 - printing is what it is for

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as plain values that JSON can hold."""
        return {
            "title": self.title,
            "nodes": [_node_to_dict(node) for node in self.nodes],
            "edges": [_edge_to_dict(edge) for edge in self.edges],
        }

    def _repr_svg_(self) -> str:
        """Show the picture itself where a notebook shows a value."""
        return self.draw_svg()


def _node_to_dict(node: PictureNode) -> dict[str, Any]:
    return {
        "id": node.id,
        "label": node.label,
        "kind": node.kind,
        "mark": node.mark,
        "note": node.note,
        "inside": node.inside.to_dict() if node.inside is not None else None,
    }


def _edge_to_dict(edge: PictureEdge) -> dict[str, Any]:
    return {
        "source": edge.source,
        "target": edge.target,
        "label": edge.label,
        "is_conditional": edge.is_conditional,
        "is_join": edge.is_join,
    }


def _refuse_unknown(method: str, options: Iterable[str], own: tuple[str, ...], langgraphs: tuple[str, ...]) -> None:
    """Refuse options that neither we nor LangGraph know: they are mistyped."""
    for name in options:
        if name not in langgraphs:
            raise GraphError(
                f"{method}() has no option {name!r}.{did_you_mean(name, own + langgraphs)} "
                f"It takes {', '.join(own)}, and ignores LangGraph's {', '.join(langgraphs)}."
            )


def _refuse_twins(ids: list[str]) -> None:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise GraphError(f"Two nodes of the picture have the id {id!r}, so edges could mean either. Rename one.")
        seen.add(id)


def _refuse_loose_ends(edges: Iterable[PictureEdge], ids: dict[str, None]) -> None:
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in ids:
                raise GraphError(
                    f"Edge {edge.source!r} → {edge.target!r} cannot be drawn: the picture has no node {end!r}."
                    f"{did_you_mean(end, ids)} Add a PictureNode({end!r}), or leave the edge out."
                )
