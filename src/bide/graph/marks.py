"""Whether an object is still what it was when it was last written down, told without writing it down again.

Nodes are handed the objects of the state themselves, and may change them. So an element of a list counts as unchanged
only if nothing of it can have changed unseen: it is a plain value, or a message that is made of plain values and empty
containers. Everything else is encoded again, and its bytes are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter, is_
from typing import Any

from bide.messages import Message

Mark = tuple[Any, ...] | None

_FIXED = frozenset({str, int, float, bool, bytes, type(None)})


def marks_of(values: Sequence[Any]) -> list[Mark]:
    """Return a mark for each value: what it is made of, or None if that can change unseen."""
    return [_mark_of(value) for value in values]


def is_same(before: Mark, now: Mark) -> bool:
    """Whether a value is certainly what it was when it was marked before."""
    return before is not None and now is not None and len(now) == len(before) and all(map(is_, now, before))


def _mark_of(value: Any) -> Mark:
    kind: Any = type(value)
    if kind in _FIXED:
        return (value,)
    take_apart = _taker(kind)
    if take_apart is None:
        return None
    parts = (value, *take_apart(value))
    for part in parts[1:]:
        if type(part) not in _FIXED and part:
            return None
    return parts


@lru_cache(maxsize=256)
def _taker(kind: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    if issubclass(kind, Message) and kind.__module__ == Message.__module__:
        names = [field.name for field in fields(kind)]
        take: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
        return take
    if kind.__module__.startswith("langchain_core.messages"):
        return _parts_of_theirs
    return None


def _parts_of_theirs(message: Any) -> tuple[Any, ...]:
    # Fields that LangChain does not know are kept beside the others, and are stored too.
    return (*message.__dict__.values(), message.__pydantic_extra__, message.__pydantic_private__)
