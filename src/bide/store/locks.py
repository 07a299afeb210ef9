"""Lock rows: a key locks the row that its hash falls on. So locks are few, and nobody has to tidy them up."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from bide.errors import StoreFormatError
from bide.store.database import Transaction

BUCKETS = 256
"""How many rows there are in `correlation_locks`."""


def hold_keys(tx: Transaction, keys: Iterable[str]) -> None:
    """Hold these keys until the end of the transaction; in one order, so that two who hold several never wait for
    each other."""
    for bucket in sorted({crc32(key.encode()) % BUCKETS for key in keys}):
        tx.expect("hold_correlation", {"bucket": bucket}, lambda _: _missing())


def _missing() -> StoreFormatError:
    # Without its row nothing would be locked, and a wake could be lost without a word.
    return StoreFormatError(
        "Rows of the table correlation_locks are missing, so the database is damaged. Nothing was written. Restore it "
        "from a backup, or insert the numbers 0 to 255 into it again."
    )
