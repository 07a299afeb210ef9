"""Deleting a thread: all of it, or nothing; that it was deleted is remembered. And what nothing can be built on."""

from __future__ import annotations

from bide.clock import Instant
from bide.errors import ConflictError
from bide.store.bodies import collect_blobs
from bide.store.database import Transaction
from bide.store.rows import CheckpointRow

_EVERYTHING_OF_A_THREAD = (
    "delete_thread",
    "delete_runs",
    "delete_checkpoints",
    "delete_channels",
    "retire_journal",
    "delete_conditions",
    "delete_waits",
    "delete_events",
    "delete_blob_uses",
)


def delete_everything(tx: Transaction, thread_id: str, now: Instant) -> None:
    """Delete everything of a thread that is held, and bury it: whoever still holds its old life writes nothing."""
    key = {"thread_id": thread_id}
    tx.send("bury_thread", {**key, "now": now})
    uses = tx.all("list_blob_uses", key)
    for query in _EVERYTHING_OF_A_THREAD:
        tx.send(query, key)
    collect_blobs(tx, uses)


def check_parent(tx: Transaction, thread_id: str, row: CheckpointRow | None, head: int) -> None:
    """Refuse to begin a branch at a checkpoint that was let go since it was read."""
    if row is None or row.parent is None or row.parent == head:
        return
    tx.expect("check_parent", {"thread_id": thread_id, "ns": row.ns, "parent": row.parent}, lambda _: _let_go(row))


def _let_go(row: CheckpointRow) -> ConflictError:
    return ConflictError(
        f"Checkpoint {row.parent} was let go by the store's retention since it was read, so nothing can begin there. "
        f"Nothing was written. See get_state_history(config) for those that are left."
    )
