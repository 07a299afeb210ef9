"""The places of rows: what of a row is sealed together with its body, so that no change of either goes unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bide.clock import Instant
from bide.store.rows import CheckpointRow, JournalRow, Lease, OpenWaitRow, WaitRow
from bide.store.seal import place_of

if TYPE_CHECKING:
    from bide.store.queue_rows import WaitView


def checkpoint_place(lease: Lease, row: CheckpointRow, now: Instant) -> str:
    """Return the place of a checkpoint that is about to be written."""
    thread_id, run_id, epoch = lease
    return place_of("checkpoints", thread_id, row.ns, row.seq, row.parent, row.step, row.source, run_id, epoch, now)


def log_place(thread_id: str, ns: str, channel: str, seq: int) -> str:
    """Return the place of a row of the channel log."""
    return place_of("channel_log", thread_id, ns, channel, seq)


def journal_place(thread_id: str, line: JournalRow) -> str:
    """Return the place of a line of the journal."""
    return place_of("journal", thread_id, line.task_id, line.kind, line.key, line.phase, line.name, line.digest)


def question_place(thread_id: str, wait: WaitRow | OpenWaitRow | WaitView) -> str:
    """Return the place of a question."""
    return place_of("waits", thread_id, wait.wait_id, wait.task_id, wait.node, wait.key, wait.kind, "question")


def answer_place(thread_id: str, wait_id: str) -> str:
    """Return the place of an answer."""
    return place_of("waits", thread_id, wait_id, "answer")


def wake_place(wait_id: str, number: int) -> str:
    """Return the place of what satisfied a condition."""
    return place_of("conditions", wait_id, number)


def event_place(thread_id: str, kind: str, seq: int, at: Instant) -> str:
    """Return the place of an event; its number is given by the database, when it is written."""
    return place_of("events", thread_id, kind, seq, at)


def notes_place(thread_id: str) -> str:
    """Return the place of what was said about a thread."""
    return place_of("thread_notes", thread_id)


def schedule_place(schedule_id: str) -> str:
    """Return the place of what a schedule starts."""
    return place_of("schedules", schedule_id)


def message_place(message_id: str) -> str:
    """Return the place of a message to somebody outside."""
    return place_of("outbox", message_id)


def item_place(namespace: bytes, key: bytes) -> str:
    """Return the place of an item of the long-term store."""
    return place_of("items", namespace.hex(), key.hex())


def audit_place(row: Mapping[str, Any]) -> str:
    """Return the place of a line of the audit log: all that it says in the open, so that none of it can be changed."""
    named = (row[name] for name in ("entry_id", "owner", "actor", "action", "subject"))
    return place_of("audit", *named, row["thread_id"] or "", row["at"])


def cache_place(place: str, key: str) -> str:
    """Return the place of a result that may be taken again."""
    return place_of("cache", place, key)
