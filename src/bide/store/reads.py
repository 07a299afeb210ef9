"""What is read from one snapshot: rows put together as `Store` gives them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from bide.clock import Instant
from bide.errors import CorruptDataError, UnknownKeyError
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.frames import Frame, Spans, unpack_frame
from bide.store.lists import Logged, read_rows
from bide.store.places import answer_place, event_place, journal_place, log_place, question_place
from bide.store.rows import (
    CheckpointRow,
    EventRow,
    Found,
    JournalRow,
    OpenWaitRow,
    RunRow,
    Stored,
    WaitRow,
    checkpoint_id,
)
from bide.store.seal import place_of
from bide.store.workers import is_gone
from bide.types import RunStatus, WaitStatus


def read_thread(tx: Transaction, bodies: Bodies, thread_id: str, seq: int | None, now: Instant) -> Stored | None:
    """Read a thread at its head, or at an older checkpoint, with what is known of the step that it is in."""
    # Asked together: a database that is a network away answers all of it in one round trip.
    key = {"thread_id": thread_id}
    run, lines, asked = tx.ask("read_live_run", key), tx.ask("read_journal", key), tx.ask("read_waits", key)
    thread = tx.one("read_thread", key)
    if thread is None:
        return None
    uid, head = thread[0], thread[1] or 0
    history = History(tx, bodies, thread_id, "")
    try:
        checkpoint = history.read(head if seq is None else seq)
        is_head = checkpoint is not None and checkpoint.row.seq == head
        journal = _open_journal(tx, bodies, thread_id, lines()) if is_head else ()
        waits = _open_waits(tx, bodies, thread_id, asked()) if is_head else ()
    except CorruptDataError as problem:
        _name_last_good(problem, uid, history, head if seq is None else seq)
        raise
    return Stored(uid, head, _run_of(run(), now), checkpoint, journal, waits, thread[2], thread[3])


def _name_last_good(problem: CorruptDataError, uid: str, history: History, seq: int) -> None:
    """Name the newest checkpoint that is whole, for whoever finds one damaged."""
    thread_id = history.place["thread_id"]
    if isinstance(problem, UnknownKeyError):
        problem.args = (f"Thread {thread_id!r} cannot be read at checkpoint {seq}. {problem}",)
        return  # nothing is damaged: with the key, everything is there
    good = history.last_good(seq)
    advice = "No older checkpoint of it is whole: restore a backup."
    if good is not None:
        advice = (
            f"Its last good checkpoint is {checkpoint_id(uid, good)!r}: look at it with get_state(config), and go on "
            f'from there with fork(config), where config={{"configurable": {{"thread_id": …, "checkpoint_id": …}}}}.'
        )
    problem.args = (f"Thread {thread_id!r} cannot be read at checkpoint {seq}. {problem} {advice}",)
    problem.last_good = None if good is None else checkpoint_id(uid, good)


def read_inside(
    tx: Transaction, bodies: Bodies, thread_id: str, ns: str, seq: int | None
) -> tuple[int, Found | None, Found | None]:
    """Read a graph inside a task: the number of its newest checkpoint, that checkpoint, and the one at `seq`."""
    found = tx.one("read_head", {"thread_id": thread_id, "ns": ns})
    head = 0 if found is None else found[0] or 0
    history = History(tx, bodies, thread_id, ns)
    is_older = seq is not None and seq != head
    return head, history.read(head) if head else None, history.read(seq or 0) if is_older else None


class History:
    """Reads the checkpoints of one graph of a thread, each with all that its state is made of."""

    def __init__(self, tx: Transaction, bodies: Bodies, thread_id: str, ns: str) -> None:
        self.tx = tx
        self.bodies = bodies
        self.place = {"thread_id": thread_id, "ns": ns}
        self._bases: dict[int, Frame] = {}

    def read(self, seq: int) -> Found | None:
        """Read one checkpoint, or None if there is none."""
        row = self.tx.one("read_checkpoint", {**self.place, "seq": seq, "pruned": 0})
        return None if row is None else self._whole(row)

    def page(self, before: int, most: int) -> list[Found]:
        """Read up to so many checkpoints older than `before`, newest first; a damaged one is for the next page."""
        found: list[Found] = []
        for row in self.tx.all("list_checkpoints", {**self.place, "before": before, "most": most}):
            try:
                found.append(self._whole(row))
            except CorruptDataError:
                if not found:
                    raise
                break
        return found

    def last_good(self, before: int) -> int | None:
        """Return the newest checkpoint below `before` of which everything can be read."""
        for seq in range(before - 1, 0, -1):
            try:
                if self.read(seq) is not None:
                    return seq
            except CorruptDataError:
                continue
        return None

    def _whole(self, row: Row) -> Found:
        checkpoint, frame = self._opened(row)
        large = {channel: self._value(channel, spans) for channel, spans in frame.logged.items()}
        return Found(checkpoint, frame, self._all_small(frame), large)

    def _opened(self, row: Row) -> tuple[CheckpointRow, Frame]:
        seq, parent, step, source, run_id, epoch, created_at, body = row
        thread_id, ns = self.place["thread_id"], self.place["ns"]
        place = place_of("checkpoints", thread_id, ns, seq, parent, step, source, run_id, epoch, created_at)
        opened = self.bodies.open(self.tx, place, body)
        with noticing_damage(place):
            frame = unpack_frame(opened)
        return CheckpointRow(seq, parent, step, source, opened, (), run_id, created_at, ns), frame

    def _all_small(self, frame: Frame) -> Mapping[str, bytes]:
        """Put the small values together: those of the base, and what has changed since."""
        if frame.base is None:
            return frame.small  # type: ignore[return-value]
        if frame.base not in self._bases:
            row = self.tx.one("read_checkpoint", {**self.place, "seq": frame.base, "pruned": 1})
            if row is None:
                raise CorruptDataError(f"Checkpoint {frame.base}, which holds the rest of its values, is gone.")
            self._bases[frame.base] = self._opened(row)[1]
        merged = {**self._bases[frame.base].small, **frame.small}
        return {key: body for key, body in merged.items() if body is not None}

    def _value(self, channel: str, spans: Spans) -> bytes | Logged:
        """Put the rows of a large value together."""
        rows: list[tuple[int, bytes]] = []
        try:
            for first, last in spans:
                params = {**self.place, "channel": channel, "first": first, "last": last}
                for seq, body in self.tx.all("read_channel", params):
                    place = log_place(self.place["thread_id"], self.place["ns"], channel, seq)
                    rows.append((seq, self.bodies.open(self.tx, place, body)))
            return read_rows(spans, rows)
        except CorruptDataError as problem:
            raise CorruptDataError(f"The value of state[{channel!r}] cannot be read. {problem}") from problem


@contextmanager
def noticing_damage(place: str) -> Iterator[None]:
    """Say what is damaged, whichever way it shows."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
        raise CorruptDataError(
            f"What is stored at {place} cannot be read ({problem}): it was damaged, or written by a newer Bide."
        ) from problem


def _run_of(rows: Sequence[Row], now: Instant) -> RunRow | None:
    if not rows:
        return None
    run_id, status, epoch, worker_id, host, pid, started, lease_until, has_input = rows[0]
    is_orphan = worker_id is not None and (host is None or is_gone(host, pid, started, lease_until, now))
    return RunRow(run_id, RunStatus(status), epoch, is_orphan, worker_id, bool(has_input))


def read_journal(tx: Transaction, bodies: Bodies, thread_id: str) -> tuple[JournalRow, ...]:
    """Read the journal of the step that a thread stands in."""
    return _open_journal(tx, bodies, thread_id, tx.all("read_journal", {"thread_id": thread_id}))


def _open_journal(tx: Transaction, bodies: Bodies, thread_id: str, rows: Sequence[Row]) -> tuple[JournalRow, ...]:
    lines = (JournalRow(*row) for row in rows)
    return tuple(line._replace(body=bodies.open(tx, journal_place(thread_id, line), line.body)) for line in lines)


def read_step(tx: Transaction, bodies: Bodies, thread_id: str, task_id: str, key: str) -> bytes | None:
    """Read the result of a step that is done, though whoever made it may not have heard so."""
    row = tx.one("read_step", {"thread_id": thread_id, "task_id": task_id, "key": key})
    if row is None:
        return None
    line = JournalRow(task_id, key, "step", "done", *row)
    return bodies.open(tx, journal_place(thread_id, line), line.body)


def read_waits(tx: Transaction, bodies: Bodies, thread_id: str, query: str = "read_waits") -> tuple[WaitRow, ...]:
    """Read the waits of the present step, or with another query all there ever were."""
    return _open_waits(tx, bodies, thread_id, tx.all(query, {"thread_id": thread_id}))


def _open_waits(tx: Transaction, bodies: Bodies, thread_id: str, rows: Sequence[Row]) -> tuple[WaitRow, ...]:
    return tuple(_wait(tx, bodies, thread_id, row) for row in rows)


def _wait(tx: Transaction, bodies: Bodies, thread_id: str, row: Row) -> WaitRow:
    wait_id, task_id, node, key, kind, status, digest, question, answer, answered_at = row
    with noticing_damage(place_of("waits", thread_id, wait_id)):
        wait = WaitRow(wait_id, task_id, node, key, kind, WaitStatus(status), digest, question, answer, answered_at)
    opened = None if answer is None else bodies.open(tx, answer_place(thread_id, wait_id), answer)
    return wait._replace(question=bodies.open(tx, question_place(thread_id, wait), question), answer=opened)


def read_open_waits(tx: Transaction, bodies: Bodies, most: int) -> list[OpenWaitRow]:
    """Read who waits, longest first."""
    rows = (OpenWaitRow(*row) for row in tx.all("list_open_waits", {"most": most}))
    return [row._replace(question=bodies.open(tx, question_place(row.thread_id, row), row.question)) for row in rows]


def read_events(tx: Transaction, bodies: Bodies, thread_id: str, after: int, most: int) -> list[EventRow]:
    """Read lines of a thread's log, oldest first."""
    rows = tx.all("read_events", {"thread_id": thread_id, "after": after, "most": most})
    return [
        EventRow(kind, bodies.open(tx, event_place(thread_id, kind, seq, at), body), number, seq, run_id, at)
        for number, seq, run_id, kind, at, body in rows
    ]
