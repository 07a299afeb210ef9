"""Where edges touch nodes, and how the rows are stacked; for drawings and for terminals alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from bide.picture.layers import Layers, Spaces, Way
from bide.picture.order import lanes_beside

TOP, BOTTOM = 0, 1

End = tuple[int, int]
"""One end of a chain: its index, and TOP or BOTTOM; of a loop, TOP is where it leaves."""


@dataclass(frozen=True, slots=True)
class Row:
    """The room of a row, from its upper to its lower edge."""

    top: int
    bottom: int


def make_room_at_sides(layers: Layers) -> None:
    """Let nodes grow high enough for the edges that go around; after `order`."""
    for node in layers.turns:
        item, spaces = layers.items[node], layers.spaces
        for side in (-1, 1):
            places = side_places(layers, node, side).values()
            needed = max(places, default=0) - min(places, default=0) + 2 * spaces.corner + spaces.grain % 2
            item.height = max(item.height, needed)


def side_places(layers: Layers, node: int, side: int) -> dict[End, int]:
    """Return the ends at one side of a node, and how far below its middle each stands.

    No lane crosses another on its way in: those that go up are above, the nearest highest; those that go down are
    below, the nearest lowest; loops are between, one in the other, far enough apart for what is written on them.
    """
    up, loops, down = _lanes(layers, node, side)
    gap = layers.spaces.ports
    half = gap // 2 - gap
    places: dict[End, int] = {}
    for turn in loops:
        half = max(half + gap, (layers.items[turn].height + 1) // 2)
        places[layers.chain_of[turn], TOP], places[layers.chain_of[turn], BOTTOM] = -half, half
    for step, turn in enumerate(reversed(up), 1):
        places[layers.chain_of[turn], BOTTOM] = -half - gap * step
    for step, turn in enumerate(reversed(down), 1):
        places[layers.chain_of[turn], TOP] = half + gap * step
    middle = (max(places.values()) + min(places.values())) // 2 if places else 0
    return {end: place - middle for end, place in places.items()}


def _lanes(layers: Layers, node: int, side: int) -> tuple[list[int], list[int], list[int]]:
    """The turns on one side of a node, the nearest first: of edges that go up from it, of loops, and down from it."""
    up: list[int] = []
    loops: list[int] = []
    down: list[int] = []
    for turn in lanes_beside(layers, node, side):
        chain = layers.chains[layers.chain_of[turn]]
        (loops if chain.way is Way.LOOP else up if turn == chain.items[-1] else down).append(turn)
    return up, loops, down


def stack(layers: Layers, gaps: Sequence[int]) -> list[Row]:
    """Give every item its y, the rows apart by the gaps, and return the rows."""
    rows: list[Row] = []
    top = 0
    for index, row in enumerate(layers.rows):
        height = max((layers.items[item].height for item in row), default=0)
        for item in row:
            layers.items[item].y = top + height // 2
        rows.append(Row(top, top + height))
        top += height + (gaps[index] if index < len(gaps) else 0)
    return rows


def ports_of(layers: Layers) -> dict[End, tuple[int, int]]:
    """Return the point where each end of each edge touches its node."""
    ports: dict[End, tuple[int, int]] = {}
    above: dict[int, list[End]] = {}
    below: dict[int, list[End]] = {}
    for index, chain in enumerate(layers.chains):
        if chain.way in (Way.DOWN, Way.UP):
            below.setdefault(chain.items[0], []).append((index, TOP))
            above.setdefault(chain.items[-1], []).append((index, BOTTOM))
    for node, ends in below.items():
        _spread(layers, node, ends, ports, 1)
    for node, ends in above.items():
        _spread(layers, node, ends, ports, -1)
    for node in layers.turns:
        for side in (-1, 1):
            _spread_at_side(layers, node, side, ports)
    return ports


def _spread(layers: Layers, node: int, ends: list[End], ports: dict[End, tuple[int, int]], direction: int) -> None:
    """Let all ends meet in the middle; apart only where some arrive and some leave, which would look like one edge."""
    item = layers.items[node]
    top = item.y - item.height // 2
    y = top if direction < 0 else top + item.height - layers.spaces.grain % 2
    if not any(layers.chains[index].is_apart for index, _ in ends):
        ports.update(dict.fromkeys(ends, (item.x, y)))
        return
    ends.sort(key=lambda end: (layers.items[_next_to(layers, end)].x, end[0]))
    for end, shift in zip(ends, _shifts(len(ends), item.width, layers.spaces), strict=True):
        ports[end] = item.x + shift, y


def _next_to(layers: Layers, end: End) -> int:
    items = layers.chains[end[0]].items
    return items[1] if end[1] == TOP else items[-2]


def _spread_at_side(layers: Layers, node: int, side: int, ports: dict[End, tuple[int, int]]) -> None:
    item = layers.items[node]
    for end, place in side_places(layers, node, side).items():
        ports[end] = item.x + side * (item.width // 2), item.y + place


def _shifts(count: int, length: int, spaces: Spaces) -> list[int]:
    """Return how far each of some ends stands from the middle of a side."""
    room = max(length - spaces.grain % 2 - 2 * spaces.corner, 0)
    step = min(float(spaces.ports), room / max(count - 1, 1))
    return [floor((index - (count - 1) / 2) * step + 0.5) for index in range(count)]
