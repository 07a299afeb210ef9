"""For users who test their graphs: a clock that stands still, runs driven here and now, crashes on purpose.

clock      FakeClock: time moves when the test says so
harness    Harness: an application whose runs are driven in the test's own thread
crashing   Crashed, and a database in which a process can die at any write
fixtures   memory_store, sqlite_store, postgres_store for a conftest.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bide.testing.clock import FakeClock
from bide.testing.crashing import Crashed
from bide.testing.harness import Harness

if TYPE_CHECKING:
    from bide.testing.fixtures import memory_store, postgres_store, sqlite_store

_FIXTURES = ("memory_store", "postgres_store", "sqlite_store")

__all__ = ["Crashed", "FakeClock", "Harness", "memory_store", "postgres_store", "sqlite_store"]


def __getattr__(name: str) -> Any:
    """Find a fixture: only those who ask for one need pytest."""
    if name in _FIXTURES:
        from bide.testing import fixtures

        return getattr(fixtures, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
