"""How many messages an outbox holds; the server itself never counts those that were sent."""

from __future__ import annotations

from collections import Counter

from bide import Store
from bide.store.stored_rows import OUTBOX
from tests.store.inspected import all_rows


def count_messages(store: Store) -> dict[str, int]:
    """Count the messages by their status."""
    found = Counter(row["status"] for row in all_rows(store, OUTBOX))
    return {status: found[status] for status in ("open", "sent", "dead")}
