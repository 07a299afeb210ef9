"""Globs: `*` is any text, `?` any one character, and a backslash takes the character after it as it is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

LONGEST_GLOB = 500
_SPACES = re.compile(r"\s+")
_TOKEN = re.compile(r"\\.|.", re.DOTALL)


def fits_text(glob: str, text: str) -> bool:
    """Tell whether the whole text fits, however its letters are cased and its words spaced."""
    pieces = _pieces(folded(glob))
    whole = folded(text)
    return _fits(pieces, whole) or _fits(pieces, whole.strip())


def fits_exactly(glob: str, text: str) -> bool:
    """Tell whether the whole text fits, character by character."""
    return _fits(_pieces(glob), text)


def literal(text: str) -> str:
    r"""Return a glob that fits this very text: for texts from outside, in which a `*` must not mean anything.

    >>> literal("50% *off*?")
    '50% \\*off\\*\\?'
    """
    return re.sub(r"[\\*?]", r"\\\g<0>", text)


def only_text(glob: str) -> str | None:
    """Return the one text that fits, or None when there may be several."""
    tokens = _TOKEN.findall(glob)
    return None if "*" in tokens or "?" in tokens else "".join(map(_meant, tokens))


def folded(text: str) -> str:
    """Return the text as globs see it: its letters without case and composed in one way, one space between words."""
    return _SPACES.sub(" ", normalize("NFC", normalize("NFC", text).casefold()))


class _Piece(NamedTuple):
    """What stands between two stars: a text, or where it holds a `?`, a pattern without repetition."""

    length: int
    text: str
    pattern: re.Pattern[str] | None

    def at(self, text: str, position: int) -> bool:
        """Tell whether the piece stands here."""
        if self.pattern is None:
            return text.startswith(self.text, position)
        return self.pattern.match(text, position) is not None

    def after(self, text: str, position: int) -> int:
        """Return where the piece ends that begins here or later; -1 when there is none."""
        if self.pattern is None:
            start = text.find(self.text, position)
        else:
            found = self.pattern.search(text, position)
            start = -1 if found is None else found.start()
        return start if start < 0 else start + self.length


@lru_cache(maxsize=512)
def _pieces(glob: str) -> tuple[_Piece, ...]:
    between: list[list[str]] = [[]]
    for token in _TOKEN.findall(glob):
        if token == "*":
            between.append([])
        else:
            between[-1].append(token)
    return tuple(_piece(tokens) for tokens in between)


def _piece(tokens: list[str]) -> _Piece:
    text = "".join(map(_meant, tokens))
    if "?" not in tokens:
        return _Piece(len(tokens), text, None)
    pattern = "".join("." if token == "?" else re.escape(_meant(token)) for token in tokens)
    return _Piece(len(tokens), text, re.compile(pattern, re.DOTALL))


def _meant(token: str) -> str:
    return token[-1]


def _fits(pieces: tuple[_Piece, ...], text: str) -> bool:
    """Take each piece at the first place where it is found: a later one could not help the pieces after it."""
    first, last = pieces[0], pieces[-1]
    if not first.at(text, 0):
        return False
    if len(pieces) == 1:
        return first.length == len(text)
    position = first.length
    for piece in pieces[1:-1]:
        position = piece.after(text, position)
        if position < 0:
            return False
    start = len(text) - last.length
    return start >= position and last.at(text, start)
