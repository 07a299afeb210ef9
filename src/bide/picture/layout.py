"""From a picture to a drawing: every node, edge and label gets its place, pictures inside nodes first."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from bide.picture import style
from bide.picture.drawing import Area, Box, Caption, Drawing, Line
from bide.picture.layers import Layers, Role, Size, Sizes, Way, layers_of
from bide.picture.model import Mark, Picture, PictureEdge, PictureNode
from bide.picture.order import order
from bide.picture.place import place
from bide.picture.ports import BOTTOM, TOP, make_room_at_sides, ports_of, stack
from bide.picture.rank import components
from bide.picture.route import Routes, row_gaps
from bide.picture.text import width_of, wrap

Names = tuple[str, ...]


def layout(picture: Picture) -> Drawing:
    """Lay a picture out."""
    area = _area(picture, ())
    title = _title(picture)
    above = style.MARGIN + (title.height + 14 if title else 0)
    marks = _marks(picture)
    entries = _legend(marks)
    legend_width = entries[-1][1] + _legend_width(entries[-1][0]) - style.MARGIN if entries else 0
    inner = max(area.width, title.width if title else 0, legend_width, style.NARROWEST)
    whole = Area()
    whole.put(area, style.MARGIN + (inner - area.width) // 2, above)
    below = above + area.height + (style.LEGEND if entries else 0)
    return Drawing(
        width=ceil(inner) + 2 * style.MARGIN,
        height=ceil(below) + style.MARGIN,
        boxes=tuple(whole.boxes),
        lines=tuple(whole.lines),
        title=title,
        legend=tuple((mark, x, below - style.SIGN / 2) for mark, x in entries),
    )


# --- one picture ------------------------------------------------------------------------------------------------------


def _area(picture: Picture, parent: Names) -> Area:
    """Lay out a picture without its surroundings: parts that nothing joins side by side, and in shelves when many."""
    number = {node.id: index for index, node in enumerate(picture.nodes)}
    ends = [(number[edge.source], number[edge.target]) for edge in picture.edges]
    parts = []
    for members in components(len(picture.nodes), ends):
        ids = {picture.nodes[member].id for member in members}
        edges = [edge for edge in picture.edges if edge.source in ids]
        parts.append(_part([picture.nodes[member] for member in members], edges, parent))
    return _on_shelves(parts)


def _on_shelves(parts: Sequence[Area]) -> Area:
    """Put parts side by side, and the next shelf below when one is full."""
    whole = Area()
    x = y = shelf = 0.0
    for part in parts:
        if x and x + part.width > style.PARTS_WIDTH:
            x, y, shelf = 0.0, y + shelf + style.PARTS_GAP, 0.0
        whole.put(part, x, y)
        whole.width, whole.height = max(whole.width, x + part.width), max(whole.height, y + part.height)
        x, shelf = x + part.width + style.PARTS_GAP, max(shelf, part.height)
    return whole


def _part(nodes: Sequence[PictureNode], edges: Sequence[PictureEdge], parent: Names) -> Area:
    """Lay out nodes that are all joined to one another."""
    inner = {node.id: _area(node.inside, (*parent, node.id)) for node in nodes if is_open(node) and node.inside}
    boxes = [_box(node, parent, inner.get(node.id)) for node in nodes]
    captions = [_caption(edge) for edge in edges]
    layers = _layers(boxes, edges, captions)
    order(layers)
    place(layers)
    make_room_at_sides(layers)
    rows = stack(layers, row_gaps(layers))
    joins = frozenset(index for index, edge in enumerate(edges) if edge.is_join)
    routes = Routes(layers, rows, ports_of(layers), joins)
    left = min(item.x - item.width // 2 for item in layers.items)
    right = max(item.x + item.width // 2 for item in layers.items)
    area = Area()
    for index, box in enumerate(boxes):
        _put_box(area, box, layers, index, inner.get(box.node.id))
    for index, (edge, caption) in enumerate(zip(edges, captions, strict=True)):
        path, head = routes.route(index)
        area.lines.append(Line(edge, parent, path, head, _put_caption(caption, routes, index)))
    whole = Area(right - left, rows[-1].bottom)
    whole.put(area, -left, 0)
    return whole


def _layers(boxes: Sequence[Box], edges: Sequence[PictureEdge], captions: Sequence[Caption | None]) -> Layers:
    number = {box.node.id: index for index, box in enumerate(boxes)}
    sizes = Sizes(
        nodes=[(ceil(box.width), ceil(box.height)) for box in boxes],
        edges=[(number[edge.source], number[edge.target]) for edge in edges],
        labels=[_room(edge, caption) for edge, caption in zip(edges, captions, strict=True)],
        first=frozenset(index for index, box in enumerate(boxes) if box.node.kind == "start"),
        last=frozenset(index for index, box in enumerate(boxes) if box.node.kind == "end"),
    )
    return layers_of(sizes, style.SPACES)


def is_open(node: PictureNode) -> bool:
    """Whether a node is drawn as a frame with something inside."""
    return node.inside is not None and bool(node.inside.nodes)


# --- sizes ------------------------------------------------------------------------------------------------------------


def _box(node: PictureNode, parent: Names, inner: Area | None) -> Box:
    """Return a node as a box with its size, still without a place."""
    lines = wrap(node.name, style.WIDEST_TEXT, style.MOST_LINES, style.TEXT) or ("",)
    notes = wrap(node.note, style.WIDEST_TEXT, style.MOST_NOTE_LINES, style.NOTE)
    sign = style.SIGN + style.SIGN_SPACE if node.mark else 0
    text = max([width_of(line, style.TEXT) for line in lines] + [width_of(line, style.NOTE) for line in notes])
    height = _text_height(len(lines), style.TEXT) + (2 + _text_height(len(notes), style.NOTE) if notes else 0)
    bars = 14 if node.kind == "subgraph" else 0
    width = max(text + sign + bars + 2 * style.PADDING_X, style.NARROWEST)
    if inner is None:
        return Box(node, (*parent, node.id), 0, 0, width, height + 2 * style.PADDING_Y, lines, notes)
    header = max(style.HEADER, height + style.PADDING_Y)
    width, height = max(width, inner.width + 2 * style.FRAME), header + inner.height + style.FRAME
    return Box(node, (*parent, node.id), 0, 0, width, height, lines, notes, is_open=True)


def _text_height(lines: int, size: float) -> float:
    return round(lines * size * style.LINE_HEIGHT)


def _caption(edge: PictureEdge) -> Caption | None:
    lines = wrap(edge.label, style.WIDEST_CAPTION, style.MOST_CAPTION_LINES, style.CAPTION)
    if not lines:
        return None
    width = max(width_of(line, style.CAPTION) for line in lines) + 10
    return Caption(lines, 0, 0, width, _text_height(len(lines), style.CAPTION) + 2)


def _room(edge: PictureEdge, caption: Caption | None) -> Size | None:
    """How much room a caption takes in its row: beside a loop, and on any other edge."""
    if caption is None:
        return (2 * style.TURN, 0) if edge.source == edge.target else None
    return ceil(caption.width), ceil(caption.height)


# --- places -----------------------------------------------------------------------------------------------------------


def _put_box(area: Area, box: Box, layers: Layers, index: int, inner: Area | None) -> None:
    item = layers.items[index]
    x, y = item.x - item.width // 2, item.y - item.height // 2
    area.boxes.append(
        Box(box.node, box.path, x, y, item.width, item.height, box.lines, box.notes, is_open=inner is not None)
    )
    if inner is not None:
        area.put(inner, x + (item.width - inner.width) // 2, y + item.height - inner.height - style.FRAME)


def _put_caption(caption: Caption | None, routes: Routes, index: int) -> Caption | None:
    """Put a caption where its edge keeps a place for it: beside a loop, between its two ends."""
    if caption is None:
        return None
    items, chain = routes.layers.items, routes.layers.chains[index]
    if chain.way is Way.LOOP:
        x, y = items[chain.items[0]].x + 1, (routes.ports[index, TOP][1] + routes.ports[index, BOTTOM][1]) / 2
    else:
        x, y = next((items[item].x, items[item].y) for item in chain.items if items[item].role is Role.LABEL)
    return Caption(caption.lines, x, y, caption.width, caption.height)


def _title(picture: Picture) -> Caption | None:
    lines = wrap(picture.title or ("" if picture.nodes else "empty graph"), 640, 2, style.TITLE)
    if not lines:
        return None
    width = max(width_of(line, style.TITLE) for line in lines)
    height = _text_height(len(lines), style.TITLE)
    return Caption(lines, style.MARGIN + width / 2, style.MARGIN + height / 2 - 4, width, height)


def _marks(picture: Picture) -> set[Mark]:
    found: set[Mark] = {node.mark for node in picture.nodes if node.mark}
    for node in picture.nodes:
        if node.inside is not None:
            found |= _marks(node.inside)
    return found


def _legend(marks: set[Mark]) -> list[tuple[Mark, float]]:
    """Return the marks that need a word, each with where its sign stands."""
    entries: list[tuple[Mark, float]] = []
    x = float(style.MARGIN)
    for mark in style.MARK_ORDER:
        if mark in marks:
            entries.append((mark, x))
            x += _legend_width(mark) + 18
    return entries


def _legend_width(mark: str) -> float:
    return style.SIGN + style.SIGN_SPACE + width_of(mark, style.CAPTION)
