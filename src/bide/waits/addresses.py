"""Reads the addresses of a mail's headers, and reads nothing into what can be read in two ways.

`email.utils` of the standard library takes `ann@example.org <evil@example.net>` for Ann's address. A display name is
whatever its sender likes, so only what is plainly an address counts: a name without an @ or in quotation marks, then
one address in angle brackets; or an address alone.
"""

from __future__ import annotations

import re

from bide.waits.texts import lower_ascii

LONGEST_HEADER = 10_000
MOST_ADDRESSES = 1000
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_COMMENT = re.compile(r"\((?:\\.|[^()\\])*\)", re.DOTALL)
_ADDRESS = re.compile(r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]+@[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]+")
_IN_BRACKETS = re.compile(r"([^@<>,;:]*)<\s*([^<>\s]+)\s*>\s*")
_PLACEHOLDER = "\x00"
"""Stands for a quoted text. It cannot be in a header; one that holds it is not read."""


def addresses_of(header: object) -> tuple[str, ...]:
    """Return the bare addresses of a header, or of a list of headers, in lower case; none of what is unclear."""
    if isinstance(header, list | tuple):
        return tuple(address for one in header[:MOST_ADDRESSES] for address in addresses_of_text(one))
    return addresses_of_text(header)


def addresses_of_text(header: object) -> tuple[str, ...]:
    """Return the bare addresses of one header."""
    if not isinstance(header, str) or len(header) > LONGEST_HEADER or _PLACEHOLDER in header:
        return ()
    without_quotes = _QUOTED.sub(_PLACEHOLDER, header)
    bare = _COMMENT.sub(" ", without_quotes)
    if '"' in bare or "(" in bare or ")" in bare:
        return ()  # a quotation mark or a bracket without its other half: everything after it is in doubt
    found = (_address(part) for part in bare.split(",")[:MOST_ADDRESSES])
    return tuple(address for address in found if address is not None)


def only_address_of(header: object) -> str | None:
    """Return the one address of a header, or None: a mail with two senders has none that could be trusted."""
    parts = header if isinstance(header, list | tuple) else [header]
    if len(parts) != 1 or not isinstance(parts[0], str) or "," in _QUOTED.sub("", parts[0]):
        return None
    found = addresses_of_text(parts[0])
    return found[0] if len(found) == 1 else None


def _address(part: str) -> str | None:
    bracketed = _IN_BRACKETS.fullmatch(part)
    address = bracketed[2] if bracketed else part.strip()
    return lower_ascii(address) if _ADDRESS.fullmatch(address) else None
