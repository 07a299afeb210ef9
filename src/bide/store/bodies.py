"""The one way into and out of a body column: sealed, and past a size kept elsewhere, once for all who hold the same."""

from __future__ import annotations

from collections.abc import Sequence

from bide.clock import Instant
from bide.errors import CorruptDataError, ValueTooLargeError
from bide.store.database import Row, Transaction
from bide.store.seal import Seal, close_reference, is_reference, open_reference, place_of

INLINE = 64 * 1024
"""Up to so many bytes a body lies in its own row."""
LARGEST = 16 * 1024 * 1024
"""A body of more bytes is refused, unless the store was opened with another limit."""


class Bodies:
    """Closes and opens the bodies of one store."""

    __slots__ = ("largest", "owner", "seal")

    def __init__(self, seal: Seal, owner: str = "", largest: int = LARGEST) -> None:
        self.seal = seal
        self.owner = owner
        self.largest = largest

    def close(self, tx: Transaction, thread_id: str, place: str, body: bytes, now: Instant) -> bytes:
        """Return what goes into the column; a large body becomes a blob, and the column a reference to it."""
        if len(body) <= INLINE:
            return self.seal.close(place, body)
        return self._put_aside(tx, thread_id, place, body, now)

    def close_small(self, place: str, body: bytes) -> bytes:
        """Return what goes into a column whose bodies never leave their row."""
        self.check_size(place, len(body))
        return self.seal.close(place, body)

    def open(self, tx: Transaction, place: str, stored: bytes) -> bytes:
        """Return the body that was closed, wherever it lies; raise CorruptDataError if it is not that any more."""
        if is_reference(stored):
            return self._fetch(tx, place, stored)
        return self.seal.open(place, stored)

    def readable(self, error: str | None) -> str | None:
        """Return what of an error may lie beside the bodies: its text, which may hold the same, is in the log."""
        return error.partition(":")[0] if error is not None and self.seal.hides else error

    def _put_aside(self, tx: Transaction, thread_id: str, place: str, body: bytes, now: Instant) -> bytes:
        self.check_size(place, len(body))
        hash_ = self.seal.fingerprint(body)
        key = {"owner": self.owner, "hash": hash_, "now": now}
        # Used now: whoever collects unused blobs at this moment leaves it alone.
        if tx.run("touch_blob", key) == 0:
            sealed = self.seal.close(blob_place(self.owner, hash_), body)
            tx.run("put_blob", {**key, "size": len(body), "body": sealed})
        tx.run("use_blob", {"thread_id": thread_id, "owner": self.owner, "hash": hash_})
        return close_reference(self.seal, place, hash_ + self.owner.encode())

    def _fetch(self, tx: Transaction, place: str, stored: bytes) -> bytes:
        reference = open_reference(self.seal, place, stored)
        hash_, owner = reference[:32], reference[32:].decode("utf-8", "replace")
        row = tx.one("read_blob", {"owner": owner, "hash": hash_})
        if row is None:
            raise CorruptDataError(f"What is stored at {place} lies in the blob {hash_.hex()[:12]}…, which is gone.")
        return self.seal.open(blob_place(owner, hash_), row[0])

    def check_size(self, place: str, size: int) -> None:
        """Refuse a value of more bytes than the store takes."""
        if size > self.largest:
            raise ValueTooLargeError(
                f"A value of {_size(size)} is too large for the store, which takes up to {_size(self.largest)} (at "
                f"{place}). Nothing was written. Keep it in a file or an object store and its name in the state, or "
                f"open the store with a higher limit: Store.open(…, largest_value={size})."
            )


def collect_blobs(tx: Transaction, uses: Sequence[Row]) -> None:
    """Delete those of these blobs that nobody uses any more."""
    for owner, hash_ in sorted(uses):  # in one order, so that two who collect do not wait for each other
        key = {"owner": owner, "hash": hash_}
        tx.one("hold_blob", key)
        tx.run("drop_blob", key)


def blob_place(owner: str, hash_: bytes) -> str:
    """Return the place of a large body."""
    return place_of("blobs", owner, hash_.hex())


def _size(count: int) -> str:
    return f"{count / 1024 / 1024:.1f} MiB" if count >= 1024 * 1024 else f"{count / 1024:.1f} KiB"
