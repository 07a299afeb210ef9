"""A drawing as SVG: one file that needs no other, without scripts, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from bide.picture import style
from bide.picture.drawing import Box, Caption, Drawing, Line, Path
from bide.picture.layout import layout
from bide.picture.model import Picture, PictureEdge, PictureNode
from bide.picture.shapes import Disc, bar_of, disc_of, head_of, header_of, subgraph_bars
from bide.picture.style import Theme
from bide.picture.text import clean, one_line, width_of

FONTS = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def svg_of(picture: Picture) -> str:
    """Return a picture as SVG."""
    drawing = layout(picture)
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" class="bide">',
            f"<title>{_text(picture.title or 'Graph')}</title>",
            f"<desc>{_text(description_of(picture))}</desc>",
            f"<style>{_styles()}</style>",
            f'<rect class="bide-paper" width="{drawing.width}" height="{drawing.height}" rx="12"/>',
            *_body(drawing),
            "</svg>",
        ]
    )


def description_of(picture: Picture) -> str:
    """Return in words what the picture shows, for those who do not see it."""
    nodes = "; ".join(_said_of(node) + _said_inside(node) for node in picture.nodes)
    names = {node.id: one_line(node.name) for node in picture.nodes}
    edges = "; ".join(_edge_in_words(edge, names) for edge in picture.edges)
    return " ".join(part for part in (f"Nodes: {nodes}.", f"Edges: {edges}." if edges else "") if part)


def _said_of(node: PictureNode) -> str:
    """A node with its mark and its note in words."""
    mark = f" ({node.mark})" if node.mark else ""
    note = f", {one_line(node.note)}" if node.note else ""
    return one_line(node.name) + mark + note


def _said_inside(node: PictureNode) -> str:
    return f" [{description_of(node.inside)}]" if node.inside is not None and node.inside.nodes else ""


def _edge_in_words(edge: PictureEdge, names: dict[str, str]) -> str:
    label = f", {one_line(edge.label)}" if edge.label else ""
    kind = " (conditional)" if edge.is_conditional else " (join)" if edge.is_join else ""
    return f"{names[edge.source]} → {names[edge.target]}{label}{kind}"


# --- the parts --------------------------------------------------------------------------------------------------------


def _body(drawing: Drawing) -> Iterator[str]:
    """Frames below, then edges, then nodes, so that nothing hides what it should not."""
    if drawing.title is not None:
        yield from _texts(drawing.title, "bide-title", style.TITLE)
    for depth in range(1 + max((box.depth for box in drawing.boxes), default=0)):
        boxes = [box for box in drawing.boxes if box.depth == depth]
        for box in boxes:
            if box.is_open:
                yield from _frame(box)
        for line in drawing.lines:
            if len(line.parent) == depth:
                yield from _line(line)
        for box in boxes:
            if not box.is_open:
                yield from _node(box)
    for mark, x, y in drawing.legend:
        yield from _disc(Disc(mark, x + style.SIGN / 2, y))
        yield _words(mark, x + style.SIGN + style.SIGN_SPACE, y, "bide-faint", style.CAPTION, "start")


def _frame(box: Box) -> Iterator[str]:
    """A box with a picture inside: its name stands in the upper left corner."""
    mark = f" bide-{box.node.mark}-line" if box.node.mark else ""
    disc, captions = header_of(box)
    yield f"<g><title>{_text(_said_of(box.node))}</title>"
    yield _rect(box, f"bide-frame{box.depth % 2}{mark}", style.CORNER + 3)
    yield from _label_of(disc, captions, "bide-faint")
    yield "</g>"


def _node(box: Box) -> Iterator[str]:
    look = style.look_of(box.node.kind, box.node.mark)
    radius = box.height / 2 if box.node.kind in ("start", "end") else style.CORNER
    disc, captions = header_of(box)
    yield f'<g class="bide-{look}-text"><title>{_text(_said_of(box.node))}</title>'
    yield _rect(box, f"bide-{look}", radius)
    for path in subgraph_bars(box):
        yield f'<path class="bide-bars bide-{look}-line" d="{_d(path)}"/>'
    yield from _label_of(disc, captions, "")
    yield "</g>"


def _label_of(disc: Disc | None, captions: Iterable[tuple[str, float, float, float]], note: str) -> Iterator[str]:
    if disc is not None:
        yield from _disc(disc)
    for line, x, y, size in captions:
        yield _words(line, x, y, note if size == style.NOTE else "", size, "start")


def _rect(box: Box, name: str, radius: float) -> str:
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    return f'<rect class="bide-box {name}" {place} rx="{_n(radius)}"/>'


def _line(line: Line) -> Iterator[str]:
    dashed = " bide-dashed" if line.edge.is_conditional else ""
    yield f'<path class="bide-edge{dashed}" d="{_d(line.path)}"/>'
    yield f'<path class="bide-head" d="{_d(head_of(line.head))}Z"/>'
    if line.edge.is_join:
        yield f'<path class="bide-join" d="{_d(bar_of(line.head))}"/>'
    if line.caption is not None:
        yield from _caption(line.caption, len(line.parent))


def _caption(caption: Caption, depth: int) -> Iterator[str]:
    """What is written on an edge, on ground of the colour that it stands on."""
    ground = "bide-paper" if depth == 0 else f"bide-ground{(depth - 1) % 2}"
    x, y = caption.x - caption.width / 2, caption.y - caption.height / 2
    size = f'width="{_n(caption.width)}" height="{_n(caption.height)}"'
    yield f'<rect class="{ground}" x="{_n(x)}" y="{_n(y)}" {size} rx="4"/>'
    yield from _texts(caption, "bide-faint", style.CAPTION)


def _disc(disc: Disc) -> Iterator[str]:
    drawn = disc_of(disc)
    yield f'<circle class="bide-disc-{disc.mark}" cx="{_n(disc.x)}" cy="{_n(disc.y)}" r="{_n(style.SIGN / 2)}"/>'
    for path in drawn:
        yield f'<path class="bide-sign" d="{_d(path)}"/>'


def _texts(caption: Caption, name: str, size: float) -> Iterator[str]:
    height = size * style.LINE_HEIGHT
    y = caption.y - (len(caption.lines) - 1) * height / 2
    for index, line in enumerate(caption.lines):
        yield _words(line, caption.x, y + index * height, name, size, "middle")


def _words(line: str, x: float, y: float, name: str, size: float, anchor: str) -> str:
    """One line of text. Its length is fixed, because every machine has another font for it."""
    named = f' class="{name}"' if name else ""
    width = f' textLength="{_n(width_of(line, size))}" lengthAdjust="spacingAndGlyphs"' if line.strip() else ""
    place = f'x="{_n(x)}" y="{_n(y + size * 0.35)}" font-size="{_n(size)}" text-anchor="{anchor}"'
    return f"<text{named} {place}{width}>{_text(line)}</text>"


# --- small things -----------------------------------------------------------------------------------------------------


def _d(path: Path) -> str:
    steps = [f"M{_n(path[0][0])} {_n(path[0][1])}"]
    for step in path[1:]:
        steps.append(("L" if len(step) == 2 else "C") + " ".join(map(_n, step)))
    return "".join(steps)


def _n(number: float) -> str:
    """A number as short as it can be, the same on every machine."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape(clean(text))


def _styles() -> str:
    dark = "".join(_rules(style.DARK))
    return "".join([*_shapes(), *_rules(style.LIGHT), f"@media (prefers-color-scheme:dark){{{dark}}}"])


def _shapes() -> Iterator[str]:
    """What does not depend on the theme."""
    yield f".bide text{{font-family:{FONTS}}}"
    yield f".bide-box,.bide-edge,.bide-bars{{stroke-width:{style.STROKE}}}"
    yield ".bide-edge,.bide-sign,.bide-join,.bide-bars{fill:none}"
    yield f".bide-dashed{{stroke-dasharray:{style.DASH[0]:g} {style.DASH[1]:g}}}"
    yield f".bide-sign{{stroke-width:{style.SIGN_STROKE};stroke-linecap:round;stroke-linejoin:round}}"
    yield f".bide-join{{stroke-width:{style.BAR_STROKE:g};stroke-linecap:round}}"
    yield ".bide-title{font-weight:600}"
    strong = ",".join(f".bide .bide-{mark},.bide .bide-{mark}-line" for mark in sorted(style.STRONG_MARKS))
    yield f"{strong}{{stroke-width:{style.STRONG}}}"


def _rules(theme: Theme) -> Iterator[str]:
    """The colours of a theme."""
    yield f".bide text{{fill:{theme.ink}}}.bide-paper{{fill:{theme.paper}}}"
    yield f".bide .bide-faint{{fill:{theme.faint}}}.bide-sign{{stroke:{theme.paper}}}"
    yield f".bide-edge,.bide-join{{stroke:{theme.edge}}}.bide-head{{fill:{theme.edge}}}"
    for index, look in enumerate(theme.frames):
        yield f".bide-frame{index}{{fill:{look.fill};stroke:{look.line}}}.bide-ground{index}{{fill:{look.fill}}}"
    for name, look in theme.boxes.items():
        yield f".bide-{name}{{fill:{look.fill};stroke:{look.line}}}.bide .bide-{name}-text text{{fill:{look.ink}}}"
        yield f".bide-{name}-line{{stroke:{look.line}}}.bide-disc-{name}{{fill:{look.line}}}"
