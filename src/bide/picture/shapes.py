"""The shapes that every drawing is made of, whoever draws them: heads of arrows, bars, signs, and where text stands."""

from __future__ import annotations

from dataclasses import dataclass

from bide.picture import style
from bide.picture.drawing import Box, Head, Path
from bide.picture.model import Mark
from bide.picture.text import width_of


@dataclass(frozen=True, slots=True)
class Disc:
    """The sign of a mark, by its middle."""

    mark: Mark
    x: float
    y: float


Words = tuple[str, float, float, float]
"""A line of text, where it begins, the middle of its height, and its size."""


def head_of(head: Head) -> Path:
    """Return the corners of the head of an arrow."""
    back_x, back_y = head.x - head.dx * style.HEAD, head.y - head.dy * style.HEAD
    half = style.HEAD_WIDTH / 2
    return (
        (head.x, head.y),
        (back_x - head.dy * half, back_y - head.dx * half),
        (back_x + head.dy * half, back_y + head.dx * half),
    )


def bar_of(head: Head) -> Path:
    """Return the bar at which the edges of a join wait for one another."""
    far, half = style.HEAD + style.BAR, style.BAR_WIDTH / 2
    x, y = head.x - head.dx * far, head.y - head.dy * far
    return (x - abs(head.dy) * half, y - abs(head.dx) * half), (x + abs(head.dy) * half, y + abs(head.dx) * half)


def subgraph_bars(box: Box) -> tuple[Path, ...]:
    """Return the two lines that tell a graph inside a node, as long as it is closed."""
    if box.node.kind != "subgraph" or box.is_open:
        return ()
    return tuple(((x, box.y), (x, box.y + box.height)) for x in (box.x + 7, box.x + box.width - 7))


def disc_of(disc: Disc) -> tuple[Path, ...]:
    """Return the strokes of a sign."""
    return tuple(tuple((disc.x + x, disc.y + y) for x, y in stroke) for stroke in style.SIGNS[disc.mark])


def header_of(box: Box) -> tuple[Disc | None, list[Words]]:
    """Return where the sign and the words of a box stand: in the middle, or on top of what is inside."""
    heights = [style.TEXT * style.LINE_HEIGHT] * len(box.lines) + [style.NOTE * style.LINE_HEIGHT] * len(box.notes)
    sizes = [style.TEXT] * len(box.lines) + [style.NOTE] * len(box.notes)
    texts = [*box.lines, *box.notes]
    height = sum(heights) + (2 if box.notes else 0)
    sign = style.SIGN + style.SIGN_SPACE if box.node.mark else 0
    widths = [width_of(line, size) for line, size in zip(texts, sizes, strict=True)]
    y = box.y + (style.PADDING_Y - 2 if box.is_open else (box.height - height) / 2)
    left = box.x + (style.FRAME if box.is_open else (box.width - max(widths) - sign) / 2)
    middle = y + (heights[0] if box.is_open else height) / 2
    disc = Disc(box.node.mark, left + style.SIGN / 2, middle) if box.node.mark else None
    words: list[Words] = []
    for index, (line, size, width) in enumerate(zip(texts, sizes, widths, strict=True)):
        if index == len(box.lines):
            y += 2
        indent = 0 if box.is_open else (max(widths) - width) / 2
        words.append((line, left + sign + indent, y + heights[index] / 2, size))
        y += heights[index]
    return disc, words
