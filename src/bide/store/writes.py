"""What one transaction writes: the pieces that `Store` puts together. Each raises if its WHERE did not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import Instant
from bide.errors import AlreadyAnsweredError, ConflictError, LeaseLostError, ThreadBusyError, ThreadDeletedError
from bide.store.bodies import INLINE, Bodies
from bide.store.database import Transaction
from bide.store.lanes import lane_of
from bide.store.needed import close_needs
from bide.store.places import answer_place, checkpoint_place, event_place, journal_place, log_place, question_place
from bide.store.reads import read_journal
from bide.store.rows import CheckpointRow, EventRow, JournalRow, Lease, RunRow, Taking, WaitRow
from bide.types import RunStatus


class Writing:
    """One transaction that is under way: whose bodies are closed how, and what time it is."""

    __slots__ = ("bodies", "now", "tx")

    def __init__(self, tx: Transaction, bodies: Bodies, now: Instant) -> None:
        self.tx = tx
        self.bodies = bodies
        self.now = now

    def closed(self, thread_id: str, place: str, body: bytes) -> bytes:
        """Return what goes into a column of a thread's row."""
        return self.bodies.close(self.tx, thread_id, place, body, self.now)

    # ── Taking a thread ────────────────────────────────────────────────────────────────────────────────────────────

    def hold_thread(self, taking: Taking, uid: str) -> None:
        """Hold the thread until the end of the transaction: a new one, or the same life of it that was read."""
        thread_id = taking.thread_id
        if taking.uid is None:
            made = {"thread_id": thread_id, "uid": uid, "owner": self.bodies.owner, "graph": taking.graph}
            self.tx.expect("insert_thread", {**made, "now": self.now}, lambda _: taken_first(thread_id))
        else:
            self.tx.expect("hold_life", {"thread_id": thread_id, "uid": taking.uid}, lambda tx: self._gone(tx, taking))

    @staticmethod
    def _gone(tx: Transaction, taking: Taking) -> ConflictError:
        if tx.one("read_tombstone", {"uid": taking.uid}) is None:
            return taken_first(taking.thread_id)
        return ThreadDeletedError(
            f"Thread {taking.thread_id!r} was deleted since it was read. Nothing was written, and it stays deleted. "
            f"To begin a new thread under the same id, call it again."
        )

    def insert_run(self, taking: Taking, run_id: str, worker_id: str) -> None:
        """Make the one live run of a thread, which is driven here and now."""
        params = {"run_id": run_id, "thread_id": taking.thread_id, "worker_id": worker_id, "now": self.now}
        params |= {"lane": lane_of(taking.graph), "owner": self.bodies.owner}
        self.tx.expect("insert_run", params, lambda _: taken_first(taking.thread_id))

    def change_run(self, query: str, thread_id: str, run: RunRow, **more: Any) -> None:
        """Move a run on from the status and the epoch in which it was read."""
        seen = {"thread_id": thread_id, "run_id": run.run_id, "epoch": run.epoch, "status": run.status.value}
        params = {**seen, "now": self.now, **more}
        self.tx.expect(query, params, lambda _: _run_taken_first(run))

    def check_head(self, thread_id: str, expected: int) -> None:
        """Refuse to build on a checkpoint that is no longer the newest."""
        params = {"thread_id": thread_id, "ns": "", "expected": expected}
        self.tx.expect("check_head", params, lambda _: taken_first(thread_id))

    def check_left(self, taking: Taking) -> None:
        """Refuse to take over a run whose worker has written since: who goes on must know all that was done."""
        if taking.seen is None:
            return
        if set(read_journal(self.tx, self.bodies, taking.thread_id)) != set(taking.seen):
            raise taken_first(taking.thread_id)

    def note_settled(self, taking: Taking, lease: Lease) -> None:
        """Let what was settled between the load and this claim count as settled while the run was running: it does
        not know of it, so its pause must."""
        for wait_id in taking.asked:
            self.tx.send("note_settled", {"wait_id": wait_id, "epoch": lease.epoch})

    def answer_waits(self, taking: Taking) -> None:
        """Record each answer, where there is none yet."""
        for wait_id, answer in taking.answers:
            self._answer(taking.thread_id, wait_id, answer, "invoke")

    def answer_asked(self, taking: Taking) -> None:
        """Write down questions together with their answers."""
        for wait, answer in taking.answered:
            self.open_wait(Lease(taking.thread_id, "", 0), wait)
            self._answer(taking.thread_id, wait.wait_id, answer, "fork")

    def _answer(self, thread_id: str, wait_id: str, answer: bytes, via: str) -> None:
        closed = self.closed(thread_id, answer_place(thread_id, wait_id), answer)
        params = {"wait_id": wait_id, "answer": closed, "via": via, "now": self.now}
        self.tx.expect("answer_wait", params, lambda _: _answered_first(thread_id, wait_id))

    # ── The step under way ─────────────────────────────────────────────────────────────────────────────────────────

    def forget_step(self, thread_id: str, prefix: str = "") -> None:
        """Drop what is known of the step under way: its questions are cancelled, its journal is gone."""
        self.tx.send("cancel_waits", {"thread_id": thread_id, "prefix": prefix, "length": len(prefix)})
        self.retire_step(thread_id, prefix)

    def retire_step(self, thread_id: str, prefix: str = "") -> None:
        """Put away the journal and the waits of a step that is over, and of all graphs inside its tasks."""
        inside = {"thread_id": thread_id, "prefix": prefix, "length": len(prefix)}
        if prefix:
            self.tx.send("retire_journal_inside", inside)
        else:
            self.tx.send("retire_journal", {"thread_id": thread_id})
        self.tx.send("consume_waits", inside)

    def hold_lease(self, lease: Lease) -> None:
        """Prove that the run is still ours."""
        self.tx.expect("hold_lease", lease._asdict(), lambda _: lost(lease))

    def end_run(self, lease: Lease, status: RunStatus, error: str | None) -> None:
        """Give the lease back."""
        error = self.bodies.readable(error)
        params = {**lease._asdict(), "status": status.value, "error": error, "now": self.now}
        params["is_waiting"] = int(status is RunStatus.WAITING)
        self.tx.expect("end_run", params, lambda _: lost(lease))

    def write_checkpoint(self, lease: Lease, row: CheckpointRow) -> None:
        """Write a checkpoint while the lease is ours and nothing stands in its place."""
        body = self.closed(lease.thread_id, checkpoint_place(lease, row, self.now), row.body)
        params = _checkpoint_params(lease, row, body, self.now)
        self.tx.expect("write_checkpoint", params, lambda tx: _not_written(tx, lease, row))
        self._write_channels(lease.thread_id, row)

    def edit_checkpoint(self, thread_id: str, row: CheckpointRow, expected: int) -> None:
        """Write a checkpoint from outside, while nobody holds the thread."""
        nobody = Lease(thread_id, "", 0)
        body = self.closed(thread_id, checkpoint_place(nobody, row, self.now), row.body)
        params = {**_checkpoint_params(nobody, row, body, self.now), "expected": expected}
        del params["run_id"], params["epoch"]
        self.tx.expect("edit_checkpoint", params, lambda _: taken_first(thread_id))
        self._write_channels(thread_id, row)

    def _write_channels(self, thread_id: str, row: CheckpointRow) -> None:
        """Write what a checkpoint has in the channel log."""
        for channel, seq, body, until, live in row.channels:
            params = {"thread_id": thread_id, "ns": row.ns, "channel": channel, "seq": seq}
            place = log_place(thread_id, row.ns, channel, seq)
            self.bodies.check_size(place, live)  # a list that grows past the limit could not be written whole again
            if until is not None:
                self.tx.send("delete_channel", {**params, "until": until})
            self.tx.send("insert_channel", {**params, "body": self.closed(thread_id, place, body)})

    def write_journal(self, lease: Lease, line: JournalRow) -> None:
        """Write one line of a task's journal."""
        if line.kind == "error":
            self.tx.send("drop_result", {"thread_id": lease.thread_id, "task_id": line.task_id})
        body = self.closed(lease.thread_id, journal_place(lease.thread_id, line), line.body)
        params = {**lease._asdict(), **line._asdict(), "body": body, "now": self.now}
        self.tx.send("write_journal", params)

    def open_wait(self, lease: Lease, wait: WaitRow) -> None:
        """Ask."""
        question = self.closed(lease.thread_id, question_place(lease.thread_id, wait), wait.question)
        needs = wait.needs
        is_timed = needs is not None and needs.timeout is not None
        self.tx.send(
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
                "question": question,
                "now": self.now,
                "deadline": self.now + (needs.timeout or 0) if needs is not None and is_timed else None,
                "remind_at": None if needs is None else needs.remind_at(self.now, self.now),
                "needs": None if needs is None else close_needs(self.bodies, wait.wait_id, needs),
            },
        )

    def log_events(self, thread_id: str, run_id: str | None, seq: int, events: Sequence[EventRow]) -> None:
        """Add lines to the thread's log."""
        if not events:
            return
        self.tx.send("count_events", {"thread_id": thread_id, "added": len(events)})
        for number, event in enumerate(events, 1):
            after = event.seq or seq  # what is told of a step comes before the checkpoint that ends it
            body = self.closed(thread_id, event_place(thread_id, event.kind, after, self.now), event.body)
            params = {"thread_id": thread_id, "behind": len(events) - number, "seq": after, "run_id": run_id}
            self.tx.send("insert_event", {**params, "kind": event.kind, "now": self.now, "body": body})


def plain_step(lease: Lease, row: CheckpointRow, bodies: Bodies, now: Instant) -> dict[str, Any] | None:
    """Return the parameters of `write_checkpoint` for a step that is one row; None if its body must lie elsewhere."""
    if len(row.body) > INLINE:
        return None
    return _checkpoint_params(lease, row, bodies.seal.close(checkpoint_place(lease, row, now), row.body), now)


def _checkpoint_params(lease: Lease, row: CheckpointRow, body: bytes, now: Instant) -> dict[str, Any]:
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
        "body": body,
    }


def _not_written(tx: Transaction, lease: Lease, row: CheckpointRow) -> ConflictError:
    if tx.one("hold_lease", lease._asdict()) is None:
        return lost(lease)
    return ConflictError(
        f"Checkpoint {row.seq} of thread {lease.thread_id!r} at {row.ns!r} is there already, though the lease is ours. "
        f"Nothing was written. Go on with invoke(None, config)."
    )


def _answered_first(thread_id: str, wait_id: str) -> ConflictError:
    return AlreadyAnsweredError(
        f"Question {wait_id} of thread {thread_id!r} was answered or cancelled a moment ago. Nothing was written. Look "
        f"at the thread with get_state(config)."
    )


def _run_taken_first(run: RunRow) -> ConflictError:
    return ThreadBusyError(
        f"Another call took run {run.run_id} first; a thread has one live run at a time. Nothing was written. Look at "
        f"the thread with get_state(config), and try again if that is still wanted."
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
