"""When transitions reach the database: at once, a little later in order, or when the run ends or pauses.

A pause, an end and a journaled step are always durable before anybody hears of them; the modes differ only in the steps
between.
"""

from __future__ import annotations

from queue import Queue
from threading import Lock, Thread

from bide.store import Store
from bide.store.rows import JournalRow, Lease, Transition
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
        self._flushing = Lock()
        self._held: Transition | None = None
        self._results: tuple[JournalRow, ...] = ()

    def save(self, lease: Lease, transition: Transition) -> None:
        """Save a transition as the mode asks; a pause or an end is saved at once, after all that came before."""
        if self.mode == "sync":
            self.store.commit(lease, transition)
        elif transition.status is not RunStatus.RUNNING:
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

    def record(self, lease: Lease, rows: tuple[JournalRow, ...]) -> None:
        """Save results of finished tasks whose siblings still run."""
        if self.mode == "exit":
            self._results += rows
        elif self.mode == "async":
            self._enqueue(lease, Transition(0, journal=rows))
        else:
            self.store.commit(lease, Transition(0, journal=rows))

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
        """Keep the newest checkpoint in place of the one before, and every large value that was written since."""
        held, new = self._held, transition.checkpoint
        if transition.is_over:
            self._results = ()
        if held is None:
            self._held = transition
            return
        old = held.checkpoint
        if new is not None and old is not None:
            latest = {channel[0]: channel for channel in (*old.channels, *new.channels)}
            new = new._replace(parent=old.parent, channels=tuple(latest.values()))
        self._held = transition._replace(
            head=held.head,
            checkpoint=new or old,
            events=(*held.events, *transition.events),
            is_over=held.is_over or transition.is_over,
        )

    def _write_held(self, lease: Lease) -> None:
        if self._held is None and not self._results:
            return
        held, self._held = self._held or Transition(0), None
        results, self._results = self._results, ()
        self.store.commit(lease, held._replace(journal=(*results, *held.journal)))
