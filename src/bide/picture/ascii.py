"""A picture in plain text: boxes and lines of characters that every terminal has; labels keep their own letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bide.picture.layers import Layers, Role, Size, Sizes, Spaces, Way, layers_of
from bide.picture.layout import is_open
from bide.picture.model import Picture, PictureEdge, PictureNode
from bide.picture.order import order
from bide.picture.place import place
from bide.picture.ports import BOTTOM, TOP, End, Row, make_room_at_sides, ports_of, stack
from bide.picture.rank import components
from bide.picture.text import columns_of, is_invisible, is_wide, wrap
from bide.picture.tracks import Wire, tracks_of

SPACES = Spaces(nodes=3, lanes=2, ports=2, corner=1, widest=41, grain=1)
WIDEST_TEXT, MOST_LINES = 28, 4
WIDEST_LABEL = 22
PARTS_WIDTH, PARTS_GAP = 100, 4
EMPTY = "(empty graph)"


def ascii_of(picture: Picture) -> str:
    """Return a picture as text."""
    block = _block(picture) if picture.nodes else _Block(0, 0)
    title = wrap(picture.title, 72, 2)
    lines = block.lines() or [EMPTY]
    return "\n".join([*title, *([""] if title else []), *lines])


@dataclass(slots=True)
class _Block:
    """A rectangle of characters; what is wide takes two columns, the second one empty."""

    width: int
    height: int
    cells: dict[tuple[int, int], str] = field(default_factory=dict)

    def write(self, x: int, y: int, text: str) -> None:
        """Write a line of text from here on."""
        for char in text:
            if is_invisible(char):
                continue
            self.cells[x, y] = char
            if is_wide(char):
                self.cells[x + 1, y] = ""
            x += 2 if is_wide(char) else 1

    def put(self, other: _Block, x: int, y: int) -> None:
        """Copy another block into this one."""
        for (column, row), char in other.cells.items():
            self.cells[x + column, y + row] = char
        self.width, self.height = max(self.width, x + other.width), max(self.height, y + other.height)

    def lines(self) -> list[str]:
        """Return what is written, without spaces at the ends."""
        rows = ["".join(self.cells.get((x, y), " ") for x in range(self.width)) for y in range(self.height)]
        return [row.rstrip() for row in rows]


# --- one picture ------------------------------------------------------------------------------------------------------


def _block(picture: Picture) -> _Block:
    """Draw a picture: parts that nothing joins side by side."""
    number = {node.id: index for index, node in enumerate(picture.nodes)}
    ends = [(number[edge.source], number[edge.target]) for edge in picture.edges]
    whole = _Block(0, 0)
    x = y = 0
    for members in components(len(picture.nodes), ends):
        nodes = [picture.nodes[member] for member in members]
        ids = {node.id for node in nodes}
        part = _Part(nodes, [edge for edge in picture.edges if edge.source in ids]).draw()
        if x and x + part.width > PARTS_WIDTH:
            x, y = 0, whole.height + 1
        whole.put(part, x, y)
        x += part.width + PARTS_GAP
    return whole


class _Part:
    """Nodes that are all joined, on their way to a block of text."""

    def __init__(self, nodes: Sequence[PictureNode], edges: Sequence[PictureEdge]) -> None:
        self.nodes, self.edges = nodes, edges
        self.inner = {node.id: _block(node.inside) for node in nodes if is_open(node) and node.inside is not None}
        self.texts = [_text_of(node) for node in nodes]
        self.labels = [wrap(edge.label, WIDEST_LABEL, 1) for edge in edges]
        self.two_way: frozenset[int] = frozenset()
        self.layers = self._merged(self._layers())
        order(self.layers)
        place(self.layers)
        make_room_at_sides(self.layers)
        left = min(item.x - item.width // 2 for item in self.layers.items)
        for item in self.layers.items:
            item.x -= left
        # Ports need rows, and rows need the lines between them, which the ports decide: columns first, then heights.
        self.ports = ports_of(self.layers)
        self.wires = [self._wires(row) for row in range(len(self.layers.rows) - 1)]
        self.tracks = [tracks_of([wire for _, wire in wires]) for wires in self.wires]
        self.rows = stack(self.layers, [self._gap(row) for row in range(len(self.wires))])
        self.ports = ports_of(self.layers)
        width = max(item.x + item.width // 2 for item in self.layers.items) + 1
        self.block = _Block(width, self.rows[-1].bottom)

    def _merged(self, layers: Layers) -> Layers:
        """Let one line with two heads stand for an edge and the one back between the nodes, where that is crowded."""
        down = {
            (edge.source, edge.target): index
            for index, edge in enumerate(self.edges)
            if layers.chains[index].way is Way.DOWN
        }
        back = {
            index
            for index, edge in enumerate(self.edges)
            if layers.chains[index].way is Way.UP and not edge.label and (edge.target, edge.source) in down
        }
        if not back:
            return layers
        both = {down[self.edges[index].target, self.edges[index].source] for index in back}
        kept = [index for index in range(len(self.edges)) if index not in back]
        self.edges = [self.edges[index] for index in kept]
        self.labels = [self.labels[index] for index in kept]
        self.two_way = frozenset(new for new, index in enumerate(kept) if index in both)
        return self._layers()

    def _layers(self) -> Layers:
        number = {node.id: index for index, node in enumerate(self.nodes)}
        sizes = Sizes(
            nodes=[self._size(node, text) for node, text in zip(self.nodes, self.texts, strict=True)],
            edges=[(number[edge.source], number[edge.target]) for edge in self.edges],
            labels=[self._label_size(edge, label) for edge, label in zip(self.edges, self.labels, strict=True)],
            first=frozenset(index for index, node in enumerate(self.nodes) if node.kind == "start"),
            last=frozenset(index for index, node in enumerate(self.nodes) if node.kind == "end"),
            two_way=self.two_way,
        )
        return layers_of(sizes, SPACES)

    def _size(self, node: PictureNode, text: Sequence[str]) -> Size:
        width = max(columns_of(line) for line in text) + 4
        inner = self.inner.get(node.id)
        if inner is None:
            return width, len(text) + 2
        return max(width + 4, inner.width + 6), inner.height + len(text) + 3

    def _label_size(self, edge: PictureEdge, label: Sequence[str]) -> Size | None:
        if edge.source == edge.target:
            return (columns_of(label[0]) + 3 if label else 1), 1
        return (columns_of(label[0]) + 2, 1) if label else None

    def draw(self) -> _Block:
        """Draw lines, then heads and labels on them, then boxes."""
        for row in range(len(self.wires)):
            self._draw_gap(row)
        for index in range(len(self.edges)):
            self._draw_passes(index)
            self._draw_sides(index)
        for index in range(len(self.edges)):
            self._draw_head(index)
            self._draw_label(index)
        for index, (node, text) in enumerate(zip(self.nodes, self.texts, strict=True)):
            self._draw_box(index, node, text)
        return self.block

    # --- between the rows ---------------------------------------------------------------------------------------------

    def _wires(self, row: int) -> list[tuple[int, Wire]]:
        """The steps from one row to the next, each with its edge."""
        found: list[tuple[int, Wire]] = []
        for index, chain in enumerate(self.layers.chains):
            for upper, lower in zip(chain.items, chain.items[1:], strict=False):
                if self.layers.items[upper].row == row:
                    top, bottom = self._column(index, upper, TOP), self._column(index, lower, BOTTOM)
                    found.append((index, Wire(top, bottom, (upper, top), (lower, bottom))))
        return found

    def _column(self, index: int, item: int, end: int) -> int:
        if self.layers.items[item].role is Role.NODE:
            return self.ports[index, end][0]
        return self.layers.items[item].x

    def _gap(self, row: int) -> int:
        """How many lines stay between two rows: for what goes sideways, and for heads beside nodes."""
        return max(1, self._holds_nodes(row) + self.tracks[row][1] + self._holds_nodes(row + 1))

    def _holds_nodes(self, row: int) -> bool:
        return row not in self.layers.label_rows

    def _draw_gap(self, row: int) -> None:
        top, bottom = self.rows[row].bottom, self.rows[row + 1].top - 1
        tracks = self.tracks[row][0]
        first = top + self._holds_nodes(row)
        for index, wire in self.wires[row]:
            if not wire.is_straight:
                self._across(index, wire.upper, wire.lower, first + tracks[wire])
        for index, wire in self.wires[row]:
            middle = first + tracks[wire] if not wire.is_straight else bottom
            self._down(index, wire.upper, top, middle)
            self._down(index, wire.lower, middle, bottom)
        for index, wire in self.wires[row]:
            if not wire.is_straight:
                self._corner(index, wire.upper, first + tracks[wire])
                self._corner(index, wire.lower, first + tracks[wire])

    def _across(self, index: int, start: int, end: int, y: int) -> None:
        edge = self.edges[index]
        line = "." if edge.is_conditional else "=" if edge.is_join else "-"
        for x in range(min(start, end), max(start, end) + 1):
            self.block.cells[x, y] = line

    def _down(self, index: int, x: int, start: int, end: int) -> None:
        line = ":" if self.edges[index].is_conditional else "|"
        for y in range(start, end + 1):
            self.block.cells[x, y] = line

    def _corner(self, index: int, x: int, y: int) -> None:
        self.block.cells[x, y] = "." if self.edges[index].is_conditional else "+"

    # --- in the rows --------------------------------------------------------------------------------------------------

    def _draw_passes(self, index: int) -> None:
        chain = self.layers.chains[index]
        for item in chain.items:
            known, row = self.layers.items[item], self.rows[self.layers.items[item].row]
            if known.role in (Role.PASS, Role.LABEL):
                self._down(index, known.x, row.top, row.bottom - 1)
        if chain.way in (Way.DOWN, Way.UP):
            self._reach(index, (index, TOP), self.rows[self.layers.items[chain.items[0]].row])
            self._reach(index, (index, BOTTOM), self.rows[self.layers.items[chain.items[-1]].row])

    def _reach(self, index: int, end: End, row: Row) -> None:
        """Lead an edge through the row of its node, when the row is higher than the node."""
        x, y = self.ports[end]
        if end[1] == TOP:
            self._down(index, x, y + 1, row.bottom - 1)
        else:
            self._down(index, x, row.top, y - 1)

    def _draw_sides(self, index: int) -> None:
        """The way of an edge beside its nodes: from a side to the lane, and along it."""
        chain = self.layers.chains[index]
        if chain.way not in (Way.AROUND, Way.LOOP):
            return
        (x_top, top), (x_bottom, bottom) = self.ports[index, TOP], self.ports[index, BOTTOM]
        upper, lower = self.layers.items[chain.items[0]], self.layers.items[chain.items[-1]]
        lane_top, lane_bottom = self._lane(index, upper.x, upper.width), self._lane(index, lower.x, lower.width)
        self._across(index, x_top + chain.side, lane_top, top)
        self._across(index, x_bottom + chain.side, lane_bottom, bottom)
        if chain.way is Way.LOOP:
            self._down(index, lane_top, top, bottom)
        else:
            self._down(index, lane_top, top, self.rows[upper.row].bottom - 1)
            self._down(index, lane_bottom, self.rows[lower.row].top, bottom)
        self._corner(index, lane_top, top)
        self._corner(index, lane_bottom, bottom)

    def _lane(self, index: int, x: int, width: int) -> int:
        return x - width // 2 if self.layers.chains[index].way is Way.LOOP else x

    def _draw_head(self, index: int) -> None:
        chain = self.layers.chains[index]
        if chain.way is Way.DOWN:
            x, y = self.ports[index, BOTTOM]
            self.block.cells[x, y - 1] = "v"
        if chain.is_apart:
            x, y = self.ports[index, TOP]
            self.block.cells[x, y + 1] = "^"
        if chain.way in (Way.AROUND, Way.LOOP):
            x, y = self.ports[index, TOP if chain.way is Way.AROUND else BOTTOM]
            self.block.cells[x + chain.side, y] = "<" if chain.side > 0 else ">"

    def _draw_label(self, index: int) -> None:
        if not self.labels[index]:
            return
        text, chain = self.labels[index][0], self.layers.chains[index]
        if chain.way is Way.LOOP:
            turn = self.layers.items[chain.items[0]]
            middle = (self.ports[index, TOP][1] + self.ports[index, BOTTOM][1]) // 2
            self.block.write(turn.x - turn.width // 2 + 2, middle, text)
            return
        holder = next(self.layers.items[item] for item in chain.items if self.layers.items[item].role is Role.LABEL)
        self.block.write(holder.x - columns_of(text) // 2, holder.y, text)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _draw_box(self, index: int, node: PictureNode, text: Sequence[str]) -> None:
        item, inner = self.layers.items[index], self.inner.get(node.id)
        left, top = item.x - item.width // 2, item.y - item.height // 2
        self._draw_border(node, left, top, item.width, item.height)
        space = item.height - 2 if inner is None else len(text)
        first = top + 1 + (space - len(text)) // 2
        for row, line in enumerate(text):
            shift = (item.width - 2 - columns_of(line)) // 2 if inner is None else 1
            self.block.write(left + 1 + shift, first + row, line)
        if inner is not None:
            self.block.put(inner, left + (item.width - inner.width) // 2, top + item.height - 1 - inner.height)

    def _draw_border(self, node: PictureNode, left: int, top: int, width: int, height: int) -> None:
        is_pill = node.kind in ("start", "end")
        rule = "=" if node.kind == "subgraph" or node.id in self.inner else "-"
        upper, lower = ("..", "''") if is_pill else ("++", "++")
        sides = "()" if is_pill else "||"
        self.block.write(left, top, upper[0] + rule * (width - 2) + upper[1])
        self.block.write(left, top + height - 1, lower[0] + rule * (width - 2) + lower[1])
        for row in range(top + 1, top + height - 1):
            self.block.write(left, row, sides[0] + " " * (width - 2) + sides[1])


def _text_of(node: PictureNode) -> list[str]:
    """The lines in a box: the name, the mark as a word, the note."""
    name = wrap(node.name, WIDEST_TEXT, MOST_LINES) or ("",)
    mark = [f"({node.mark})"] if node.mark else []
    return [*name, *mark, *wrap(node.note, WIDEST_TEXT, 2)]
