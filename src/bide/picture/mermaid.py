"""A picture as Mermaid text, which GitHub, GitLab and many wikis draw."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bide.picture.layout import is_open
from bide.picture.model import Mark, Picture, PictureEdge, PictureNode
from bide.picture.style import LIGHT, STRONG_MARKS, Look
from bide.picture.text import clean, one_line

SIGNS: dict[Mark, str] = {"visited": "✓", "paused": "‖", "failed": "✗", "next": "▶"}
CLASSES = {"start": "first", "end": "last"}  # "end" is a word of Mermaid

# Words that Mermaid would not take for the name of a node.
RESERVED = {
    "acyclic",
    "call",
    "class",
    "classdef",
    "click",
    "default",
    "direction",
    "end",
    "flowchart",
    "graph",
    "href",
}
RESERVED |= {"interpolate", "linkstyle", "style", "subgraph", "_blank", "_parent", "_self", "_top"}

# What Mermaid, Markdown or HTML would read as more than a letter is written by its number.
_SPECIAL = re.compile(r"[\"#$%&*;<>@\[\\\]`{|}~]|^[-+](?=\s)|(?<=^\d)[.)]|(?<=^\d\d)[.)]|:(?=fa-|//)|www(?=\.)")
_BREAKS = re.compile(r"\s*[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+\s*")


def mermaid_of(picture: Picture, *, with_styles: bool = True) -> str:
    """Return a picture as a Mermaid flowchart from top to bottom."""
    writer = _Writer(with_styles)
    lines = list(writer.lines_of(picture, "", "\t"))
    title = ["---", f"title: {json.dumps(one_line(picture.title), ensure_ascii=False)}", "---"] if picture.title else []
    styles = [f"\t{line}" for line in writer.styles()] if with_styles else []
    return "\n".join([*title, "graph TD", *lines, *styles]) + "\n"


class _Writer:
    """Writes the lines, and remembers which names and classes were given."""

    def __init__(self, with_styles: bool) -> None:
        self.with_styles = with_styles
        self.names: set[str] = set()
        self.looks: dict[str, list[str]] = {}
        self.frames: dict[str, PictureNode] = {}

    def lines_of(self, picture: Picture, prefix: str, indent: str) -> Iterator[str]:
        """Return the nodes of a picture, then its edges."""
        names = {node.id: self._name(node.id, prefix) for node in picture.nodes}
        for node in picture.nodes:
            yield from self._node(node, names[node.id], indent)
        for edge in picture.edges:
            yield f"{indent}{names[edge.source]} {_arrow(edge)} {names[edge.target]}"

    def _node(self, node: PictureNode, name: str, indent: str) -> Iterator[str]:
        if is_open(node) and node.inside is not None:
            yield f"{indent}subgraph {name}[{_label(node)}]"
            yield f"{indent}\tdirection TB"
            yield from self.lines_of(node.inside, name + "__", indent + "\t")
            yield f"{indent}end"
            self.frames[name] = node
        else:
            self.looks.setdefault(node.mark or node.kind, []).append(name)
            opening, closing = {"start": ("([", "])"), "end": ("([", "])"), "subgraph": ("[[", "]]")}.get(
                node.kind, ("(", ")")
            )
            yield f"{indent}{name}{opening}{_label(node)}{closing}"

    def _name(self, id: str, prefix: str) -> str:
        """A name that Mermaid accepts and nobody else has: the id itself, wherever that can be."""
        slug = re.sub(r"[^A-Za-z0-9_]+", "_", id)
        if not re.search("[A-Za-z]", slug) or slug[0].isdigit() or slug.lower() in RESERVED:
            slug = f"node_{slug.strip('_')}".rstrip("_")
        name, twin = prefix + slug, 1
        while name.lower() in self.names:
            twin += 1
            name = f"{prefix}{slug}_{twin}"
        self.names.add(name.lower())
        return name

    def styles(self) -> Iterator[str]:
        """Return a class for each look that is used, and who has it."""
        for look, names in self.looks.items():
            if look != "subgraph":
                kind = CLASSES.get(look, look)
                yield f"classDef {'default' if kind == 'node' else kind} {_style(LIGHT.boxes[look], look)}"
                if kind != "node":
                    yield f"class {','.join(names)} {kind}"
        for name, node in self.frames.items():
            frame = LIGHT.frames[0]
            line = LIGHT.boxes[node.mark].line if node.mark else frame.line
            yield f"style {name} {_style(Look(frame.fill, line, frame.ink), node.mark)}"


def _style(look: Look, name: str) -> str:
    width = ",stroke-width:2.5px" if name in STRONG_MARKS else ""
    return f"fill:{look.fill},stroke:{look.line},color:{look.ink}{width}"


def _arrow(edge: PictureEdge) -> str:
    arrow = "-.->" if edge.is_conditional else "==>" if edge.is_join else "-->"
    label = _escaped(edge.label)
    return f'{arrow}|"{label}"|' if label.strip() else arrow


def _label(node: PictureNode) -> str:
    sign = f"{SIGNS[node.mark]} " if node.mark else ""
    note = f"<br/>{_escaped(node.note)}" if node.note.strip() else ""
    return f'"{sign}{_escaped(node.name) or " "}{note}"'


def _escaped(text: str) -> str:
    """Return a text that shows as it is, whatever it holds."""
    lines = _BREAKS.split(clean(text).strip())
    return "<br/>".join(_SPECIAL.sub(lambda found: _numbers(found[0]), line) for line in lines)


def _numbers(text: str) -> str:
    return "".join(f"#{ord(char)};" for char in text)
