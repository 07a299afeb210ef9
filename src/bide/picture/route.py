"""The curves of the edges. They bend between the rows only and go straight down through each, so they touch no node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bide.picture.drawing import Curve, Head, Path, Point, reversed_path
from bide.picture.layers import Chain, Layers, Role, Way
from bide.picture.outline import flatten
from bide.picture.ports import BOTTOM, TOP, End, Row
from bide.picture.style import BAR, HEAD, LABEL_GAP, ROW_GAP, TURN

STEEPEST = 0.7  # how far from upright a curve passes between two labels
MARGIN = 6  # how near it may come to one


@dataclass(frozen=True, slots=True)
class Knot:
    """A point that a curve goes through from top to bottom, and how far it leans there."""

    x: float
    y: float
    lean: float = 0.0


@dataclass(frozen=True, slots=True)
class Routes:
    """What is known of a layout when its edges are drawn."""

    layers: Layers
    rows: Sequence[Row]
    ports: dict[End, tuple[int, int]]
    joins: frozenset[int]  # the chains that end at a bar, where they wait for one another
    labels: dict[int, list[tuple[int, float]]] = field(
        default_factory=dict
    )  # by row: the middle and half the width of each

    def __post_init__(self) -> None:
        for row in self.layers.label_rows:
            items = [self.layers.items[item] for item in self.layers.rows[row]]
            self.labels[row] = [(item.x, item.width / 2) for item in items if item.role is Role.LABEL]

    def route(self, index: int) -> tuple[Path, Head]:
        """Return the way of one edge, and the head of its arrow."""
        chain = self.layers.chains[index]
        if chain.way is Way.LOOP:
            return self._loop(index)
        if chain.way is Way.AROUND:
            return self._around(index)
        path = _through(self._knots(index))
        tip = self.ports[index, BOTTOM if chain.way is Way.DOWN else TOP]
        if chain.way is Way.DOWN:
            return path, Head(*tip, 0, 1)
        return reversed_path(path), Head(*tip, 0, -1)

    # --- up and down --------------------------------------------------------------------------------------------------

    def _knots(self, index: int) -> list[Knot]:
        """The points of an edge from top to bottom, with room for the head at one end."""
        chain = self.layers.chains[index]
        top, bottom = self.ports[index, TOP], self.ports[index, BOTTOM]
        above, below = (self._row_of(chain.items[0]), self._row_of(chain.items[-1]))
        head = HEAD + (BAR if index in self.joins else 0)
        # Where some edges arrive and some leave, all begin upright, and so they stay as far apart as they set out.
        from_head, to_head = (head, HEAD) if chain.way is Way.UP else (HEAD * self._is_mixed(chain.items[0]), head)
        start = Knot(top[0], max(above.bottom, top[1] + from_head))
        end = Knot(bottom[0], min(below.top, bottom[1] - to_head))
        between = [start, *self._passes(chain, start, end), end]
        # The head is drawn on its own: the line ends where it begins.
        if chain.way is Way.UP:
            return [Knot(top[0], top[1] + HEAD), *between, Knot(*bottom)]
        return [Knot(*top), *between, Knot(bottom[0], bottom[1] - HEAD)]

    def _passes(self, chain: Chain, start: Knot, end: Knot) -> list[Knot]:
        """The points between the ends: straight down past nodes and labels."""
        knots: list[Knot] = []
        for index, item in enumerate(chain.items[1:-1], 1):
            known, row = self.layers.items[item], self._row_of(item)
            if known.role is not Role.PASS or known.row not in self.layers.label_rows:
                knots += [Knot(known.x, row.top), Knot(known.x, row.bottom)]
                continue
            before, after = chain.items[index - 1], chain.items[index + 1]
            above = start if index == 1 else Knot(self.layers.items[before].x, self._row_of(before).bottom)
            below = end if after == chain.items[-1] else Knot(self.layers.items[after].x, self._row_of(after).top)
            leaning = Knot(known.x, (row.top + row.bottom) / 2, self._lean(before, item, after))
            upright = [Knot(known.x, row.top), Knot(known.x, row.bottom)]
            ways: list[list[Knot]] = [[], [leaning]]
            knots += next((way for way in ways if self._is_clear([above, *way, below], known.row)), upright)
        return knots

    def _is_clear(self, knots: Sequence[Knot], row: int) -> bool:
        """Whether a curve from the row before to the row after touches no label of the row between."""
        top, bottom = self.rows[row].top - MARGIN, self.rows[row].bottom + MARGIN
        for (x, y), (to_x, to_y) in pairwise(flatten(_through(knots))):
            if y <= bottom and to_y >= top:
                left, right = min(x, to_x) - MARGIN, max(x, to_x) + MARGIN
                if any(left < middle + half and middle - half < right for middle, half in self.labels[row]):
                    return False
        return True

    def _lean(self, before: int, item: int, after: int) -> float:
        """How a curve passes a row of labels: on, if it comes from one side and goes to the other; else upright."""
        items = self.layers.items
        from_above = (items[item].x - items[before].x) / max(items[item].y - items[before].y, 1)
        to_below = (items[after].x - items[item].x) / max(items[after].y - items[item].y, 1)
        if from_above * to_below <= 0:
            return 0.0
        lean = 2 * from_above * to_below / (from_above + to_below)
        return max(-STEEPEST, min(STEEPEST, lean))

    def _is_mixed(self, node: int) -> bool:
        return any(chain.is_apart and chain.items[0] == node for chain in self.layers.chains)

    def _row_of(self, item: int) -> Row:
        return self.rows[self.layers.items[item].row]

    # --- around -------------------------------------------------------------------------------------------------------

    def _around(self, index: int) -> tuple[Path, Head]:
        """From the side of the source up to the side of the target."""
        chain = self.layers.chains[index]
        first, last = self.layers.items[chain.items[0]], self.layers.items[chain.items[-1]]
        target, source = self.ports[index, TOP], self.ports[index, BOTTOM]
        upper, lower = self._row_of(chain.items[0]), self._row_of(chain.items[-1])
        start, end = Knot(first.x, upper.bottom), Knot(last.x, lower.top)
        between = [start, *self._passes(chain, start, end), end]
        knots = [Knot(first.x, target[1] + TURN), *between, Knot(last.x, source[1] - TURN)]
        side = chain.side
        lane = reversed_path(_through(knots))
        path: list[Point | Curve] = [
            (float(source[0]), float(source[1])),
            (last.x - side * TURN, source[1]),
            _corner(last.x - side * TURN, source[1], last.x, source[1] - TURN, is_flat_first=True),
            *lane[1:],
            _corner(first.x, target[1] + TURN, first.x - side * TURN, target[1], is_flat_first=False),
            (target[0] + side * HEAD, target[1]),
        ]
        return tuple(path), Head(*target, -side, 0)

    def _loop(self, index: int) -> tuple[Path, Head]:
        """Out of the side of a node and back into it."""
        chain = self.layers.chains[index]
        turn = self.layers.items[chain.items[0]]
        (x, out), (_, back) = self.ports[index, TOP], self.ports[index, BOTTOM]
        far = turn.x - turn.width // 2
        radius = min(TURN, (back - out) / 2)
        path: tuple[Point | Curve, ...] = (
            (x, out),
            (far - radius, out),
            _corner(far - radius, out, far, out + radius, is_flat_first=True),
            (far, back - radius),
            _corner(far, back - radius, far - radius, back, is_flat_first=False),
            (x + HEAD, back),
        )
        return path, Head(x, back, -1, 0)


def row_gaps(layers: Layers) -> list[int]:
    """Return how far apart the rows are: farther where an edge has far to go sideways, so that it is not too flat."""
    farthest = [0] * max(len(layers.rows) - 1, 0)
    for upper, lower in layers.segments():
        row = layers.items[upper].row
        farthest[row] = max(farthest[row], abs(layers.items[upper].x - layers.items[lower].x))
    return [
        (LABEL_GAP if layers.label_rows & {row, row + 1} else ROW_GAP) + min(44, far // 7)
        for row, far in enumerate(farthest)
    ]


def _corner(x: float, y: float, to_x: float, to_y: float, *, is_flat_first: bool) -> Curve:
    """A quarter of a circle."""
    k = 0.5523
    if is_flat_first:
        return x + k * (to_x - x), y, to_x, to_y - k * (to_y - y), to_x, to_y
    return x, y + k * (to_y - y), to_x - k * (to_x - x), to_y, to_x, to_y


def _through(knots: Sequence[Knot]) -> Path:
    """Return a smooth line through points that go down; straight where they stand under one another."""
    path: list[Point | Curve] = [(float(knots[0].x), float(knots[0].y))]
    for above, below in pairwise(knots):
        height = (below.y - above.y) / 2
        if height <= 0:
            continue
        if above.x == below.x and not above.lean and not below.lean:
            if len(path) > 1 and len(path[-1]) == 2 and path[-1][0] == below.x:
                path.pop()
            path.append((float(below.x), float(below.y)))
        else:
            lean_above, lean_below = above.x + above.lean * height, below.x - below.lean * height
            path.append((lean_above, above.y + height, lean_below, below.y - height, float(below.x), float(below.y)))
    return tuple(path)
