"""What the code that runs right now is about: set by whoever begins something, read by whoever writes logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

About = Callable[[], Mapping[str, Any]]
"""Asked only when somebody writes a line: of a request, for one, more is known at its end than at its beginning."""

_about: ContextVar[About | None] = ContextVar("bide_about", default=None)


@contextmanager
def concerning(about: About) -> Iterator[None]:
    """Let everything that is logged inside say what it is about. Nodes, steps and their threads inherit it."""
    before = _about.set(about)
    try:
        yield
    finally:
        _about.reset(before)


def known_about() -> Mapping[str, Any]:
    """Return what is known about what happens here: the ids of a request, of a thread, of a run."""
    about = _about.get()
    return {} if about is None else about()
