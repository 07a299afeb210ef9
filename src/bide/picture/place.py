"""Where exactly each item stands in its row: edges straight where they can be, nodes above the middle of what follows.

Four layouts are made, each leaning to another corner: items are joined to what stands in the middle of their neighbours
in the row before (or after), from the left (or the right), and the columns that arise are pushed together. What is
kept is the middle of the four. Every number is whole, so lines are sharp, and columns stay columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bide.picture.layers import Chain, Item, Layers, Role
from bide.picture.rank import Edge, topological

POLISH_ROUNDS = 6
FAR = 10**9


def place(layers: Layers) -> None:
    """Give every item its x, and keep the order and the gaps of the rows."""
    if not layers.items:
        return
    placing = _Placing(layers)
    layouts = [placing.layout(upwards, mirrored) for upwards in (False, True) for mirrored in (False, True)]
    for item, x in zip(layers.items, _middle_of(layers, layouts), strict=True):
        item.x = x
    _polish(layers)


class _Placing:
    """What the four layouts share: who is joined to whom, and which joints would cross a long edge."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.position = {item: index for row in layers.rows for index, item in enumerate(row)}
        self.above: list[list[int]] = [[] for _ in layers.items]
        self.below: list[list[int]] = [[] for _ in layers.items]
        for upper, lower in layers.segments():
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.refused = self._crossing_long_edges()

    def layout(self, upwards: bool, mirrored: bool) -> list[int]:
        """Return one x for each item: leaning to the left, or mirrored to the right."""
        rows = [list(reversed(row)) if mirrored else row for row in self.layers.rows]
        near = self.below if upwards else self.above
        root = self._columns(list(reversed(rows)) if upwards else rows, near, -1 if mirrored else 1)
        places = self._push_together(rows, root)
        return [-places[root[item]] if mirrored else places[root[item]] for item in range(len(root))]

    def _columns(self, rows: Sequence[Sequence[int]], near: Sequence[Sequence[int]], sign: int) -> list[int]:
        """Join each item to the middle one of its neighbours, where that crosses no other joint; return its root."""
        root = list(range(len(self.layers.items)))
        for row in rows[1:]:
            taken = -len(root) - 1
            for item in row:
                others = sorted(near[item], key=lambda other: sign * self.position[other])
                for index in sorted({(len(others) - 1) // 2, len(others) // 2}) if others else ():
                    place = sign * self.position[others[index]]
                    if root[item] == item and place > taken and (others[index], item) not in self.refused:
                        root[item] = root[others[index]]
                        taken = place
        return root

    def _push_together(self, rows: Sequence[Sequence[int]], root: Sequence[int]) -> dict[int, int]:
        """Place the columns as far left as they go, then each as far right as its right neighbours let it."""
        gaps: dict[int, dict[int, int]] = {column: {} for column in root}
        for row in rows:
            for left, right in pairwise(row):
                known = gaps[root[left]].get(root[right], 0)
                gaps[root[left]][root[right]] = max(known, distance(self.layers, left, right))
        order = topological(gaps)
        places = dict.fromkeys(order, 0)
        for column in order:
            for other, gap in gaps[column].items():
                places[other] = max(places[other], places[column] + gap)
        for column in reversed(order):
            if gaps[column]:
                places[column] = max(places[column], min(places[other] - gap for other, gap in gaps[column].items()))
        return places

    def _crossing_long_edges(self) -> set[Edge]:
        """The segments, both ways round, that cross one between two passes: that one is straight, so they give way."""
        refused: set[Edge] = set()
        place = self.position
        for row in self.layers.rows:
            segments = [(upper, lower) for upper in row for lower in self.below[upper]]
            long = [(place[a], place[b], (a, b)) for a, b in segments if self._is_long(a) and self._is_long(b)]
            for segment in segments:
                upper, lower = place[segment[0]], place[segment[1]]
                is_long = self._is_long(segment[0]) and self._is_long(segment[1])
                for other_upper, other_lower, other in long:
                    if (upper - other_upper) * (lower - other_lower) < 0 and (not is_long or segment > other):
                        refused |= {segment, segment[::-1]}
                        break
        return refused

    def _is_long(self, item: int) -> bool:
        return self.layers.items[item].role is not Role.NODE


def distance(layers: Layers, left: int, right: int) -> int:
    """Return how far apart the middles of two neighbours must be."""
    return (layers.items[left].width + layers.items[right].width) // 2 + layers.gap(left, right)


def _middle_of(layers: Layers, layouts: Sequence[Sequence[int]]) -> list[int]:
    """Lay the four over one another, at the side to which each leans, and return the middle of each item's places."""
    bounds = [_bounds(layers, layout) for layout in layouts]
    left, right = min(bounds, key=lambda bound: bound[1] - bound[0])
    shifted = [
        [x + (left - bound[0] if index % 2 == 0 else right - bound[1]) for x in layout]
        for index, (layout, bound) in enumerate(zip(layouts, bounds, strict=True))
    ]
    middles = [sorted(places)[1:3] for places in zip(*shifted, strict=True)]
    return [(low + high) // 2 for low, high in middles]


def _bounds(layers: Layers, layout: Sequence[int]) -> tuple[int, int]:
    halves = [item.width // 2 for item in layers.items]
    return (
        min(x - half for x, half in zip(layout, halves, strict=True)),
        max(x + half for x, half in zip(layout, halves, strict=True)),
    )


# --- the last touch ---------------------------------------------------------------------------------------------------


def _polish(layers: Layers) -> None:
    """Move each column where it wants to be, as far as its neighbours leave it room."""
    above: list[list[int]] = [[] for _ in layers.items]
    below: list[list[int]] = [[] for _ in layers.items]
    for upper, lower in layers.segments():
        below[upper].append(lower)
        above[lower].append(upper)
    beside = _neighbours(layers)
    for round in range(POLISH_ROUNDS):
        downwards = round % 2 == 0
        for rod in _rods(layers) if downwards else reversed(_rods(layers)):
            uppers = [layers.items[other].x for other in above[rod[0]]]
            lowers = [layers.items[other].x for other in below[rod[-1]]]
            low, high = _room(layers, rod, beside)
            x = min(max(_wanted(layers, rod, uppers, lowers, downwards), low), high)
            _put(layers, rod, x)
    _snap(layers, above, below, beside)


def _snap(
    layers: Layers, above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], beside: dict[int, tuple[int, int]]
) -> None:
    """Move what is almost straight above or below another so that it is; the gap beside it may get a little smaller."""
    give = layers.spaces.lanes // 4
    for rod in _rods(layers):
        x = layers.items[rod[0]].x
        places = [layers.items[other].x for other in (*above[rod[0]], *below[rod[-1]])]
        low, high = _room(layers, rod, beside)
        near = [
            place for place in places if abs(place - x) <= layers.spaces.lanes and low - give <= place <= high + give
        ]
        if near:
            _put(layers, rod, max([x, *near], key=places.count))


def _put(layers: Layers, rod: Sequence[int], x: int) -> None:
    for item in rod:
        layers.items[item].x = x


def _rods(layers: Layers) -> list[list[int]]:
    """What moves as one: a node, or the straight part of a long edge. From top to bottom."""
    rods = [[item] for item, known in enumerate(layers.items) if known.role is Role.NODE]
    for chain in layers.chains:
        for item in chain.items:
            known = layers.items[item]
            if known.role is Role.NODE:
                continue
            last = rods[-1][-1]
            if layers.chain_of.get(last) == layers.chain_of[item] and layers.items[last].x == known.x:
                rods[-1].append(item)
            else:
                rods.append([item])
    return sorted(rods, key=lambda rod: (layers.items[rod[0]].row, rod[0]))


def _neighbours(layers: Layers) -> dict[int, tuple[int, int]]:
    """Who stands left and right of each item; -1 is nobody."""
    return {
        item: (row[index - 1] if index else -1, row[index + 1] if index + 1 < len(row) else -1)
        for row in layers.rows
        for index, item in enumerate(row)
    }


def _room(layers: Layers, rod: Sequence[int], beside: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """From where to where a rod can move between its neighbours."""
    low, high = -FAR, FAR
    for item in rod:
        left, right = beside[item]
        if left >= 0:
            low = max(low, layers.items[left].x + distance(layers, left, item))
        if right >= 0:
            high = min(high, layers.items[right].x - distance(layers, item, right))
    return low, high


def _wanted(layers: Layers, rod: Sequence[int], uppers: list[int], lowers: list[int], downwards: bool) -> int:
    """Where a rod wants to be: under or over the one it is joined to, in the middle of several."""
    ends = [layers.items[item] for item in rod if layers.items[item].role is Role.TURN]
    if ends:
        return _beside_hosts(layers, layers.chains[layers.chain_of[rod[0]]], ends)
    if len(uppers) == 1 and len(lowers) == 1:
        # Anywhere between is as short a way; but only at one of the two there is one bend instead of two.
        if layers.items[rod[0]].role is Role.NODE:
            return uppers[0] if downwards else lowers[0]
        return lowers[0] if layers.items[rod[0]].row in layers.label_rows else uppers[0]
    places = sorted(uppers + lowers)
    if not places:
        return layers.items[rod[0]].x
    return (places[(len(places) - 1) // 2] + places[len(places) // 2]) // 2


def _beside_hosts(layers: Layers, chain: Chain, ends: Sequence[Item]) -> int:
    """Where a way round wants to be: as near to its nodes as it can."""
    hosts = [layers.items[end.host].x + chain.side * (layers.items[end.host].width // 2) for end in ends]
    return (max(hosts) if chain.side > 0 else min(hosts)) + chain.side * layers.spaces.lanes
