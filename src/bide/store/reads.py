"""What is read from one snapshot: rows put together as `Store` gives them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide.clock import Instant
from bide.store.database import Transaction
from bide.store.rows import CheckpointRow, JournalRow, RunRow, Stored, WaitRow
from bide.store.workers import is_gone
from bide.types import RunStatus, WaitStatus

LoggedAt = Callable[[CheckpointRow], Mapping[str, int]]
"""Tells from a checkpoint's row where its large values are: key → checkpoint."""


def read_thread(tx: Transaction, thread_id: str, seq: int | None, logged_at: LoggedAt, now: Instant) -> Stored | None:
    """Read a thread at its head, or at an older checkpoint, with what is known of the step that it is in."""
    thread = tx.one("read_thread", {"thread_id": thread_id})
    if thread is None:
        return None
    uid, head = thread[0], thread[1] or 0
    checkpoint = read_checkpoint(tx, thread_id, "", head if seq is None else seq)
    is_head = checkpoint is not None and checkpoint.seq == head
    return Stored(
        uid,
        head,
        _read_run(tx, thread_id, now),
        checkpoint,
        {} if checkpoint is None else read_channels(tx, thread_id, checkpoint, logged_at),
        tuple(JournalRow(*row) for row in tx.all("read_journal", {"thread_id": thread_id})) if is_head else (),
        read_waits(tx, thread_id) if is_head else (),
    )


def read_inside(
    tx: Transaction, thread_id: str, ns: str, seq: int | None, logged_at: LoggedAt
) -> tuple[int, CheckpointRow | None, Mapping[str, bytes], CheckpointRow | None, Mapping[str, bytes]]:
    """Read a graph inside a task: the number of its newest checkpoint, that checkpoint, and the one at `seq`."""
    found = tx.one("read_head", {"thread_id": thread_id, "ns": ns})
    head = 0 if found is None else found[0] or 0
    newest = read_checkpoint(tx, thread_id, ns, head) if head else None
    older = read_checkpoint(tx, thread_id, ns, seq) if seq is not None and seq != head else None
    large = {} if newest is None else read_channels(tx, thread_id, newest, logged_at)
    return head, newest, large, older, {} if older is None else read_channels(tx, thread_id, older, logged_at)


def read_history(
    tx: Transaction, thread_id: str, ns: str, logged_at: LoggedAt, before: int, most: int
) -> list[tuple[CheckpointRow, Mapping[str, bytes]]]:
    """Read checkpoints, newest first, each with its large values."""
    rows = tx.all("list_checkpoints", {"thread_id": thread_id, "ns": ns, "before": before, "most": most})
    checkpoints = [_checkpoint(row, ns) for row in rows]
    return [(row, read_channels(tx, thread_id, row, logged_at)) for row in checkpoints]


def read_checkpoint(tx: Transaction, thread_id: str, ns: str, seq: int) -> CheckpointRow | None:
    """Read one checkpoint."""
    row = tx.one("read_checkpoint", {"thread_id": thread_id, "ns": ns, "seq": seq})
    return None if row is None else _checkpoint(row, ns)


def read_channels(
    tx: Transaction, thread_id: str, checkpoint: CheckpointRow, logged_at: LoggedAt
) -> Mapping[str, bytes]:
    """Read the large values of a checkpoint from the log."""
    logged = logged_at(checkpoint)
    found: dict[str, bytes] = {}
    for seq in set(logged.values()):
        for channel, _, body in tx.all("read_channels", {"thread_id": thread_id, "ns": checkpoint.ns, "seq": seq}):
            if logged.get(channel) == seq:
                found[channel] = body
    return found


def _checkpoint(row: tuple[Any, ...], ns: str) -> CheckpointRow:
    seq, parent, step, source, run_id, created_at, body = row
    return CheckpointRow(seq, parent, step, source, body, (), run_id, created_at, ns)


def _read_run(tx: Transaction, thread_id: str, now: Instant) -> RunRow | None:
    row = tx.one("read_live_run", {"thread_id": thread_id})
    if row is None:
        return None
    run_id, status, epoch, worker_id, host, pid, started, lease_until = row
    is_orphan = worker_id is not None and (host is None or is_gone(host, pid, started, lease_until, now))
    return RunRow(run_id, RunStatus(status), epoch, is_orphan, worker_id)


def read_waits(tx: Transaction, thread_id: str, query: str = "read_waits") -> tuple[WaitRow, ...]:
    """Read the waits of the present step, or with another query all there ever were."""
    rows = tx.all(query, {"thread_id": thread_id})
    return tuple(
        WaitRow(wait_id, task_id, node, key, kind, WaitStatus(status), digest, question, answer, answered_at)
        for wait_id, task_id, node, key, kind, status, digest, question, answer, answered_at in rows
    )
