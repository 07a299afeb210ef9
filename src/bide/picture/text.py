"""Words in a picture: what may be written, how wide it is, and where a long label is broken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from bide.picture.glyphs import GLYPHS, MISSING, MISSING_WIDE

ELLIPSIS = "…"
DOTS = "..."  # the same in a terminal

Measure = Callable[[str], float]

# A name is broken after a space, and after what joins the words of an identifier or a path.
_PIECES = re.compile(r"\S+?(?:[_\-./:,;]+|(?=\s|$))|\S+|\s+")


def clean(text: str) -> str:
    """Return the text with what no file can hold or show taken out: control characters and lone surrogates."""
    return "".join("�" if _is_unprintable(char) else char for char in text)


def one_line(text: str) -> str:
    """Return the text cleaned, with every run of white space as one space."""
    return clean(" ".join(text.split()))


def _is_unprintable(char: str) -> bool:
    return char not in "\t\n\r" and (unicodedata.category(char) in ("Cc", "Cs") or char in "\ufffe\uffff")


@lru_cache(maxsize=4096)
def advance(char: str) -> int:
    """Return how far a character moves on, in hundredths of the type size."""
    if char in GLYPHS:
        return GLYPHS[char][0]
    if is_invisible(char):
        return 0
    base = base_of(char)
    if base in GLYPHS:
        return GLYPHS[base][0]
    return MISSING_WIDE[0] if is_wide(char) else MISSING[0]


def is_invisible(char: str) -> bool:
    """Whether a character takes no room: it changes the one before, or joins two."""
    return unicodedata.category(char) in ("Mn", "Me", "Cf") or "\ufe00" <= char <= "\ufe0f"


def is_wide(char: str) -> bool:
    """Whether a character is as wide as two letters."""
    return unicodedata.east_asian_width(char) in ("W", "F")


def base_of(char: str) -> str:
    """Return the letter under an accent, or the character itself."""
    return unicodedata.normalize("NFD", char)[0]


def width_of(text: str, size: float) -> float:
    """Return how wide a line of text is."""
    return sum(map(advance, text)) * size / 100


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a line of text takes."""
    return sum(0 if is_invisible(char) else 2 if is_wide(char) else 1 for char in text)


def wrap(text: str, limit: float, lines: int, size: float = 0.0) -> tuple[str, ...]:
    """Break a text into at most so many lines no wider than the limit; dots stand for what is left out.

    With a type size the limit is in pixels; without one it is in columns of a terminal.
    """
    measure: Measure = (lambda line: width_of(line, size)) if size else columns_of
    text = one_line(text)[: int(limit) * (lines + 1)]  # no letter is narrower than 1: the rest is out of sight anyway
    broken: list[str] = []
    for piece in _PIECES.findall(text):
        _append(broken, piece, limit, measure)
        if len(broken) > lines:
            break
    kept = [line.rstrip() for line in broken[:lines]]
    if len(broken) > lines:
        kept[-1] = _shortened(kept[-1], limit, measure, ELLIPSIS if size else DOTS)
    return tuple(kept)


def _append(lines: list[str], piece: str, limit: float, measure: Measure) -> None:
    """Put a piece at the end of the last line, or on lines of its own."""
    if lines and measure(lines[-1] + piece.rstrip()) <= limit:
        lines[-1] += piece
        return
    if piece.isspace():
        return
    while piece:
        fits = 1
        while fits < len(piece) and measure(piece[: fits + 1]) <= limit:
            fits += 1
        lines.append(piece[:fits])
        piece = piece[fits:]


def _shortened(line: str, limit: float, measure: Measure, dots: str) -> str:
    while line and measure(line + dots) > limit:
        line = line[:-1]
    return line.rstrip() + dots
