"""Which trace the code that runs right now belongs to: lines of the log that it causes name it.

A thread rests for days between what made it ready and whoever drives it; the two meet in its log alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

TRACE = "trace"
"""Among the words of a line: the trace that it was written in, as the header `traceparent` has it."""
_parent: ContextVar[str | None] = ContextVar("bide_trace", default=None)


@contextmanager
def within(parent: str | None) -> Iterator[None]:
    """Let lines that are caused inside name this trace."""
    before = _parent.set(parent)
    try:
        yield
    finally:
        _parent.reset(before)


def named(body: dict[str, Any]) -> dict[str, Any]:
    """Return the words of a line with the trace that it is written in, if there is one."""
    parent = _parent.get()
    return body if parent is None else {**body, TRACE: parent}


def in_own_trace(work: Callable[..., T]) -> Callable[..., T]:
    """Let work that another thread may do for us belong to our trace, and not to that one's."""
    return work if _parent.get() is None else partial(copy_context().run, work)
