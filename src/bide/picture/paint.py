"""A drawing as a PNG: painted here, with our own font, so that no other program and no server is needed."""

from __future__ import annotations

from math import floor, isfinite, sqrt

from bide.errors import GraphError
from bide.picture import style
from bide.picture.canvas import Canvas, Colour
from bide.picture.drawing import Box, Caption, Drawing, Line, Path
from bide.picture.font import draw_text
from bide.picture.layout import layout
from bide.picture.model import Picture
from bide.picture.outline import circle, dashes, flatten, rounded, same_way, stroke
from bide.picture.png import encode
from bide.picture.shapes import Disc, bar_of, disc_of, head_of, header_of, subgraph_bars
from bide.picture.style import Look
from bide.picture.text import width_of

MOST_PIXELS = 16_000_000
PIXELS_PER_METRE = 3780  # at scale 1: 96 to the inch
THEME = style.LIGHT  # a PNG cannot know where it is shown


def png_of(picture: Picture, scale: float) -> bytes:
    """Return a picture as a PNG."""
    if not (isinstance(scale, int | float) and isfinite(scale) and scale > 0):
        raise GraphError(
            f"A picture cannot be drawn at scale {scale!r}. Give a number above 0, 2.0 is usual; "
            "a file is named with output_file_path=…"
        )
    drawing = layout(picture)
    painter = Painter(drawing, min(scale, sqrt(MOST_PIXELS / (drawing.width * drawing.height))))
    painter.paint(drawing)
    canvas = painter.canvas
    return encode(
        canvas.width, canvas.height, canvas.pixels, pixels_per_metre=max(1, round(PIXELS_PER_METRE * painter.scale))
    )


def colour_of(text: str) -> Colour:
    """Return the red, green and blue of a colour such as `#1e293b`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


class Painter:
    """Paints the parts of a drawing on a canvas, in the order in which the SVG has them."""

    def __init__(self, drawing: Drawing, scale: float) -> None:
        self.scale = scale
        width, height = max(1, floor(drawing.width * scale)), max(1, floor(drawing.height * scale))
        self.canvas = Canvas(width, height, colour_of(THEME.paper))

    def paint(self, drawing: Drawing) -> None:
        """Frames below, then edges, then nodes."""
        if drawing.title is not None:
            self._caption(drawing.title, THEME.ink, style.TITLE, is_bold=True)
        for depth in range(1 + max((box.depth for box in drawing.boxes), default=0)):
            boxes = [box for box in drawing.boxes if box.depth == depth]
            for box in boxes:
                if box.is_open:
                    self._frame(box)
            for line in drawing.lines:
                if len(line.parent) == depth:
                    self._line(line)
            for box in boxes:
                if not box.is_open:
                    self._node(box)
        for mark, x, y in drawing.legend:
            self._disc(Disc(mark, x + style.SIGN / 2, y))
            self._words(mark, x + style.SIGN + style.SIGN_SPACE, y, style.CAPTION, THEME.faint)

    def _frame(self, box: Box) -> None:
        frame = THEME.frames[box.depth % 2]
        line = THEME.boxes[box.node.mark].line if box.node.mark else frame.line
        self._rect(box, Look(frame.fill, line, frame.ink), style.CORNER + 3)
        self._header(box, frame.ink, THEME.faint)

    def _node(self, box: Box) -> None:
        look = THEME.boxes[style.look_of(box.node.kind, box.node.mark)]
        self._rect(box, look, box.height / 2 if box.node.kind in ("start", "end") else style.CORNER)
        for path in subgraph_bars(box):
            self._stroke(path, style.STROKE, look.line)
        self._header(box, look.ink, look.ink)

    def _rect(self, box: Box, look: Look, radius: float) -> None:
        """An outline, half of it inside and half outside, and what it holds."""
        half = (style.STRONG if box.node.mark in style.STRONG_MARKS else style.STROKE) / 2
        for grow, colour in ((half, look.line), (-half, look.fill)):
            x, y, width, height = box.x - grow, box.y - grow, box.width + 2 * grow, box.height + 2 * grow
            sizes = (number * self.scale for number in (x, y, width, height, radius + grow))
            self.canvas.fill([rounded(*sizes)], colour_of(colour))

    def _header(self, box: Box, ink: str, faint: str) -> None:
        disc, words = header_of(box)
        if disc is not None:
            self._disc(disc)
        for line, x, y, size in words:
            self._words(line, x, y, size, faint if size == style.NOTE else ink)

    def _line(self, line: Line) -> None:
        self._stroke(line.path, style.STROKE, THEME.edge, is_dashed=line.edge.is_conditional)
        self.canvas.fill([same_way(flatten(head_of(line.head), self.scale))], colour_of(THEME.edge))
        if line.edge.is_join:
            self._stroke(bar_of(line.head), style.BAR_STROKE, THEME.edge, is_round=True)
        if line.caption is not None:
            depth = len(line.parent)
            ground = THEME.frames[(depth - 1) % 2].fill if depth else THEME.paper
            caption = line.caption
            x, y = caption.x - caption.width / 2, caption.y - caption.height / 2
            sizes = (number * self.scale for number in (x, y, caption.width, caption.height, 4.0))
            self.canvas.fill([rounded(*sizes)], colour_of(ground))
            self._caption(caption, THEME.faint, style.CAPTION)

    def _disc(self, disc: Disc) -> None:
        place = (disc.x * self.scale, disc.y * self.scale, style.SIGN / 2 * self.scale)
        self.canvas.fill([circle(*place)], colour_of(THEME.boxes[disc.mark].line))
        for path in disc_of(disc):
            self._stroke(path, style.SIGN_STROKE, THEME.paper, is_round=True)

    def _stroke(
        self, path: Path, width: float, colour: str, *, is_round: bool = False, is_dashed: bool = False
    ) -> None:
        points = flatten(path, self.scale)
        pieces = dashes(points, style.DASH[0] * self.scale, style.DASH[1] * self.scale) if is_dashed else [points]
        for piece in pieces:
            self.canvas.fill(stroke(piece, width * self.scale, is_round=is_round), colour_of(colour))

    def _caption(self, caption: Caption, colour: str, size: float, *, is_bold: bool = False) -> None:
        height = size * style.LINE_HEIGHT
        y = caption.y - (len(caption.lines) - 1) * height / 2
        for index, line in enumerate(caption.lines):
            x = caption.x - width_of(line, size) / 2
            self._words(line, x, y + index * height, size, colour, is_bold=is_bold)

    def _words(self, line: str, x: float, y: float, size: float, colour: str, *, is_bold: bool = False) -> None:
        at = (x * self.scale, (y + size * 0.35) * self.scale)
        draw_text(self.canvas, line, at, size * self.scale, colour_of(colour), is_bold=is_bold)
