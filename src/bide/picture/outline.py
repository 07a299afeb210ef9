"""Lines as polygons: curves become short straight pieces, strokes get a width, dashes are cut out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, cos, hypot, pi, sin

from bide.picture.drawing import Curve, Path, Point

Polygon = list[Point]

SHARP = 0.82  # the cosine of the turn from which on a corner is rounded instead of mitred


def flatten(path: Path, scale: float = 1.0) -> Polygon:
    """Return the points of a path, enlarged; curves in pieces so short that nobody sees corners."""
    points: Polygon = [(path[0][0] * scale, path[0][1] * scale)]
    for step in path[1:]:
        if len(step) == 2:
            points.append((step[0] * scale, step[1] * scale))
        else:
            points += _curve_points(points[-1], step, scale)
    return points


def _curve_points(start: Point, curve: Curve, scale: float) -> Iterator[Point]:
    x0, y0 = start
    x1, y1, x2, y2, x3, y3 = (number * scale for number in curve)
    length = hypot(x1 - x0, y1 - y0) + hypot(x2 - x1, y2 - y1) + hypot(x3 - x2, y3 - y2)
    pieces = max(4, min(48, ceil(length**0.5 * 1.6)))
    for piece in range(1, pieces + 1):
        t = piece / pieces
        s = 1 - t
        a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
        yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def stroke(points: Sequence[Point], width: float, *, is_round: bool) -> list[Polygon]:
    """Return polygons that cover a line of some width; all run the same way round, so that they add up."""
    points = _without_twins(points)
    if len(points) == 1:
        return [circle(*points[0], width * 0.6)] if is_round else []
    pieces = _smooth_pieces(points)
    return [_ribbon(piece, width / 2, is_round or len(pieces) > 1) for piece in pieces]


def _without_twins(points: Sequence[Point]) -> Polygon:
    kept = [points[0]]
    for point in points[1:]:
        if hypot(point[0] - kept[-1][0], point[1] - kept[-1][1]) > 1e-6:
            kept.append(point)
    return kept


def _smooth_pieces(points: Sequence[Point]) -> list[Polygon]:
    """Cut a line where it turns sharply."""
    pieces: list[Polygon] = [[points[0]]]
    for before, point, after in zip(points, points[1:], points[2:], strict=False):
        pieces[-1].append(point)
        (ax, ay), (bx, by) = _direction(before, point), _direction(point, after)
        if ax * bx + ay * by < SHARP:
            pieces.append([point])
    pieces[-1].append(points[-1])
    return pieces


def _ribbon(points: Sequence[Point], half: float, is_round: bool) -> Polygon:
    """Return the outline of a smooth line: along one side, around the end, back along the other."""
    normals = _normals(points)
    left = [(x + nx * half, y + ny * half) for (x, y), (nx, ny) in zip(points, normals, strict=True)]
    right = [(x - nx * half, y - ny * half) for (x, y), (nx, ny) in zip(points, normals, strict=True)]
    if not is_round:
        return same_way([*left, *reversed(right)])
    return same_way(
        [
            *left,
            *_half_circle(points[-1], normals[-1], half),
            *reversed(right),
            *_half_circle(points[0], (-normals[0][0], -normals[0][1]), half),
        ]
    )


def _normals(points: Sequence[Point]) -> list[Point]:
    """Return for each point which way is sideways, long enough that the line keeps its width in a bend."""
    directions = [_direction(a, b) for a, b in pairwise(points)]
    normals: list[Point] = []
    for (ax, ay), (bx, by) in zip([directions[0], *directions], [*directions, directions[-1]], strict=True):
        x, y = ax + bx, ay + by
        stretch = 2 / (x * x + y * y)
        normals.append((y * stretch, -x * stretch))
    return normals


def _direction(start: Point, end: Point) -> Point:
    x, y = end[0] - start[0], end[1] - start[1]
    length = hypot(x, y)
    return x / length, y / length


def _half_circle(middle: Point, normal: Point, radius: float) -> Iterator[Point]:
    """Turn from one side of an end to the other."""
    steps = max(4, ceil(radius * 2))
    for step in range(1, steps):
        turn = pi * step / steps
        c, s = cos(turn) * radius, sin(turn) * radius
        yield middle[0] + normal[0] * c - normal[1] * s, middle[1] + normal[1] * c + normal[0] * s


def circle(x: float, y: float, radius: float) -> Polygon:
    """Return a circle."""
    steps = max(12, ceil(radius * 3))
    turns = [2 * pi * step / steps for step in range(steps)]
    return same_way([(x + cos(turn) * radius, y + sin(turn) * radius) for turn in turns])


def rounded(x: float, y: float, width: float, height: float, radius: float) -> Polygon:
    """Return a rectangle with round corners."""
    radius = min(radius, width / 2, height / 2)
    steps = max(4, ceil(radius * 0.8))
    corners = [
        (x + width - radius, y + radius, -pi / 2),
        (x + width - radius, y + height - radius, 0.0),
        (x + radius, y + height - radius, pi / 2),
        (x + radius, y + radius, pi),
    ]
    points: Polygon = []
    for middle_x, middle_y, start in corners:
        for step in range(steps + 1):
            turn = start + pi / 2 * step / steps
            points.append((middle_x + cos(turn) * radius, middle_y + sin(turn) * radius))
    return same_way(points)


def same_way(polygon: Polygon) -> Polygon:
    """Return the polygon so that it runs round as all others do."""
    area = sum(ax * by - bx * ay for (ax, ay), (bx, by) in zip(polygon, [*polygon[1:], polygon[0]], strict=True))
    return polygon if area >= 0 else polygon[::-1]


def dashes(points: Sequence[Point], on: float, off: float) -> list[Polygon]:
    """Cut a line into dashes."""
    pieces: list[Polygon] = [[points[0]]]
    is_on, left = True, on
    for start, end in pairwise(points):
        length = hypot(end[0] - start[0], end[1] - start[1])
        done = 0.0
        while length - done > left:
            done += left
            t = done / length
            cut = (start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t)
            if is_on:
                pieces[-1].append(cut)
            else:
                pieces.append([cut])
            is_on = not is_on
            left = on if is_on else off
        left -= length - done
        if is_on:
            pieces[-1].append(end)
    return [piece for piece in pieces if len(piece) > 1]
