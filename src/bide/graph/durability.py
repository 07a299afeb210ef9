"""When transitions reach the database: at once, a little later in order, or when the run ends or pauses.

A pause, an end and a journaled step are always durable before anybody hears of them; the modes differ only in the steps
between.
"""

from __future__ import annotations

from queue import Queue
from threading import RLock, Thread

from bide.store import Store
from bide.store.frames import unpack_frame
from bide.store.lists import LogRow, is_whole
from bide.store.rows import CheckpointRow, EventRow, JournalRow, Lease, Transition
from bide.types import Durability, RunStatus

MOST_QUEUED = 64
"""How many steps may wait in `async` mode before the run waits for them."""


class Writer:
    """Writes the transitions of one run, in order."""

    def __init__(self, store: Store, mode: Durability) -> None:
        self.store = store
        self.mode = mode
        self._queue: Queue[tuple[Lease, Transition] | None] | None = None
        self._problem: Exception | None = None
        self._flushing = RLock()
        self._held: Transition | None = None
        self._results: tuple[JournalRow, ...] = ()
        self._rows: dict[str, CheckpointRow] = {}

    def save(self, lease: Lease, transition: Transition) -> None:
        """Save a transition as the mode asks; a pause or an end is saved at once, after all that came before."""
        if self.mode == "sync":
            self.store.commit(lease, transition)
            return
        with self._flushing:
            self._save_later(lease, transition)

    def _save_later(self, lease: Lease, transition: Transition) -> None:
        if transition.status is not RunStatus.RUNNING:
            self._save_last(lease, transition)
        elif self.mode == "exit":
            self._hold_back(transition)
        else:
            self._enqueue(lease, transition)

    def _save_last(self, lease: Lease, transition: Transition) -> None:
        if self.mode == "exit":
            self._hold_back(transition)
            self._write_held(lease)
            return
        self.flush(lease)
        self.close()
        self.store.commit(lease, transition)

    def record(
        self,
        lease: Lease,
        rows: tuple[JournalRow, ...],
        carried: tuple[CheckpointRow, ...] = (),
        told: tuple[EventRow, ...] = (),
    ) -> None:
        """Save results of finished tasks whose siblings still run, and what is told of them."""
        if self.mode == "sync":
            self.store.commit(lease, Transition(0, journal=rows, carried=carried, events=told))
            return
        with self._flushing:
            if self.mode == "async":
                self._enqueue(lease, Transition(0, journal=rows, carried=carried, events=told))
                return
            self._results += rows
            if carried or told:
                self._hold_back(Transition(0, carried=carried, events=told))

    def flush(self, lease: Lease) -> None:
        """Make everything so far durable. What could not be written is told each time: nothing may follow it."""
        if self.mode == "sync":
            return
        # Tasks in several threads come here at once; none may go on before the state that it builds on is written.
        with self._flushing:
            self._write_held(lease)
            if self._queue is not None:
                self._queue.join()
        if self._problem is not None:
            raise self._problem

    # ── async ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _enqueue(self, lease: Lease, transition: Transition) -> None:
        if self._problem is not None:
            self.flush(lease)
        if self._queue is None:
            self._queue = Queue(MOST_QUEUED)
            Thread(target=self._drain, args=(self._queue,), name="bide-writer", daemon=True).start()
        self._queue.put((lease, transition))

    def _drain(self, queue: Queue[tuple[Lease, Transition] | None]) -> None:
        while True:
            item = queue.get()
            try:
                if item is None:
                    return
                if self._problem is None:
                    self.store.commit(*item)
            except Exception as problem:  # noqa: BLE001 — raised in the run's own thread at its next write
                self._problem = problem
            finally:
                queue.task_done()

    def close(self) -> None:
        """End the background thread."""
        if self._queue is not None:
            self._queue.put(None)
            self._queue = None

    # ── exit ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _hold_back(self, transition: Transition) -> None:
        """Keep the newest checkpoint of each graph, and all that the channel log gained since the last save."""
        carried = {row.ns for row in transition.carried}
        for prefix in transition.over:
            self._drop_inside(prefix, carried)
        rows = transition.carried if transition.checkpoint is None else (*transition.carried, transition.checkpoint)
        for row in rows:
            old = self._rows.get(row.ns)
            if old is not None:
                row = row._replace(parent=old.parent, channels=needed((*old.channels, *row.channels)))
            self._rows[row.ns] = row
        held = self._held or Transition(transition.head)
        self._held = transition._replace(
            head=held.head,
            checkpoint=None,
            carried=(),
            events=(*held.events, *transition.events),
            over=(*held.over, *(prefix for prefix in transition.over if prefix not in held.over)),
        )

    def _drop_inside(self, prefix: str, carried: set[str]) -> None:
        """Forget a step that is over before it was written: its results, and the graphs inside its tasks.

        A graph of which a newer checkpoint comes now is not forgotten: that one builds on what is held.
        """
        self._results = tuple(line for line in self._results if not line.task_id.startswith(prefix))
        for ns in [ns for ns in self._rows if ns and ns.startswith(prefix) and not is_lasting(ns)]:
            if ns not in carried:
                del self._rows[ns]

    def _write_held(self, lease: Lease) -> None:
        if self._held is None and not self._results:
            return
        held, self._held = self._held or Transition(0), None
        results, self._results = self._results, ()
        rows, self._rows = {ns: without_what_nobody_reads(row) for ns, row in self._rows.items()}, {}
        own = rows.pop("", None)
        if own is not None:
            rows = {ns: row for ns, row in rows.items() if is_reachable(ns, own)}
        self.store.commit(
            lease, held._replace(checkpoint=own, carried=tuple(rows.values()), journal=(*results, *held.journal))
        )


def needed(rows: tuple[LogRow, ...]) -> tuple[LogRow, ...]:
    """Leave out the rows of the channel log that nobody will read: those before a newer whole value of the same key."""
    whole = {row.channel: row.seq for row in rows if is_whole(row.body)}
    return tuple(row for row in rows if row.seq >= whole.get(row.channel, 0))


def without_what_nobody_reads(row: CheckpointRow) -> CheckpointRow:
    """Leave out the rows of the channel log that its frame does not speak of: values that were gone before they were
    written."""
    if not row.channels:
        return row
    logged = unpack_frame(row.body).logged
    return row._replace(
        channels=tuple(
            part for part in row.channels if any(a <= part.seq <= b for a, b in logged.get(part.channel, ()))
        )
    )


def is_reachable(ns: str, own: CheckpointRow) -> bool:
    """Whether anybody can ask for a graph inside: its step was planned at a checkpoint that is written, or it lasts."""
    number = ns.partition(".")[0]
    return is_lasting(ns) or not number.isdecimal() or int(number) in (own.seq, own.parent)


def is_lasting(ns: str) -> bool:
    """Whether this is the place of a graph that keeps its state between calls."""
    return ns.startswith("@")
