"""Deleting a thread: all of it, or nothing; that it was deleted is remembered. And what nothing can be built on."""

from __future__ import annotations

from bide.clock import Instant
from bide.errors import ConflictError
from bide.store.bodies import collect_blobs
from bide.store.database import Transaction
from bide.store.ending import end_thread
from bide.store.rows import CheckpointRow, Report
from bide.store.writes import Writing
from bide.types import RunStatus

_EVERYTHING_OF_A_THREAD = (
    "delete_thread",
    "delete_runs",
    "delete_checkpoints",
    "delete_channels",
    "retire_journal",
    "delete_conditions",
    "delete_links",
    "delete_waits",
    "delete_events",
    "delete_blob_uses",
    "delete_thread_notes",
    "delete_labels",
    "delete_run_notes",
)


def delete_everything(tx: Transaction, thread_id: str, now: Instant) -> None:
    """Delete everything of a thread that is held, and bury it: whoever still holds its old life writes nothing."""
    key = {"thread_id": thread_id}
    tx.send("bury_thread", {**key, "now": now})
    uses = tx.all("list_blob_uses", key)
    for query in _EVERYTHING_OF_A_THREAD:
        tx.send(query, key)
    collect_blobs(tx, uses)


def end_before_deletion(writing: Writing, thread_id: str) -> list[str]:
    """End the live run of a thread that is about to be deleted: its parent hears of it, and its children are seen to.

    Return the deliveries to match after the commit.
    """
    runs = writing.tx.all("list_run_ids", {"thread_id": thread_id})
    live = [run_id for run_id, status in runs if status not in ("done", "failed", "cancelled", "dead")]
    if not live:
        return []
    return end_thread(writing, thread_id, live[0], Report(RunStatus.CANCELLED, error="its thread was deleted"))


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
