"""Texts that conditions and facts may hold: names, labels and ids."""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 200
_CONTROLS = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_name(value: object, longest: int = LONGEST_NAME) -> bool:
    """Tell whether this can name something: a text that is not blank, is short, and has no control characters."""
    return isinstance(value, str) and bool(value.strip()) and is_line(value, longest)


def is_line(value: object, longest: int) -> bool:
    """Tell whether this is a text of one line, maybe empty, that every database can hold."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return (value.isascii() and value.isprintable()) or not any(unicodedata.category(c) in _CONTROLS for c in value)


def lower_ascii(text: str) -> str:
    """Return the text with A to Z in lower case and all else as it is.

    `str.lower` also makes a k of the Kelvin sign: two addresses would be equal that no mail server takes for the same.
    """
    return text if text.islower() and text.isascii() else text.translate(_LOWER)


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
