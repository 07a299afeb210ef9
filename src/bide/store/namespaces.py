"""Namespaces as bytes: in the order of their tuples, each with all that lies under it in one range.

A segment is its UTF-8 and a zero byte, which sorts before everything else; a zero or a one inside a segment is written
as two bytes. So the bytes of `("users", "1")` begin those of `("users", "1", "notes")`, and never those of
`("users", "10")`, whatever the segments hold: no separator can be forged, and no wildcard of SQL is involved. A
database compares them byte by byte, which is the order of Python's tuples, and needs no collation for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bide.errors import CorruptDataError
from bide.store.item_errors import InvalidNamespaceError

Namespace = tuple[str, ...]

_END = b"\x00"
_BEYOND = b"\xff"
"""No UTF-8 holds this byte: what comes after a prefix is always less."""
_EXAMPLE = "('users', '42')"


class Range(NamedTuple):
    """The bytes from `since` on and before `until`."""

    since: bytes
    until: bytes


def encode_namespace(namespace: Sequence[str]) -> bytes:
    """Return the namespace as bytes; for those that were checked."""
    return b"".join(
        encode_text(segment).replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01") + _END for segment in namespace
    )


def decode_namespace(stored: object) -> Namespace:
    """Return the namespace that was encoded."""
    try:
        *segments, rest = stored.split(_END)  # type: ignore[attr-defined]  # damaged rows hold anything
        if rest or not segments:
            raise ValueError("it does not end where a segment ends")
        return tuple(
            decode_text(segment.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")) for segment in segments
        )
    except (ValueError, TypeError, AttributeError) as problem:
        raise CorruptDataError(
            f"The long-term store holds a namespace that is damaged: {stored!r} ({problem}). Restore the database from "
            f"a backup."
        ) from problem


def encode_text(text: str) -> bytes:
    """Return the text as bytes that sort as it does; lone surrogates too, which UTF-8 proper has no bytes for."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(stored: bytes) -> str:
    """Return the text that was encoded."""
    return stored.decode("utf-8", "surrogatepass")


def under(prefix: Sequence[str]) -> Range:
    """Return where the prefix and everything under it lies; the empty prefix is above everything."""
    since = encode_namespace(prefix)
    return Range(since, since + _BEYOND)


def after(stored: bytes) -> bytes:
    """Return the least bytes that are greater than these."""
    return stored + _END


def check_namespace(namespace: object, *, what: str = "namespace") -> Namespace:
    """Return the namespace of an item: one segment at least."""
    checked = check_prefix(namespace, what=what)
    if not checked:
        raise InvalidNamespaceError(
            f"The {what} is empty. An item lies under one segment at least, for example {_EXAMPLE}."
        )
    return checked


def check_prefix(namespace: object, *, what: str = "namespace prefix") -> Namespace:
    """Return the beginning of a namespace, which may be empty."""
    if isinstance(namespace, str):
        raise InvalidNamespaceError(
            f"The {what} {namespace!r} is one text, and would be read letter by letter. Write a tuple: "
            f"({namespace!r},)."
        )
    if not isinstance(namespace, tuple | list):
        raise InvalidNamespaceError(
            f"The {what} is of type {type(namespace).__name__}. Write a tuple of texts, for example {_EXAMPLE}."
        )
    for position, segment in enumerate(namespace):
        _check_segment(segment, position, namespace, what)
    return tuple(namespace)


def _check_segment(segment: object, position: int, namespace: Sequence[object], what: str) -> None:
    if not isinstance(segment, str):
        meant = tuple(str(other) for other in namespace)
        raise InvalidNamespaceError(
            f"Segment {position} of the {what} {tuple(namespace)!r} is of type {type(segment).__name__}. Segments are "
            f"texts; write {meant!r}, if that is what you mean."
        )
    if not segment:
        raise InvalidNamespaceError(
            f"Segment {position} of the {what} {tuple(namespace)!r} is empty. Leave it out, or give it a name."
        )
