"""The rows of a picture: its nodes by rank, and in every row a place for each edge that passes it.

An edge becomes a chain of items from row to row. Rows of their own, between two ranks, hold the labels: so a label has
a place like a node has, and nothing is drawn over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from bide.picture.rank import Edge, back_edges, ranks

Size = tuple[int, int]

# A node with more loops than this on one side would hide behind them: then they come and go above and below.
MOST_TURNS = 2


class Role(Enum):
    """What an item keeps a place for."""

    NODE = "node"
    PASS = "pass"  # an edge on its way through a row
    LABEL = "label"  # an edge with what is written on it
    TURN = "turn"  # an edge that goes round, beside the node where it begins or ends


class Way(Enum):
    """How an edge goes."""

    DOWN = "down"  # from the bottom of its source to the top of its target
    UP = "up"  # back, between the other nodes: from the top of its source to the bottom of its target
    AROUND = "around"  # back, beside the other nodes: from side to side
    LOOP = "loop"  # from a node to itself


@dataclass(slots=True)
class Item:
    """One place in a row; x and y are its middle, once it has been placed."""

    role: Role
    row: int
    width: int
    height: int
    host: int = -1
    x: int = 0
    y: int = 0


@dataclass(slots=True)
class Chain:
    """The way of one edge: its items from the top row to the bottom row, whichever way its arrow points."""

    way: Way
    items: list[int] = field(default_factory=list)
    side: int = 1  # of an edge that goes around: -1 is left, 1 is right
    is_two_way: bool = False  # it also stands for an edge that goes back the same way

    @property
    def is_apart(self) -> bool:
        """Whether its arrow would be lost among edges that only leave, or only arrive."""
        return self.way is Way.UP or self.is_two_way


@dataclass(frozen=True, slots=True)
class Spaces:
    """How far things keep from one another; pixels in a drawing, characters in a terminal."""

    nodes: int  # between two nodes of a row
    lanes: int  # between an edge and whatever is beside it
    ports: int  # between two edges on one side of a node
    corner: int  # at both ends of a side, where no edge begins or ends
    widest: int  # a node grows no wider than this for its edges
    grain: int  # 2: widths are even, and middles lie between pixels; 1: widths are odd, and middles are characters


@dataclass(slots=True)
class Layers:
    """Items in rows. The first items are the nodes, in their order; `rows` becomes the order from left to right."""

    spaces: Spaces
    items: list[Item]
    rows: list[list[int]]
    chains: list[Chain]
    label_rows: frozenset[int]  # the rows between the ranks
    turns: dict[int, list[int]] = field(default_factory=dict)  # the node, and the turns beside it
    chain_of: dict[int, int] = field(default_factory=dict)  # which chain a pass, label or turn belongs to

    def segments(self) -> list[Edge]:
        """The steps of all chains, each from one row to the next."""
        return [step for chain in self.chains for step in zip(chain.items, chain.items[1:], strict=False)]

    def gap(self, left: int, right: int) -> int:
        """How much room stays free between two neighbours of a row."""
        both_nodes = self.items[left].role is Role.NODE and self.items[right].role is Role.NODE
        return self.spaces.nodes if both_nodes else self.spaces.lanes


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is to be laid out: how large the nodes are, where edges lead, and how large their labels are."""

    nodes: Sequence[Size]
    edges: Sequence[Edge]
    labels: Sequence[Size | None]
    first: frozenset[int]
    last: frozenset[int]
    two_way: frozenset[int] = frozenset()


def layers_of(sizes: Sizes, spaces: Spaces) -> Layers:
    """Sort nodes and edges into rows; from left to right they are still as they come."""
    count = len(sizes.nodes)
    back = back_edges(count, sizes.edges, sizes.first)
    downward = [(b, a) if index in back else (a, b) for index, (a, b) in enumerate(sizes.edges) if a != b]
    rank = ranks(count, downward, sizes.first, sizes.last)
    ways = _ways(sizes.edges, back)
    labels = _with_room_for_twins(sizes, ways, spaces)
    return _Builder(sizes, spaces, rank, ways, labels).build()


def _ways(edges: Sequence[Edge], back: set[int]) -> list[Way]:
    leaving = Counter(edges[index][0] for index in back if edges[index][0] != edges[index][1])
    arriving = Counter(edges[index][1] for index in back if edges[index][0] != edges[index][1])
    ways: list[Way] = []
    for index, (source, target) in enumerate(edges):
        if source == target:
            ways.append(Way.LOOP)
        elif index not in back:
            ways.append(Way.DOWN)
        else:
            is_crowded = leaving[source] > MOST_TURNS or arriving[target] > MOST_TURNS
            ways.append(Way.UP if is_crowded else Way.AROUND)
    return ways


def _with_room_for_twins(sizes: Sizes, ways: Sequence[Way], spaces: Spaces) -> list[Size | None]:
    """Return the label sizes, with room for a label that is not there where two edges would lie on one another."""
    times = Counter(sizes.edges)
    labels = list(sizes.labels)
    for index, (edge, way) in enumerate(zip(sizes.edges, ways, strict=True)):
        if times[edge] > 1 and labels[index] is None and way in (Way.DOWN, Way.UP):
            labels[index] = (grown(2 * spaces.grain, spaces.grain), 0)
    return labels


def grown(width: int, grain: int) -> int:
    """Return the width, or the next one up: even where the grain is 2, odd where it is 1, so that it has a middle."""
    return width + (width + grain) % 2


class _Builder:
    """Makes the layers, row by row and edge by edge."""

    def __init__(
        self,
        sizes: Sizes,
        spaces: Spaces,
        rank: Sequence[int],
        ways: Sequence[Way],
        labels: Sequence[Size | None],
    ) -> None:
        self.sizes, self.rank, self.ways, self.labels = sizes, rank, ways, labels
        self.row_of_rank, self.label_row, rows = self._rows()
        self.layers = Layers(spaces, [], [[] for _ in range(rows)], self._chains(), frozenset(self.label_row.values()))

    def _chains(self) -> list[Chain]:
        return [Chain(way, is_two_way=index in self.sizes.two_way) for index, way in enumerate(self.ways)]

    def _rows(self) -> tuple[list[int], dict[int, int], int]:
        """Number the rows: one for each rank, and one below it if labels stand there."""
        labelled = {self._label_rank(index) for index, size in enumerate(self.labels) if size is not None}
        row_of_rank: list[int] = []
        label_row: dict[int, int] = {}
        row = 0
        for rank in range(max(self.rank, default=-1) + 1):
            row_of_rank.append(row)
            if rank in labelled:
                row += 1
                label_row[rank] = row
            row += 1
        return row_of_rank, label_row, row

    def _label_rank(self, index: int) -> int:
        """The rank under which an edge's label stands: next to the node that decides."""
        source = self.rank[self.sizes.edges[index][0]]
        return {Way.DOWN: source, Way.LOOP: -1}.get(self.ways[index], source - 1)

    def build(self) -> Layers:
        """Give every node and every edge its items."""
        for node, (width, height) in enumerate(self.sizes.nodes):
            wide = max(width, self._width_of_ports(node))
            self._add(Role.NODE, self.row_of_rank[self.rank[node]], (wide, height))
        for index in range(len(self.ways)):
            self._add_chain(index)
        return self.layers

    def _width_of_ports(self, node: int) -> int:
        """How wide a node must be for the edges that come and go on one side of it, above or below."""
        spaces = self.layers.spaces
        below: list[Chain] = []
        above: list[Chain] = []
        for (source, target), chain in zip(self.sizes.edges, self.layers.chains, strict=True):
            if node == source and chain.way in (Way.DOWN, Way.UP):
                (below if chain.way is Way.DOWN else above).append(chain)
            if node == target and chain.way in (Way.DOWN, Way.UP):
                (above if chain.way is Way.DOWN else below).append(chain)
        most = max((len(side) for side in (below, above) if any(chain.is_apart for chain in side)), default=0)
        return min(spaces.widest, 2 * spaces.corner + spaces.ports * most) if most else 0

    def _add(self, role: Role, row: int, size: Size, host: int = -1) -> int:
        width = grown(size[0], self.layers.spaces.grain)
        self.layers.items.append(Item(role, row, width, size[1], host))
        item = len(self.layers.items) - 1
        if host < 0:
            self.layers.rows[row].append(item)
        else:
            self.layers.turns.setdefault(host, []).append(item)
        return item

    def _add_chain(self, index: int) -> None:
        (source, target), way = self.sizes.edges[index], self.ways[index]
        top, bottom = (source, target) if way is Way.DOWN else (target, source)
        chain = self.layers.chains[index].items
        if way is Way.LOOP:
            chain.append(self._turn(source, self.labels[index] or (0, 0)))
        else:
            chain.append(self._turn(top) if way is Way.AROUND else top)
            chain += self._passes(index, top, bottom)
            chain.append(self._turn(bottom) if way is Way.AROUND else bottom)
        for item in chain:
            if self.layers.items[item].role is not Role.NODE:
                self.layers.chain_of[item] = index

    def _turn(self, node: int, size: Size = (0, 0)) -> int:
        return self._add(Role.TURN, self.layers.items[node].row, size, host=node)

    def _passes(self, index: int, top: int, bottom: int) -> list[int]:
        """The items of an edge between its ends: one in each row, and its label in one of them."""
        size = self.labels[index]
        first, last = self.layers.items[top].row + 1, self.layers.items[bottom].row
        own_row = self.label_row[self._label_rank(index)] if size is not None else -1
        return [
            self._add(Role.LABEL, row, size) if size and row == own_row else self._add(Role.PASS, row, (0, 0))
            for row in range(first, last)
        ]
