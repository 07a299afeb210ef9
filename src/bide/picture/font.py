"""Our own font: from the ways of a pen in `glyphs` to pixels."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from bide.picture.canvas import Canvas, Colour, Span, spans
from bide.picture.drawing import Curve, Path, Point, moved
from bide.picture.glyphs import ACCENTS, GLYPHS, MISSING, MISSING_WIDE
from bide.picture.outline import Polygon, flatten, stroke
from bide.picture.text import advance, is_invisible, is_wide

PEN = 0.086  # its width, in parts of the type size
BOLD_PEN = 0.118
LIFT = 20  # how much higher an accent stands over a capital
SQUARENESS = 0.58  # of the ovals; 0.5523 would make them circles
STEP = re.compile(r"([hvc]?)(-?[\d.]+),(-?[\d.]+)")
PLACES = 4  # a letter may begin at each quarter of a pixel


def draw_text(canvas: Canvas, text: str, at: Point, size: float, colour: Colour, *, is_bold: bool = False) -> None:
    """Draw a line of text; `at` is where it begins, on its baseline."""
    x, y = at[0], round(at[1])
    for char in text:
        column = int(x // 1)
        place = int((x - column) * PLACES)
        canvas.paint(_pixels(char, round(size, 2), place, is_bold), colour, column, y)
        x += advance(char) * size / 100


@lru_cache(maxsize=2048)
def _pixels(char: str, size: float, place: int, is_bold: bool) -> tuple[Span, ...]:
    """The pixels of a character whose origin is the corner of pixel 0, 0."""
    pen = size * (BOLD_PEN if is_bold else PEN)
    polygons: list[Polygon] = []
    for path in strokes_of(char):
        points = flatten(path, size / 100)
        polygons += stroke([(x + place / PLACES, -y) for x, y in points], pen, is_round=True)
    return tuple(spans(polygons))


@lru_cache(maxsize=1024)
def strokes_of(char: str) -> tuple[Path, ...]:
    """Return the ways of the pen for a character; a crossed box for one that we do not have."""
    if char in GLYPHS:
        return _strokes(GLYPHS[char][1])
    if is_invisible(char):
        return ()
    base, *accents = list(unicodedata.normalize("NFD", char))
    if base not in GLYPHS or not all(accent in ACCENTS for accent in accents):
        return _strokes((MISSING_WIDE if is_wide(char) else MISSING)[1])
    # A dot would stand where the accent goes.
    body = "ı" if base == "i" else base
    paths = list(_strokes(GLYPHS[body][1]))
    for accent in accents:
        is_below = accent in "\u0327\u0328"
        lift = LIFT if base.isupper() and not is_below else 0
        paths += [moved(path, GLYPHS[base][0] / 2, lift) for path in _strokes(ACCENTS[accent])]
    return tuple(paths)


def _strokes(glyph: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in glyph.split("/") if part)


def _path(part: str) -> Path:
    """Read one stroke."""
    steps = [(kind, float(x), float(y)) for kind, x, y in STEP.findall(part)]
    path: list[Point | Curve] = [steps[0][1:]]
    handles: list[float] = []
    for kind, x, y in steps[1:]:
        start_x, start_y = path[-1][-2], path[-1][-1]
        if kind == "c" or handles:
            handles += [x, y]
            if len(handles) == 6:
                path.append((handles[0], handles[1], handles[2], handles[3], handles[4], handles[5]))
                handles = []
        elif kind:
            path.append(_quarter(start_x, start_y, x, y, is_flat_first=kind == "h"))
        else:
            path.append((x, y))
    return tuple(path)


def _quarter(x: float, y: float, to_x: float, to_y: float, *, is_flat_first: bool) -> Curve:
    """A quarter of an oval."""
    k = SQUARENESS
    if is_flat_first:
        return x + k * (to_x - x), y, to_x, to_y - k * (to_y - y), to_x, to_y
    return x, y + k * (to_y - y), to_x - k * (to_x - x), to_y, to_x, to_y
