"""The PNG: a file that any reader accepts, with the pixels that the picture asks for."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise

import pytest

from bide.errors import GraphError
from bide.picture import Picture, PictureNode
from bide.picture.layout import layout
from bide.picture.outline import flatten
from bide.picture.paint import MOST_PIXELS, colour_of
from bide.picture.style import LIGHT
from tests.picture.pictures import AGENT, ALL, LINEAR, PAUSED

Pixel = tuple[int, int, int]
PAPER = colour_of(LIGHT.paper)
EDGE = colour_of(LIGHT.edge)


@dataclass
class Image:
    """A PNG taken apart."""

    width: int
    height: int
    rows: list[bytes]
    chunks: list[bytes]

    def at(self, x: float, y: float) -> Pixel:
        row = self.rows[int(y)]
        red, green, blue = row[int(x) * 3 : int(x) * 3 + 3]
        return red, green, blue


def decoded(data: bytes) -> Image:
    """Read a PNG as the standard says: signature, chunks with their sums, rows behind a filter byte."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    kinds: list[bytes] = []
    packed = b""
    header = b""
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + body), f"{kind!r} has a wrong sum"
        kinds.append(kind)
        header = body if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", header)
    assert (depth, colour, compression, filtering, interlace) == (8, 2, 0, 0, 0)
    raw = zlib.decompress(packed)
    assert len(raw) == height * (1 + width * 3)
    rows = [raw[start : start + 1 + width * 3] for start in range(0, len(raw), 1 + width * 3)]
    assert {row[0] for row in rows} == {0}
    return Image(width, height, [row[1:] for row in rows], kinds)


@pytest.mark.parametrize("name", ALL)
def test_png_can_be_decoded_and_has_the_size_of_the_drawing(name):
    drawing = layout(ALL[name])

    image = decoded(ALL[name].draw_png(1.0))

    assert (image.width, image.height) == (drawing.width, drawing.height)
    assert image.chunks == [b"IHDR", b"pHYs", b"IDAT", b"IEND"]


@pytest.mark.parametrize("scale", [0.5, 1, 1.5, 2.0, 3])
def test_scale_makes_it_larger(scale):
    drawing = layout(AGENT)

    image = decoded(AGENT.draw_png(scale))

    assert image.width == int(drawing.width * scale)
    assert image.height == int(drawing.height * scale)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "graph.png"])
def test_scale_that_is_no_size_is_refused(scale):
    with pytest.raises(GraphError, match=r"scale.*output_file_path"):
        AGENT.draw_png(scale)


def test_picture_that_would_be_too_large_is_drawn_smaller():
    image = decoded(AGENT.draw_png(1000.0))

    assert 0.95 * MOST_PIXELS < image.width * image.height <= MOST_PIXELS


@pytest.mark.parametrize("mark", ["visited", "paused", "failed", "next"])
def test_marked_node_has_the_colours_of_its_mark_and_its_sign(mark):
    picture = Picture((PictureNode("a", mark=mark),), ())
    box = layout(picture).boxes[0]

    image = decoded(picture.draw_png(2.0))

    left, top = box.x * 2, box.y * 2
    assert image.at(left, top + box.height) == colour_of(LIGHT.boxes[mark].line)
    assert image.at(left + 12, top + box.height) == colour_of(LIGHT.boxes[mark].fill)
    inside = {
        image.at(left + x, top + y) for x in range(12, int(box.width)) for y in range(12, int(box.height * 2) - 12)
    }
    assert colour_of(LIGHT.boxes[mark].line) in inside, "the disc"
    assert PAPER in inside, "the sign on it"


def test_label_is_written_in_ink():
    box = next(box for box in layout(AGENT).boxes if box.node.id == "agent")

    image = decoded(AGENT.draw_png(2.0))

    inside = {
        image.at(x, y)
        for x in range(int(box.x * 2) + 8, int((box.x + box.width) * 2) - 8)
        for y in range(int(box.y * 2) + 8, int((box.y + box.height) * 2) - 8)
    }
    assert colour_of(LIGHT.boxes["node"].ink) in inside
    assert len(inside) > 10, "smooth edges have colours between"


def test_plain_edge_is_one_line_and_conditional_one_has_gaps():
    image = decoded(PAUSED.draw_png(2.0))
    lines = {(line.edge.source, line.edge.target): line for line in layout(PAUSED).lines}

    plain = [image.at(x * 2, y * 2) for x, y in column(lines["__start__", "classify"].path)]
    dashed = [image.at(x * 2, y * 2) for x, y in column(lines["approve", "classify"].path)]

    assert set(plain) == {EDGE}
    assert {EDGE, PAPER} <= set(dashed)


def column(path):
    """The points of the longest upright part of a path, a pixel apart, without its ends."""
    points = flatten(path)
    pairs = [(a, b) for a, b in pairwise(points) if a[0] == b[0]]
    (x, y), (_, to_y) = max(pairs, key=lambda pair: abs(pair[0][1] - pair[1][1]))
    low, high = sorted((y, to_y))
    return [(x, low + step) for step in range(2, int(high - low) - 1)]


def test_arrow_ends_at_its_node_with_a_head():
    image = decoded(LINEAR.draw_png(2.0))
    head = layout(LINEAR).lines[0].head

    widths = [
        sum(image.at(x, (head.y - up) * 2) == EDGE for x in range(int(head.x * 2) - 20, int(head.x * 2) + 20))
        for up in (2, 5, 8, 12)
    ]

    assert widths[0] < widths[1] < widths[2]
    assert widths[3] < widths[1], "behind the head there is only the line"


def test_corner_of_the_page_is_paper():
    image = decoded(PAUSED.draw_png())

    assert image.at(0, 0) == image.at(image.width - 1, image.height - 1) == PAPER
