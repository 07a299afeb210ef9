"""A picture laid out: boxes, lines and captions with their places, in pixels. What SVG and PNG are made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bide.picture.model import Mark, PictureEdge, PictureNode

Point = tuple[float, float]
Curve = tuple[float, float, float, float, float, float]

Path = tuple[Point | Curve, ...]
"""Where a line goes: a point to begin at, then points it goes to straight, or curves with their two handles first."""


@dataclass(frozen=True, slots=True)
class Caption:
    """Lines of text around a middle, and the room they take."""

    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    """A node in its place; `path` is its id after the ids of the nodes it stands in."""

    node: PictureNode
    path: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()
    is_open: bool = False  # another picture is drawn inside

    @property
    def depth(self) -> int:
        """In how many boxes it stands."""
        return len(self.path) - 1


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an arrow: its tip, and the direction in which it points."""

    x: float
    y: float
    dx: int
    dy: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge in its place: the path ends where the head of its arrow begins."""

    edge: PictureEdge
    parent: tuple[str, ...]
    path: Path
    head: Head
    caption: Caption | None = None


@dataclass(slots=True)
class Area:
    """A part of a drawing, with its own corner at 0, 0."""

    width: float = 0
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def put(self, other: Area, x: float, y: float) -> None:
        """Put another area into this one, its corner at x, y."""
        self.boxes += [replace(box, x=box.x + x, y=box.y + y) for box in other.boxes]
        self.lines += [_moved(line, x, y) for line in other.lines]


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it; outer boxes come before the boxes inside them."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    title: Caption | None
    legend: tuple[tuple[Mark, float, float], ...]  # the marks that are used, and where each is explained


def moved(path: Iterable[Point | Curve], x: float, y: float) -> Path:
    """Return a path moved by x, y."""
    return tuple(_moved_step(step, x, y) for step in path)


def reversed_path(path: Path) -> Path:
    """Return the same path from its end to its beginning."""
    back: list[Point | Curve] = [_end(path[-1])]
    for step, before in zip(reversed(path), list(reversed(path))[1:], strict=False):
        x, y = _end(before)
        back.append((step[2], step[3], step[0], step[1], x, y) if len(step) == 6 else (x, y))
    return tuple(back)


def _end(step: Point | Curve) -> Point:
    return step[-2], step[-1]


def _moved_step(step: Point | Curve, x: float, y: float) -> Point | Curve:
    if len(step) == 2:
        return step[0] + x, step[1] + y
    return step[0] + x, step[1] + y, step[2] + x, step[3] + y, step[4] + x, step[5] + y


def _moved(line: Line, x: float, y: float) -> Line:
    caption = line.caption
    return replace(
        line,
        path=moved(line.path, x, y),
        head=replace(line.head, x=line.head.x + x, y=line.head.y + y),
        caption=replace(caption, x=caption.x + x, y=caption.y + y) if caption is not None else None,
    )
