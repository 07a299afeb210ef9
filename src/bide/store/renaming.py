"""Ids inside bodies: the few places where the engine itself writes them, and what stands there under another name.

A copy of a thread has ids of its own for its questions and runs. Where a body speaks of them they are replaced, byte
for byte, by others of the same length; whatever else is in it belongs to the user and stays as it is, even if it looks
like such an id. Nothing is decoded for that: what a body holds may need classes that are not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Path = tuple[int | bytes | None, ...]
"""The way to a value: the index in a list, the key in a dict, or None for each element."""

_RETURNS: Path = (3, None, 0)
_KEYS: Path = (3, None, 1)
_ASKS: Path = (b"asks", None, b"id")
_RUN: Path = (b"run",)
_WAIT: Path = (b"wait",)
_OF_WAITS = ("satisfied", "answered", "expired", "cancelled", "extended", "reassigned", "reminded", "escalated")
_PATHS: Mapping[tuple[str, str], tuple[Path, ...]] = {
    ("journal", "result"): (_RETURNS,),
    ("events", "run.waiting"): (_ASKS,),
    ("events", "run.replaced"): (_ASKS, _RUN),
    **{("events", f"wait.{kind}"): (_WAIT,) for kind in _OF_WAITS},
}
"""For each table and kind of row: where its body names questions and runs."""


def renamed(table: str, row: Mapping[str, Any], body: bytes, ids: Mapping[str, str]) -> bytes:
    """Return a body of a row with new ids where it speaks of old ones; nothing in it moves by that."""
    paths = _PATHS.get((table, row.get("kind", "")), ()) if ids else ()
    changed = bytearray(body)
    try:
        for path in paths:
            for at in _places(body, 1, path):  # behind the version of the format
                begin, size, _ = _part(body, at)
                new = ids.get(body[begin : begin + size].decode("ascii", "replace"), "").encode()
                if len(new) == size:
                    changed[begin : begin + size] = new
    except IndexError:
        return body  # it ends too early: whoever reads it tells
    return bytes(changed)


def returned_keys(body: bytes) -> list[str]:
    """Name the keys of the questions that a node returned, out of its result: they are asked when its step is over."""
    try:
        parts = [_part(body, at) for at in _places(body, 1, _KEYS)]
    except IndexError:
        return []
    return [body[begin : begin + size].decode("utf-8", "replace") for begin, size, _ in parts]


def _places(body: bytes, at: int, path: Path) -> Iterator[int]:
    if not path:
        yield at
        return
    for name, place in _children(body, at):
        if path[0] is None or path[0] == name:
            yield from _places(body, place, path[1:])


def _children(body: bytes, at: int) -> Iterator[tuple[int | bytes, int]]:
    """Name what a list or a dict holds, and say where it is."""
    is_dict = body[at] >> 4 == 0x8 or body[at] in (0xDE, 0xDF)
    at, _, count = _part(body, at)
    for index in range(count // 2 if is_dict else count):
        name: int | bytes = index
        if is_dict:
            begin, size, _ = _part(body, at)
            name = body[begin : begin + size]
            at = _behind(body, at)
        yield name, at
        at = _behind(body, at)


# ── MessagePack, as far as it takes to step over a value ───────────────────────────────────────────────────────────


class _Part(NamedTuple):
    begin: int
    """Where its own bytes begin, behind its tag and its length."""
    size: int
    """How many of them there are."""
    children: int
    """How many values follow that are part of it."""


_FIXED: Final[Mapping[int, int]] = {
    **{0xC0: 0, 0xC1: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8},
    **{0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8},
    **{0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17},
}
"""Tags of values whose size is known."""
_SIZED: Final[Mapping[int, tuple[int, int]]] = {
    **{0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)},
    **{0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)},
}
"""Tags before a size: how many bytes that takes, and how many more there are than it says."""
_COUNTED: Final[Mapping[int, tuple[int, int]]] = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Tags before a count: how many bytes that takes, and how many values each one is."""


def _part(body: bytes, at: int) -> _Part:
    tag, begin = body[at], at + 1
    if tag < 0x80 or tag >= 0xE0:
        return _Part(begin, 0, 0)
    if tag < 0xA0:
        return _Part(begin, 0, (tag & 15) * (2 if tag < 0x90 else 1))
    if tag < 0xC0:
        return _Part(begin, tag & 31, 0)
    if tag in _FIXED:
        return _Part(begin, _FIXED[tag], 0)
    width, more = _SIZED[tag] if tag in _SIZED else _COUNTED[tag]
    number = int.from_bytes(body[begin : begin + width])
    return _Part(begin + width, number + more, 0) if tag in _SIZED else _Part(begin + width, 0, number * more)


def _behind(body: bytes, at: int) -> int:
    """Return where a value ends, with all that is in it."""
    left = 1
    while left:
        begin, size, count = _part(body, at)
        at = begin + size
        left += count - 1
    return at
