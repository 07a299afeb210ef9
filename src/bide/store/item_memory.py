"""A long-term store in memory: the same code over SQLite in memory, for tests and try-outs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bide.clock import Clock
from bide.store.item_checks import refuse_index
from bide.store.items import ItemStore
from bide.store.memory import MemorySaver


class InMemoryStore(ItemStore):
    """A long-term store that forgets everything when it is closed, or when nobody holds it any more."""

    def __init__(
        self,
        *,
        index: Any = None,
        default_ttl: float | timedelta | None = None,
        refresh_on_read: bool = True,
        clock: Clock | None = None,
    ) -> None:
        refuse_index(index, "InMemoryStore")
        super().__init__(MemorySaver(clock=clock), default_ttl=default_ttl, refresh_on_read=refresh_on_read)

    def close(self) -> None:
        """Forget everything."""
        self._database.close()
