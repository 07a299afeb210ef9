"""A store in memory: the same code over SQLite in memory, for tests and try-outs."""

from __future__ import annotations

from bide.clock import Clock
from bide.store.sqlite import SqliteDatabase
from bide.store.store import Store


class MemorySaver(Store):
    """A store that forgets everything when the process ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(SqliteDatabase(":memory:"), clock)


InMemorySaver = MemorySaver
