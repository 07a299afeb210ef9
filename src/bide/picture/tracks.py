"""Which line of a terminal each edge takes between two rows, where it has to go sideways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wire:
    """One step of an edge from column to column; steps with the same upper or lower end may share a line."""

    upper: int
    lower: int
    upper_end: tuple[int, int]
    lower_end: tuple[int, int]

    @property
    def is_straight(self) -> bool:
        """Whether it needs no line of its own."""
        return self.upper == self.lower


@dataclass(slots=True)
class _Bus:
    """Wires that fork from one end, or meet in one: they are drawn on one line."""

    wires: list[Wire]
    track: int = -1

    @property
    def left(self) -> int:
        return min(min(wire.upper, wire.lower) for wire in self.wires)

    @property
    def right(self) -> int:
        return max(max(wire.upper, wire.lower) for wire in self.wires)

    def is_over(self, other: _Bus) -> bool:
        """Whether it must be above another: it comes down in a column in which the other goes on down."""
        uppers = {wire.upper for wire in self.wires}
        return any(wire.lower in uppers for wire in other.wires)

    def touches(self, other: _Bus) -> bool:
        return self.left <= other.right + 1 and other.left <= self.right + 1


def tracks_of(wires: Sequence[Wire]) -> tuple[dict[Wire, int], int]:
    """Return the line of each wire that is not straight, from above, and how many lines there are."""
    waiting = _buses([wire for wire in wires if not wire.is_straight])
    placed: list[_Bus] = []
    while waiting:
        free = [bus for bus in waiting if not any(other.is_over(bus) for other in waiting if other is not bus)]
        bus = (free or waiting)[0]  # where each wants to be over the other, nobody can have it
        waiting.remove(bus)
        lowest = 1 + max((other.track for other in placed if other.is_over(bus)), default=-1)
        taken = {other.track for other in placed if other.touches(bus)}
        bus.track = next(track for track in range(lowest, lowest + len(placed) + 1) if track not in taken)
        placed.append(bus)
    lines = 1 + max((bus.track for bus in placed), default=-1)
    return {wire: bus.track for bus in placed for wire in bus.wires}, lines


def _buses(wires: Sequence[Wire]) -> list[_Bus]:
    forks = Counter(wire.upper_end for wire in wires)
    buses: dict[tuple[bool, tuple[int, int]], _Bus] = {}
    for wire in wires:
        is_fork = forks[wire.upper_end] > 1
        end = wire.upper_end if is_fork else wire.lower_end
        buses.setdefault((is_fork, end), _Bus([])).wires.append(wire)
    return list(buses.values())
