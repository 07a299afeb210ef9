"""How a drawing looks: sizes and colours, in one place for SVG and PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bide.picture.layers import Spaces
from bide.picture.model import Mark

SPACES: Final = Spaces(nodes=36, lanes=22, ports=16, corner=14, widest=260, grain=2)

TEXT: Final = 14.0  # sizes of type
NOTE: Final = 11.5
CAPTION: Final = 12.0
TITLE: Final = 17.0
LINE_HEIGHT: Final = 1.3  # of the size of type

WIDEST_TEXT: Final = 190  # pixels; what is longer is broken
MOST_LINES: Final = 4
MOST_NOTE_LINES: Final = 3
WIDEST_CAPTION: Final = 130
MOST_CAPTION_LINES: Final = 2

PADDING_X: Final = 18
PADDING_Y: Final = 11
NARROWEST: Final = 68
SIGN: Final = 16  # the sign of a mark, with the space to its text beside it
SIGN_SPACE: Final = 8
CORNER: Final = 9
FRAME: Final = 18  # around a picture inside a box
HEADER: Final = 40  # above it
MARGIN: Final = 24  # around everything
LEGEND: Final = 40

ROW_GAP: Final = 40
LABEL_GAP: Final = 20
TURN: Final = 10  # the radius of corners
HEAD: Final = 9  # the length of an arrow's head
HEAD_WIDTH: Final = 8
BAR: Final = 8  # between a head and the bar where a join waits
BAR_WIDTH: Final = 30
STROKE: Final = 1.6
STRONG: Final = 2.4  # around what asks for attention
STRONG_MARKS: Final[frozenset[Mark]] = frozenset({"paused", "failed", "next"})
SIGN_STROKE: Final = 1.9
BAR_STROKE: Final = 4.0
DASH: Final = (5.0, 4.0)

PARTS_WIDTH: Final = 1100  # parts that nothing joins stand side by side up to this width
PARTS_GAP: Final = 48


@dataclass(frozen=True, slots=True)
class Look:
    """The colours of one thing: what fills it, what outlines it, and what is written on it."""

    fill: str
    line: str
    ink: str


@dataclass(frozen=True, slots=True)
class Theme:
    """All colours of a drawing; `boxes` are those of nodes, by kind or mark, `frames` those around pictures inside."""

    paper: str
    ink: str
    faint: str
    edge: str
    boxes: dict[str, Look]
    frames: tuple[Look, Look]


LIGHT: Final = Theme(
    paper="#ffffff",
    ink="#1e293b",
    faint="#5b6b82",
    edge="#64748b",
    boxes={
        "node": Look("#f5f7ff", "#8b9cc7", "#1e293b"),
        "subgraph": Look("#f5f7ff", "#8b9cc7", "#1e293b"),
        "start": Look("#334155", "#334155", "#ffffff"),
        "end": Look("#334155", "#334155", "#ffffff"),
        "visited": Look("#e3f6e9", "#2f9e5b", "#14532d"),
        "paused": Look("#fff1cc", "#d98a00", "#6b3f00"),
        "failed": Look("#fde4e4", "#d63a3a", "#7f1d1d"),
        "next": Look("#ffffff", "#2563eb", "#1e3a8a"),
    },
    frames=(Look("#f8fafc", "#c3cede", "#1e293b"), Look("#eef2f8", "#b6c3d6", "#1e293b")),
)

DARK: Final = Theme(
    paper="#10151f",
    ink="#e5e9f0",
    faint="#9fb0c7",
    edge="#8fa1ba",
    boxes={
        "node": Look("#1d2740", "#5f76ab", "#e5e9f0"),
        "subgraph": Look("#1d2740", "#5f76ab", "#e5e9f0"),
        "start": Look("#d5deea", "#d5deea", "#172033"),
        "end": Look("#d5deea", "#d5deea", "#172033"),
        "visited": Look("#123524", "#3fb873", "#c9f2d9"),
        "paused": Look("#40300a", "#f0a928", "#ffe9b8"),
        "failed": Look("#451a1d", "#f06a6a", "#ffd7d7"),
        "next": Look("#10151f", "#6d9dff", "#cfe0ff"),
    },
    frames=(Look("#161d2b", "#35445e", "#e5e9f0"), Look("#1b2435", "#3d4e6b", "#e5e9f0")),
)

# The sign of a mark, on a disc of 16 pixels: strokes as in `glyphs`, but in pixels from the middle, y downwards.
SIGNS: Final[dict[Mark, tuple[tuple[tuple[float, float], ...], ...]]] = {
    "visited": (((-3.6, 0.3), (-1.1, 2.9), (3.7, -2.7)),),
    "paused": (((-2.2, -3.1), (-2.2, 3.1)), ((2.2, -3.1), (2.2, 3.1))),
    "failed": (((-2.7, -2.7), (2.7, 2.7)), ((2.7, -2.7), (-2.7, 2.7))),
    "next": (((-3.4, 0.0), (3.2, 0.0)), ((0.5, -2.9), (3.4, 0.0), (0.5, 2.9))),
}

MARK_ORDER: Final[tuple[Mark, ...]] = ("visited", "next", "paused", "failed")


def look_of(kind: str, mark: Mark) -> str:
    """Return the name of the look of a node: its mark counts more than its kind."""
    return mark or kind
