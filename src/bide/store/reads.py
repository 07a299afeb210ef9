"""What is read from one snapshot: rows put together as `Store` gives them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide.clock import Instant
from bide.store.database import Transaction
from bide.store.rows import CheckpointRow, JournalRow, RunRow, Stored, WaitRow
from bide.store.workers import is_gone
from bide.types import RunStatus, WaitStatus

LoggedAt = Callable[[CheckpointRow], tuple[int | None, Mapping[str, int]]]
"""Tells from a checkpoint's row where the rest of its values are: its base, and for each large one a checkpoint."""


def read_thread(tx: Transaction, thread_id: str, seq: int | None, logged_at: LoggedAt, now: Instant) -> Stored | None:
    """Read a thread at its head, or at an older checkpoint, with what is known of the step that it is in."""
    thread = tx.one("read_thread", {"thread_id": thread_id})
    if thread is None:
        return None
    uid, head = thread[0], thread[1] or 0
    checkpoint, large = read_checkpoint(tx, thread_id, "", head if seq is None else seq, logged_at)
    is_head = checkpoint is not None and checkpoint.seq == head
    return Stored(
        uid,
        head,
        _read_run(tx, thread_id, now),
        checkpoint,
        large,
        tuple(JournalRow(*row) for row in tx.all("read_journal", {"thread_id": thread_id})) if is_head else (),
        read_waits(tx, thread_id) if is_head else (),
    )


Whole = tuple[CheckpointRow | None, Mapping[str, bytes]]
"""A checkpoint, if there is one, and its large values."""


def read_inside(
    tx: Transaction, thread_id: str, ns: str, seq: int | None, logged_at: LoggedAt
) -> tuple[int, Whole, Whole]:
    """Read a graph inside a task: the number of its newest checkpoint, that checkpoint, and the one at `seq`."""
    found = tx.one("read_head", {"thread_id": thread_id, "ns": ns})
    head = 0 if found is None else found[0] or 0
    newest = read_checkpoint(tx, thread_id, ns, head, logged_at) if head else NO_CHECKPOINT
    is_older = seq is not None and seq != head
    return head, newest, read_checkpoint(tx, thread_id, ns, seq or 0, logged_at) if is_older else NO_CHECKPOINT


NO_CHECKPOINT: Whole = (None, {})


def read_history(
    tx: Transaction, thread_id: str, ns: str, logged_at: LoggedAt, before: int, most: int
) -> list[tuple[CheckpointRow, Mapping[str, bytes]]]:
    """Read checkpoints, newest first, each with the rest of its values."""
    rows = tx.all("list_checkpoints", {"thread_id": thread_id, "ns": ns, "before": before, "most": most})
    bases: dict[int, bytes | None] = {}
    return [_with_rest(tx, thread_id, _checkpoint(row, ns), logged_at, bases) for row in rows]


def read_checkpoint(tx: Transaction, thread_id: str, ns: str, seq: int, logged_at: LoggedAt) -> Whole:
    """Read one checkpoint, with the rest of its values."""
    row = _read_row(tx, thread_id, ns, seq)
    return NO_CHECKPOINT if row is None else _with_rest(tx, thread_id, row, logged_at, {})


def _read_row(tx: Transaction, thread_id: str, ns: str, seq: int) -> CheckpointRow | None:
    row = tx.one("read_checkpoint", {"thread_id": thread_id, "ns": ns, "seq": seq})
    return None if row is None else _checkpoint(row, ns)


def _with_rest(
    tx: Transaction, thread_id: str, row: CheckpointRow, logged_at: LoggedAt, bases: dict[int, bytes | None]
) -> tuple[CheckpointRow, Mapping[str, bytes]]:
    """Add what a checkpoint has elsewhere: its base, and its large values, from the log."""
    base, logged = logged_at(row)
    if base is not None:
        if base not in bases:
            found = _read_row(tx, thread_id, row.ns, base)
            bases[base] = None if found is None else found.body
        row = row._replace(base=bases[base])
    large: dict[str, bytes] = {}
    for seq in set(logged.values()):
        for channel, _, body in tx.all("read_channels", {"thread_id": thread_id, "ns": row.ns, "seq": seq}):
            if logged.get(channel) == seq:
                large[channel] = body
    return row, large


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
