"""From left to right in each row, so that few edges cross.

Rows are swept down and up; each item goes to the middle of what it is joined to in the row before. The best order that
was seen is kept. What turns beside a node stays beside it: a node and its turns are moved as one.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence

from bide.picture.layers import Chain, Layers, Role, Way

SWEEPS = 8
SMALL = 500  # up to so many items also slower ways to a better order are tried


def order(layers: Layers) -> None:
    """Put the rows of the layers in order, turns included."""
    ordering = _Ordering(layers)
    ordering.sweep(SWEEPS)
    if len(layers.items) <= SMALL:
        ordering.try_other_sides()
    layers.rows = ordering.best


class _Ordering:
    """The rows on their way to a good order: `cores` are the items without the turns, which follow their nodes."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.above: list[list[int]] = [[] for _ in layers.items]
        self.below: list[list[int]] = [[] for _ in layers.items]
        for upper, lower in layers.segments():
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.span = {item: len(layers.chains[chain].items) for item, chain in layers.chain_of.items()}
        self.position = [0] * len(layers.items)
        self.cores = self._first_order()
        self._number_all()
        self.best = self._all_rows()
        self.fewest = self.crossings()

    # --- moving -------------------------------------------------------------------------------------------------------

    def sweep(self, times: int) -> None:
        """Go down and up through the rows, and keep the best order that was seen."""
        for round in range(times):
            downwards = round % 2 == 0
            for row in range(len(self.cores)) if downwards else reversed(range(len(self.cores))):
                self._sort_row(row, self.above if downwards else self.below)
            if len(self.layers.items) <= SMALL:
                self._swap_neighbours()
            self._keep_if_better()

    def try_other_sides(self) -> None:
        """Send each edge that goes around past the other side, and leave it there if that saves a crossing."""
        for chain in self.layers.chains:
            if chain.way is Way.AROUND and self.fewest:
                self._try_other_side(chain)

    def _try_other_side(self, chain: Chain) -> None:
        before, cores = self.fewest, [list(row) for row in self.cores]
        chain.side = -chain.side
        self._number_all()
        self._keep_if_better()
        self.sweep(2)
        if self.fewest >= before:
            chain.side = -chain.side
            self.cores = cores
            self._number_all()

    def _keep_if_better(self) -> None:
        if (crossings := self.crossings()) < self.fewest:
            self.fewest, self.best = crossings, self._all_rows()

    def _sort_row(self, row: int, near: Sequence[Sequence[int]]) -> None:
        """Sort a row by the middles of its neighbours; what has no neighbours stays where it is."""
        middles = {core: self._middle(self._with_turns(core), near) for core in self.cores[row]}
        movable = sorted(
            (core for core in self.cores[row] if middles[core] is not None), key=lambda core: middles[core] or 0.0
        )
        sorted_cores = iter(movable)
        self.cores[row] = [core if middles[core] is None else next(sorted_cores) for core in self.cores[row]]
        self._number(row)

    def _middle(self, items: Iterable[int], near: Sequence[Sequence[int]]) -> float | None:
        places = [self.position[other] for item in items for other in near[item]]
        return sum(places) / len(places) if places else None

    def _swap_neighbours(self) -> None:
        """Swap neighbours as long as that saves crossings."""
        for row in range(len(self.cores)):
            cores = self.cores[row]
            for left in range(len(cores) - 1):
                as_is, swapped = self._crossings_between(cores[left], cores[left + 1])
                if swapped < as_is:
                    cores[left], cores[left + 1] = cores[left + 1], cores[left]
            self._number(row)

    # --- rows with their turns ----------------------------------------------------------------------------------------

    def _first_order(self) -> list[list[int]]:
        """Walk the edges from the top; what is met first stands left."""
        cores: list[list[int]] = [[] for _ in self.layers.rows]
        seen: set[int] = set()
        for root in [core for row in self.layers.rows for core in row]:
            ahead = [root]
            while ahead:
                core = ahead.pop()
                if core not in seen:
                    seen.add(core)
                    cores[self.layers.items[core].row].append(core)
                    lower = [other for item in self._with_turns(core) for other in self.below[item]]
                    hosts = [
                        other if self.layers.items[other].host < 0 else self.layers.items[other].host for other in lower
                    ]
                    ahead += reversed(hosts)
        return cores

    def _with_turns(self, core: int) -> list[int]:
        return [core, *self.layers.turns.get(core, ())]

    def _row(self, row: int) -> list[int]:
        """A row with the turns on both sides of their nodes."""
        items: list[int] = []
        for core in self.cores[row]:
            turns = sorted(self.layers.turns.get(core, ()), key=self._turn_key)
            items += [turn for turn in turns if self._side(turn) < 0]
            items.append(core)
            items += [turn for turn in turns if self._side(turn) > 0]
        return items

    def _side(self, turn: int) -> int:
        return self.layers.chains[self.layers.chain_of[turn]].side

    def _turn_key(self, turn: int) -> tuple[bool, float, int]:
        """Loops next to the node, then by where the lane goes on; a longer way round goes outside a shorter one."""
        side = self._side(turn)
        is_far = self.layers.chains[self.layers.chain_of[turn]].way is not Way.LOOP
        place = self._middle([turn], self.above) or self._middle([turn], self.below) or 0.0
        return is_far, place, side * self.span[turn]

    def _number(self, row: int) -> None:
        for index, item in enumerate(self._row(row)):
            self.position[item] = index

    def _number_all(self) -> None:
        for row in range(len(self.cores)):
            self._number(row)

    def _all_rows(self) -> list[list[int]]:
        return [sorted(self._row(row), key=self.position.__getitem__) for row in range(len(self.cores))]

    # --- counting -----------------------------------------------------------------------------------------------------

    def crossings(self) -> int:
        """Count how often edges cross between the rows, as they stand."""
        return sum(self._crossings_below(self._row(row)) for row in range(len(self.cores) - 1))

    def _crossings_below(self, row: Sequence[int]) -> int:
        count = 0
        ends: list[int] = []
        for item in sorted(row, key=self.position.__getitem__):
            lower = sorted(self.position[other] for other in self.below[item])
            count += sum(len(ends) - bisect_right(ends, end) for end in lower)
            for end in lower:
                insort(ends, end)
        return count

    def _crossings_between(self, left: int, right: int) -> tuple[int, int]:
        """How often the edges of two neighbours cross one another: as they stand, and swapped."""
        as_is = swapped = 0
        for near in (self.above, self.below):
            lefts = [self.position[other] for item in self._with_turns(left) for other in near[item]]
            rights = [self.position[other] for item in self._with_turns(right) for other in near[item]]
            as_is += sum(a > b for a in lefts for b in rights)
            swapped += sum(a < b for a in lefts for b in rights)
        return as_is, swapped


def lanes_beside(layers: Layers, node: int, side: int) -> list[int]:
    """Return the turns on one side of a node, the nearest first; after `order`."""
    row = layers.rows[layers.items[node].row]
    place = row.index(node)
    beside = row[place + 1 :] if side > 0 else reversed(row[:place])
    near: list[int] = []
    for item in beside:
        if layers.items[item].role is not Role.TURN or layers.items[item].host != node:
            break
        near.append(item)
    return near
