"""Waiting for what another thread or process brings about, and time that passes only when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic

SECONDS = 60.0
"""How long a test waits before it gives up."""


class Passing:
    """Stands in place of `bide.clock.elapsed`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def holds_at_last(condition: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Look again and again until a condition holds; False if it never does."""
    until, nap = monotonic() + seconds, Event()
    while monotonic() < until:
        if condition():
            return True
        nap.wait(0.005)
    return False
