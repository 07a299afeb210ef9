"""What is measured of workers: round trips, how soon a wake is heard, and many who sleep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from time import perf_counter, sleep
from typing import Any

from case import metric

PATIENCE_SECONDS = 300
LOOK_SECONDS = 0.002


def until(is_so: Callable[[], bool], what: str) -> None:
    """Stay until something is so."""
    deadline = perf_counter() + PATIENCE_SECONDS
    while not is_so():
        if perf_counter() > deadline:
            raise TimeoutError(f"gave up waiting until {what}")
        sleep(LOOK_SECONDS)


def percentile(samples: Sequence[float], part: float) -> float:
    """Return the sample below which so many of all are."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def latency(wake: Callable[[Event], None]) -> float:
    """Wake a thread; return how many microseconds it took until its code went on."""
    heard = Event()
    before = perf_counter()
    wake(heard)
    if not heard.wait(PATIENCE_SECONDS):
        raise TimeoutError("nobody heard the wake")
    return (perf_counter() - before) * 1e6


def latencies(samples: Sequence[float]) -> dict[str, Any]:
    """Describe how soon wakes were heard."""
    return {
        "wake_p50": metric("µs", [percentile(samples, 0.5)]),
        "wake_p99": metric("µs", [percentile(samples, 0.99)]),
    }
