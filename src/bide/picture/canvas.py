"""Pixels, and polygons on them with smooth edges.

A polygon is not sampled: for each pixel along its edge the part that it covers is summed up exactly. Only the edges
cost time; what lies between them is filled row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import ceil, floor

from bide.picture.outline import Polygon

Colour = tuple[int, int, int]

Span = tuple[int, int, int, float]
"""A row, its pixels from here to before there, and how much of each is covered."""

NOTHING, ALL = 1 / 512, 1 - 1 / 512


class Canvas:
    """A picture of width times height pixels, one colour at first."""

    def __init__(self, width: int, height: int, colour: Colour) -> None:
        self.width, self.height = width, height
        self.pixels = bytearray(bytes(colour) * (width * height))

    def fill(self, polygons: Iterable[Polygon], colour: Colour) -> None:
        """Fill what any of the polygons covers."""
        self.paint(spans(polygons), colour)

    def paint(self, covered: Iterable[Span], colour: Colour, x: int = 0, y: int = 0) -> None:
        """Paint spans, moved by x, y; what lies outside of the canvas is left out."""
        for row, start, end, cover in covered:
            first, last = max(start + x, 0), min(end + x, self.width)
            if 0 <= row + y < self.height and first < last:
                self._paint_span((row + y) * self.width, first, last, cover, colour)

    def _paint_span(self, row: int, first: int, last: int, cover: float, colour: Colour) -> None:
        start, end = (row + first) * 3, (row + last) * 3
        if cover >= ALL:
            self.pixels[start:end] = bytes(colour) * (last - first)
            return
        red, green, blue = colour
        keep = 1 - cover
        red_part, green_part, blue_part = red * cover + 0.5, green * cover + 0.5, blue * cover + 0.5
        pixels = self.pixels
        for index in range(start, end, 3):
            pixels[index] = int(pixels[index] * keep + red_part)
            pixels[index + 1] = int(pixels[index + 1] * keep + green_part)
            pixels[index + 2] = int(pixels[index + 2] * keep + blue_part)


def spans(polygons: Iterable[Polygon]) -> Iterator[Span]:
    """Return the pixels that polygons cover, together, and how much of each."""
    rows: dict[int, dict[int, float]] = {}
    for polygon in polygons:
        for index, (x, y) in enumerate(polygon):
            _add_edge(rows, polygon[index - 1][0], polygon[index - 1][1], x, y)
    for row in sorted(rows):
        yield from _row_spans(row, rows[row])


def _row_spans(row: int, steps: dict[int, float]) -> Iterator[Span]:
    """Sum the steps up from left to right."""
    columns = sorted(steps)
    cover = 0.0
    for column, after in pairwise(columns):
        cover += steps[column]
        covered = min(abs(cover), 1.0)
        if covered > NOTHING:
            yield row, column, after, covered


def _add_edge(rows: dict[int, dict[int, float]], x0: float, y0: float, x1: float, y1: float) -> None:
    """Note in each row that an edge touches by how much the cover changes right of it."""
    if y0 == y1:
        return
    sign = 1.0 if y1 > y0 else -1.0
    if y1 < y0:
        x0, y0, x1, y1 = x1, y1, x0, y0
    width, height = x1 - x0, y1 - y0
    x, y = x0, y0
    for row in range(floor(y0), ceil(y1)):
        below = row + 1.0 if row + 1.0 < y1 else y1
        after = x0 + (below - y0) / height * width  # a slope would be infinite where the height is next to nothing
        steps = rows.get(row)
        if steps is None:
            steps = rows[row] = {}
        _add_step(steps, x, after, (below - y) * sign)
        x, y = after, below


def _add_step(steps: dict[int, float], x0: float, x1: float, height: float) -> None:
    """Note the part of an edge in one row: a pixel that it crosses is covered in part, those right of it wholly."""
    low, high = (x0, x1) if x0 < x1 else (x1, x0)
    first, last = floor(low), ceil(high)
    if last - first <= 1:
        right = height * ((low + high) / 2 - first)
        steps[first] = steps.get(first, 0.0) + height - right
        steps[first + 1] = steps.get(first + 1, 0.0) + right
        return
    width = high - low
    for column in range(first, last):
        left_end, right_end = max(low, column), min(high, column + 1)
        part = (right_end - left_end) / width * height
        right = part * ((left_end + right_end) / 2 - column)
        steps[column] = steps.get(column, 0.0) + part - right
        steps[column + 1] = steps.get(column + 1, 0.0) + right
