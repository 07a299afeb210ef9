"""Lists that grow: each change is written as a splice on what was there, and the whole only now and then.

A conversation of a thousand messages is written a thousand times. Writing it whole each time costs the square of what
was said; here a row of the channel log holds what changed. A whole list is written again when reading it back, row by
row, would cost more than twice the list itself: so bytes written and bytes read both stay within a small multiple of
what was said, whether elements are added, replaced or taken out. Once there are many rows, they are put together in
one, compressed; each can still be read up to any checkpoint.

Elements are bytes; what they mean is the codec's business.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import Any, NamedTuple

from ormsgpack import packb, unpackb

from bide.errors import CorruptDataError
from bide.store.frames import Spans, extended

OPAQUE, WHOLE, SPLICED, GROUPED = range(4)
"""What a row of the channel log holds: some value; a list; changes to the list that the rows before it make up; rows of
these kinds, from its own checkpoint on."""

ROW_COST = 48
"""What a row costs beside its elements, in bytes."""
MOST_SPANS = 8
SPAN_COST = 2048
"""A list that was forked often is written whole when it is small beside the look-ups, one for each span: after so many
forks, or one for every so many bytes of it. So whoever forks at every turn writes no square either."""
MOST_LOOSE = 64
"""So many rows of a list are put together in one."""
MOST_COMPARISONS = 250_000
"""Where two lists differ in more than this, the whole difference is written without looking for what they share."""
LARGEST_GROUP = 1024 * 1024
"""No group of ours unpacks to more bytes than this: rows that are large by themselves stay by themselves."""

_BYTES = frozenset({bytes})

LARGEST_ROW = 64 * 1024
"""Nor is a group larger than this when it is stored: no limit for values is ever in its way."""

Edit = tuple[int, int, list[bytes]]
"""From where, how many elements go, and those that come in their place."""


class LogRow(NamedTuple):
    """A row for the channel log."""

    channel: str
    seq: int
    """The checkpoint that the log knows it under."""
    body: bytes
    until: int | None = None
    """If given: the rows from `seq` until this one are in it, and give way to it."""
    live: int = 0
    """How many bytes the whole value has, of which this row may be a part."""


class Logged(NamedTuple):
    """A list in the channel log."""

    spans: Spans
    elements: list[bytes]
    cost: int
    """How many bytes must be read for it."""
    loose: tuple[tuple[int, bytes], ...]
    """Its newest rows that are not in a group."""


def pack_value(body: bytes) -> bytes:
    """Write a value that is no list as a row's body."""
    return packb([OPAQUE, body])


def is_whole(body: bytes) -> bool:
    """Whether a row stands for itself, and builds on none before it."""
    return body[1] in (OPAQUE, WHOLE)  # the first byte begins a pair, the second is its kind


def write_list(
    channel: str, before: Logged | None, elements: list[bytes], start: int, seq: int
) -> tuple[list[LogRow], Logged]:
    """Return the rows to write for a list that was, in the log, as it was `before`; and where the list is then."""
    live = _size(elements)
    if before is not None:
        edits = edits_between(before.elements, elements)
        if not edits:
            return [], before
        body = packb([SPLICED, edits])
        spans, cost = extended(before.spans, start, seq), before.cost + ROW_COST + len(body)
        if cost <= 2 * live and len(spans) <= max(MOST_SPANS, live // SPAN_COST):
            # Rows of another span are shared with another branch, which may have put them together.
            loose = before.loose if len(spans) == len(before.spans) else ()
            rows, loose = _put_together(channel, loose)
            return [*rows, LogRow(channel, seq, body, live=live)], Logged(spans, elements, cost, (*loose, (seq, body)))
    body = packb([WHOLE, elements])
    return [LogRow(channel, seq, body, live=live)], Logged(((seq, seq),), elements, live, ((seq, body),))


def _size(elements: list[bytes]) -> int:
    return ROW_COST + sum(map(len, elements))


def _put_together(
    channel: str, loose: tuple[tuple[int, bytes], ...]
) -> tuple[list[LogRow], tuple[tuple[int, bytes], ...]]:
    if len(loose) < MOST_LOOSE:
        return [], loose
    if sum(len(body) + ROW_COST for _, body in loose) > LARGEST_GROUP:
        return [], ()
    body = packb([GROUPED, zlib.compress(packb(loose), 6)])
    if len(body) > LARGEST_ROW:
        return [], ()
    return [LogRow(channel, loose[0][0], body, loose[-1][0])], ()


def read_rows(spans: Spans, rows: Sequence[tuple[int, bytes]]) -> bytes | Logged:
    """Put the rows of a value together: a list, or the bytes of some other value."""
    try:
        return _read_rows(spans, rows)
    except (ValueError, TypeError, IndexError, zlib.error) as problem:
        raise CorruptDataError(f"Its rows in the channel log do not fit together ({problem}).") from problem


def _read_rows(spans: Spans, rows: Sequence[tuple[int, bytes]]) -> bytes | Logged:
    if not rows:
        raise ValueError("they are gone")
    elements: list[bytes] | None = None
    cost = 0
    for body in _single_rows(rows, spans):
        kind, held = unpackb(body)
        if kind == OPAQUE and len(rows) == 1 and type(held) is bytes:  # bytes(2**40) would be a terabyte of zeros
            return held
        if kind == WHOLE and elements is None:
            elements = list(held)
            cost = _size(elements)
        elif kind == SPLICED and elements is not None:
            _apply(elements, held)
            cost += ROW_COST + len(body)
        else:
            raise ValueError("one of them does not build on the one before")
    if elements is None:
        raise ValueError("they are gone")
    if not _BYTES.issuperset(map(type, elements)):
        raise ValueError("one of them holds something else")
    return Logged(spans, elements, cost, _loose(rows, spans[-1]))


def _single_rows(rows: Iterable[tuple[int, bytes]], spans: Spans) -> Iterator[bytes]:
    """Give each row by itself, those in groups as far as they lie in a span."""
    for seq, body in rows:
        if body[1] != GROUPED:
            yield body
            continue
        last = next((last for first, last in spans if first <= seq <= last), 0)
        for inner_seq, inner in unpack_group(body):
            if inner_seq <= last:
                yield inner


def unpack_group(body: bytes) -> list[tuple[int, bytes]]:
    """Return the rows that were put together in one."""
    unpacking = zlib.decompressobj()
    packed = unpacking.decompress(unpackb(body)[1], LARGEST_GROUP)
    if unpacking.unconsumed_tail:
        raise ValueError("a group of them is larger than any that was written")
    return [(seq, inner) for seq, inner in unpackb(packed)]


def _loose(rows: Sequence[tuple[int, bytes]], span: tuple[int, int]) -> tuple[tuple[int, bytes], ...]:
    """Return the rows at the end of the last span that are in no group."""
    loose: list[tuple[int, bytes]] = []
    for seq, body in reversed(rows):
        if seq < span[0] or body[1] == GROUPED:
            break
        loose.append((seq, body))
    return tuple(reversed(loose))


def _apply(elements: list[bytes], edits: list[Edit]) -> None:
    # Backwards, so that each position still means what it meant when it was written.
    for position, gone, come in reversed(edits):
        if position + gone > len(elements):
            raise ValueError("one of them is missing")
        elements[position : position + gone] = come


def edits_between(before: Sequence[bytes], after: Sequence[bytes]) -> list[Edit]:
    """Return what must be done to make one list of another, in the positions of the first."""
    head = _alike(before, after)
    most = min(len(before), len(after)) - head
    tail = _alike(before[: -most - 1 : -1], after[: -most - 1 : -1]) if most else 0
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return []
    if not old or not new or len(old) * len(new) > MOST_COMPARISONS:
        return [(head, len(old), list(new))]
    from difflib import SequenceMatcher  # rarely needed: most lists only grow

    matcher: SequenceMatcher[Any] = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (head + first, last - first, list(new[a:b]))
        for kind, first, last, a, b in matcher.get_opcodes()
        if kind != "equal"
    ]


def _alike(left: Iterable[bytes], right: Iterable[bytes]) -> int:
    """Count how many elements are the same from the beginning on."""
    count = 0
    for same in map(eq, left, right):
        if not same:
            break
        count += 1
    return count
