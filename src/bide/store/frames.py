"""The body of a checkpoint: where each value of the state is. What the values mean is not the store's business.

Small values travel in the body itself, or in that of its *base*, an earlier checkpoint; large ones are in the channel
log, and the body says in which rows. So a step costs what it touches, and a reader needs two checkpoints at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ormsgpack import packb, unpackb

LAYOUT = 2

Spans = tuple[tuple[int, int], ...]
"""The rows of the channel log that make up one value: from one checkpoint to another, span after span."""


class Frame(NamedTuple):
    """What a checkpoint's body holds."""

    start: int
    """Where its branch of history begins: every checkpoint from there up to this one is an ancestor of it."""
    base: int | None
    """The checkpoint that holds the rest of its small values, if another one does."""
    small: Mapping[str, bytes | None]
    """Small values: all of them, or those that changed since the base; None for one that is gone."""
    logged: Mapping[str, Spans]
    """Where in the channel log each large value is."""
    rest: Any
    """Whatever else the graph writes down: plain data."""


def pack_frame(frame: Frame) -> bytes:
    """Write a frame as bytes."""
    return packb([LAYOUT, frame.start, frame.base, frame.small, frame.logged, frame.rest])


def unpack_frame(body: bytes) -> Frame:
    """Read a frame; raise ValueError if these bytes are none."""
    layout, *parts = unpackb(body)
    if layout != LAYOUT or len(parts) != 5:
        raise ValueError(f"its layout {layout!r} is unknown")
    start, base, small, logged, rest = parts
    if not (_is_number(start) and (base is None or _is_number(base)) and type(small) is dict):
        raise ValueError("it names no checkpoint, or holds no values")
    return Frame(start, base, small, {key: _spans(spans) for key, spans in logged.items()}, rest)


def _spans(spans: list[list[int]]) -> Spans:
    if not spans or not all(map(_is_number, (number for span in spans for number in span))):
        raise ValueError("it does not say where a large value is")
    return tuple((first, last) for first, last in spans)


def _is_number(found: object) -> bool:
    """Whether this can be the number of a checkpoint: a database takes no larger ones."""
    return type(found) is int and 0 <= found < 1 << 63


def extended(spans: Spans, start: int, seq: int) -> Spans:
    """Add a row to the spans of a value: to the last one, if no other branch can have written in between."""
    first, last = spans[-1]
    if last >= start:
        return (*spans[:-1], (first, seq))
    return (*spans, (seq, seq))
