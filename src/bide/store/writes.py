"""What one transaction writes: the pieces that `Store` puts together. Each raises if its WHERE did not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import Instant
from bide.errors import AlreadyAnsweredError, ConflictError, LeaseLostError, ThreadBusyError
from bide.store.database import Transaction
from bide.store.rows import CheckpointRow, EventRow, JournalRow, Lease, RunRow, Taking, WaitRow
from bide.types import RunStatus


def insert_thread(tx: Transaction, taking: Taking, uid: str, now: Instant) -> None:
    """Make a thread that nobody else has made a moment ago."""
    params = {"thread_id": taking.thread_id, "uid": uid, "graph": taking.graph, "now": now}
    if tx.run("insert_thread", params) != 1:
        raise taken_first(taking.thread_id)


def change_run(tx: Transaction, query: str, run: RunRow, now: Instant, **more: Any) -> None:
    """Move a run on from the status and the epoch in which it was read."""
    changed = tx.run(query, {"run_id": run.run_id, "epoch": run.epoch, "status": run.status.value, "now": now, **more})
    if changed != 1:
        raise ThreadBusyError(
            f"Another call took run {run.run_id} first; a thread has one live run at a time. Nothing was written. "
            f"Look at the thread with get_state(config), and try again if that is still wanted."
        )


def check_head(tx: Transaction, thread_id: str, expected: int) -> None:
    """Refuse to build on a checkpoint that is no longer the newest."""
    row = tx.one("read_head", {"thread_id": thread_id, "ns": ""})
    if row is None or (row[0] or 0) != expected:
        raise taken_first(thread_id)


def check_left(tx: Transaction, taking: Taking) -> None:
    """Refuse to take over a run whose worker has written since: who goes on must know all that was done."""
    if taking.seen is None:
        return
    lines = {JournalRow(*row) for row in tx.all("read_journal", {"thread_id": taking.thread_id})}
    if lines != set(taking.seen):
        raise taken_first(taking.thread_id)


def answer_waits(tx: Transaction, taking: Taking, now: Instant) -> None:
    """Record each answer, where there is none yet."""
    for wait_id, answer in taking.answers:
        if tx.run("answer_wait", {"wait_id": wait_id, "answer": answer, "via": "invoke", "now": now}) != 1:
            raise AlreadyAnsweredError(
                f"Question {wait_id} of thread {taking.thread_id!r} was answered or cancelled a moment ago. "
                f"Nothing was written. Look at the thread with get_state(config)."
            )


def answer_asked(tx: Transaction, taking: Taking, now: Instant) -> None:
    """Write down questions together with their answers."""
    for wait, answer in taking.answered:
        open_wait(tx, Lease(taking.thread_id, "", 0), wait, now)
        tx.run("answer_wait", {"wait_id": wait.wait_id, "answer": answer, "via": "fork", "now": now})


def forget_step(tx: Transaction, thread_id: str, prefix: str = "") -> None:
    """Drop what is known of the step under way: its questions are cancelled, its journal is gone."""
    tx.run("cancel_waits", {"thread_id": thread_id, "prefix": prefix, "length": len(prefix)})
    retire_step(tx, thread_id, prefix)


def retire_step(tx: Transaction, thread_id: str, prefix: str = "") -> None:
    """Put away the journal and the waits of a step that is over, and of all graphs inside its tasks."""
    inside = {"thread_id": thread_id, "prefix": prefix, "length": len(prefix)}
    if prefix:
        tx.run("retire_journal_inside", inside)
    else:
        tx.run("retire_journal", {"thread_id": thread_id})
    tx.run("consume_waits", inside)


def hold_lease(tx: Transaction, lease: Lease) -> None:
    """Prove that the run is still ours."""
    if tx.one("hold_lease", {"run_id": lease.run_id, "epoch": lease.epoch}) is None:
        raise lost(lease)


def end_run(tx: Transaction, lease: Lease, status: RunStatus, error: str | None, now: Instant) -> None:
    """Give the lease back."""
    params = {"run_id": lease.run_id, "epoch": lease.epoch, "status": status.value, "error": error, "now": now}
    if tx.run("end_run", params) != 1:
        raise lost(lease)


def checkpoint_params(lease: Lease, row: CheckpointRow, now: Instant) -> dict[str, Any]:
    """Return the parameters of `write_checkpoint`."""
    return {
        "thread_id": lease.thread_id,
        "ns": row.ns,
        "seq": row.seq,
        "parent": row.parent,
        "step": row.step,
        "source": row.source,
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "now": now,
        "body": row.body,
    }


def write_checkpoint(tx: Transaction, lease: Lease, row: CheckpointRow, now: Instant) -> None:
    """Write a checkpoint while the lease is ours and nothing stands in its place."""
    if tx.run("write_checkpoint", checkpoint_params(lease, row, now)) != 1:
        hold_lease(tx, lease)
        raise ConflictError(
            f"Checkpoint {row.seq} of thread {lease.thread_id!r} at {row.ns!r} is there already, though the lease is "
            f"ours. Nothing was written. Go on with invoke(None, config)."
        )
    write_channels(tx, lease.thread_id, row)


def edit_checkpoint(tx: Transaction, thread_id: str, row: CheckpointRow, expected: int, now: Instant) -> None:
    """Write a checkpoint from outside, while nobody holds the thread."""
    params = {
        "thread_id": thread_id,
        "ns": row.ns,
        "seq": row.seq,
        "parent": row.parent,
        "step": row.step,
        "source": row.source,
        "expected": expected,
        "now": now,
        "body": row.body,
    }
    if tx.run("edit_checkpoint", params) != 1:
        raise taken_first(thread_id)
    write_channels(tx, thread_id, row)


def write_channels(tx: Transaction, thread_id: str, row: CheckpointRow) -> None:
    """Write the large values of a checkpoint."""
    for channel, seq, body in row.channels:
        params = {"thread_id": thread_id, "ns": row.ns, "seq": seq, "channel": channel, "op": "put", "body": body}
        tx.run("insert_channel", params)


def write_journal(tx: Transaction, lease: Lease, line: JournalRow, now: Instant) -> None:
    """Write one line of a task's journal."""
    if line.kind == "error":
        tx.run("drop_result", {"thread_id": lease.thread_id, "task_id": line.task_id})
    tx.run(
        "write_journal",
        {
            "thread_id": lease.thread_id,
            "run_id": lease.run_id,
            "epoch": lease.epoch,
            "now": now,
            **line._asdict(),
        },
    )


def open_wait(tx: Transaction, lease: Lease, wait: WaitRow, now: Instant) -> None:
    """Ask."""
    tx.run(
        "open_wait",
        {
            "wait_id": wait.wait_id,
            "thread_id": lease.thread_id,
            "run_id": lease.run_id,
            "task_id": wait.task_id,
            "node": wait.node,
            "key": wait.key,
            "kind": wait.kind,
            "digest": wait.digest,
            "question": wait.question,
            "now": now,
        },
    )


def log_events(
    tx: Transaction, thread_id: str, run_id: str | None, seq: int, events: Sequence[EventRow], now: Instant
) -> None:
    """Add lines to the thread's log."""
    if not events:
        return
    row = tx.one("count_events", {"thread_id": thread_id, "added": len(events)})
    first = (row[0] if row is not None else len(events)) - len(events) + 1
    for number, event in enumerate(events, first):
        tx.run(
            "insert_event",
            {
                "thread_id": thread_id,
                "number": number,
                "seq": seq,
                "run_id": run_id,
                "kind": event.kind,
                "now": now,
                "body": event.body,
            },
        )


def taken_first(thread_id: str) -> ConflictError:
    """Say that somebody else was faster."""
    return ThreadBusyError(
        f"Another call took thread {thread_id!r} first; a thread has one live run at a time. Nothing was written. "
        f"Look at it with get_state(config), and try again if that is still wanted."
    )


def lost(lease: Lease) -> LeaseLostError:
    """Say that the run is no longer ours."""
    return LeaseLostError(
        f"Run {lease.run_id} no longer holds thread {lease.thread_id!r}: another worker took it over, or the thread "
        f"was deleted. Nothing was written."
    )
