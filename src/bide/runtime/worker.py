"""A worker: claims ready runs in batches, drives each in a thread of its own, and tends to what is due meanwhile."""

from __future__ import annotations

import logging
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import Any

from bide.clock import elapsed
from bide.errors import GraphError, StoreError
from bide.runtime.about import concerning
from bide.runtime.driving import Driven, drive
from bide.runtime.registered import Graphs
from bide.runtime.tending import Tender
from bide.store import Store
from bide.store.lanes import DEFAULT_QUEUE
from bide.store.queue_rows import Claim
from bide.types import RunControl

logger = logging.getLogger("bide.worker")

CONCURRENCY = 10
POLL_SECONDS = 1.0
"""How long a worker naps when nothing rings. A doorbell only makes that shorter."""
GRACE_SECONDS = 30.0
SHORTEST_NAP = 0.01


Around = Callable[[Claim], AbstractContextManager[Callable[[Driven], None]]]
"""Entered before a run is driven, and left after; what it gives is told how that went."""


@contextmanager
def _nothing(claim: Claim) -> Iterator[Callable[[Driven], None]]:
    yield lambda driven: None


def _ids_of(claim: Claim) -> dict[str, str]:
    return {"thread_id": claim.lease.thread_id, "run_id": claim.lease.run_id, "graph": claim.graph}


class Worker:
    """Drives the runs of an application's graphs. Any number of them may share a database, on any machines."""

    def __init__(
        self,
        store: Store,
        graphs: Graphs,
        tender: Tender,
        *,
        concurrency: int = CONCURRENCY,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        poll: float = POLL_SECONDS,
        grace: float = GRACE_SECONDS,
    ) -> None:
        if concurrency < 1:
            raise GraphError(f"concurrency={concurrency!r}: a worker drives at least one run at a time.")
        if poll <= 0 or grace < 0:
            raise GraphError(f"poll={poll!r}, grace={grace!r}: give seconds; a worker that never naps spins.")
        self.store = store
        self.graphs = graphs
        self.tender = tender
        self.concurrency = concurrency
        self.lanes = graphs.lanes(queues)
        self.poll = poll
        self.grace = grace
        self.driven = 0
        """How many runs were driven to a rest."""
        self.outcomes: Counter[str] = Counter()
        """And how they were left, as in `Driven.outcome`."""
        self.store_errors = 0
        """How often the database said no."""
        self.around: Around = _nothing
        """What is done around each drive: whoever traces runs sets it, before the worker begins."""
        self._busy: dict[Claim, RunControl] = {}
        self._state = threading.Lock()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._waiting: SimpleQueue[tuple[Claim, RunControl] | None] = SimpleQueue()
        self._main: threading.Thread | None = None
        self._working = threading.Event()

    # ── Running ────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, *, handle_signals: bool = True) -> None:
        """Work until `stop` is called, or SIGTERM or Ctrl-C comes; then give back what is unfinished, and return."""
        if self._main is not threading.current_thread():
            self._stopping.clear()
        with _Signals(self) if handle_signals else nullcontext():
            self._enlist()
            self._assist(self._listen, "bide-listener")
            self._assist(self._keep_tending, "bide-tender")
            for number in range(self.concurrency):
                self._assist(self._keep_driving, f"bide-run-{number}")
            self._working.set()
            while not self._stopping.is_set():
                self._claim_some()
            self._drain()

    def _enlist(self) -> None:
        """Become known as a worker, as soon as the database can be reached."""
        while not self._stopping.is_set():
            try:
                return self.store.enlist()
            except StoreError as problem:
                self.store_errors += 1
                logger.warning("This worker is not known yet: %s", problem)
                self._stopping.wait(self.poll)

    def start(self) -> Worker:
        """Work in a thread of its own; `stop` ends it."""
        self._stopping.clear()
        self._main = threading.Thread(
            target=self.run, kwargs={"handle_signals": False}, name="bide-worker", daemon=True
        )
        self._main.start()
        return self

    def stop(self) -> None:
        """Claim nothing more; let what runs come to its next step, give it back, and end."""
        self._stopping.set()
        self._news.set()
        if self._main is not None and self._main is not threading.current_thread():
            self._main.join(self.grace + 10)

    def __enter__(self) -> Worker:
        """Work while the block runs."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop, and wait for it."""
        self.stop()

    @property
    def is_working(self) -> bool:
        """Whether it is known as a worker, and claims."""
        return self._working.is_set() and not self._stopping.is_set()

    @property
    def busy(self) -> int:
        """How many runs are driven right now."""
        return len(self._busy)

    # ── Claiming ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim_some(self) -> None:
        """Claim as many runs as there are free slots, or nap until there is news."""
        self._news.clear()
        free = self.concurrency - self.busy
        claims: list[Claim] = []
        if free > 0:
            try:
                claims = self.store.claim(self.lanes, free)
            except StoreError as problem:
                self.store_errors += 1
                logger.warning("Nothing could be claimed: %s", problem)
            except Exception:  # whatever it was: a worker that claims nothing any more must not look alive
                logger.exception("Claiming was broken off; it is tried again.")
        for claim in claims:
            control = RunControl()
            with self._state:
                self._busy[claim] = control
            self._waiting.put((claim, control))
        if len(claims) < free or free < 1:
            self._news.wait(self._nap())

    def _nap(self) -> float:
        """Nap until the poll is due, or a run that was put off may be claimed."""
        try:
            ready = self.store.next_ready(self.lanes) if self.busy < self.concurrency else None
        except StoreError:
            return self.poll
        if ready is None:
            return self.poll
        # What is due and was not claimed is being claimed by others: never spin on it.
        return max(SHORTEST_NAP, min(self.poll, (ready - self.store.clock.now()) / 1000))

    def _keep_driving(self) -> None:
        """Drive one run after the other: one of the slots of this worker."""
        while True:
            task = self._waiting.get()
            if task is None:
                return
            claim, control = task
            outcome = "broken off"
            try:
                with concerning(partial(_ids_of, claim)):
                    outcome = self._drive(claim, control)
            except BaseException:  # a node that calls sys.exit() ends its run, and not the slot that drives it
                logger.exception("Run %s on thread %r was broken off.", claim.lease.run_id, claim.lease.thread_id)
            finally:
                with self._state:
                    self._busy.pop(claim, None)
                    self.driven += 1
                    self.outcomes[outcome] += 1
                self._news.set()
                if claim.limit_key is not None:
                    self.store.ring()  # others may have waited for its limit

    def _drive(self, claim: Claim, control: RunControl) -> str:
        thread_id = claim.lease.thread_id
        logger.info("Thread %s (%s) is driven.", thread_id, claim.graph)
        with self.around(claim) as tell:
            driven = drive(self.store, self.graphs, claim, control)
            tell(driven)
        logger.info("Thread %s (%s): %s.", thread_id, claim.graph, driven.outcome)
        return driven.outcome

    # ── Beside it ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _assist(self, work: Any, name: str) -> None:
        # As daemons: a node that hangs must not keep the process from ending.
        threading.Thread(target=work, name=name, daemon=True).start()

    def _listen(self) -> None:
        """Pass on what the doorbell tells."""
        while not self._stopping.is_set():
            if self.store.doorbell.wait(self.poll):
                self._news.set()
                self._stopping.wait(SHORTEST_NAP)  # a bell that was closed rings all the time

    def _keep_tending(self) -> None:
        """Look at the clock and after others, for as long as this worker works."""
        while not self._stopping.is_set():
            pause = self.poll
            try:
                tended = self.tender.tend()
                self._let_go_of_lost()
                if tended.is_something:
                    self._news.set()
                pause = 0.0 if tended.is_full else self.tender.seconds_until_due(self.poll)
            except StoreError as problem:
                self.store_errors += 1
                logger.warning("The clock could not be looked at: %s", problem)
            except Exception:  # whatever it was, the next round may go well, and nobody else would look at the clock
                logger.exception("Tending was broken off; it is tried again.")
            # A deadline that another worker is just settling is due and yet not ours: never spin on it.
            self._stopping.wait(max(pause, SHORTEST_NAP))

    def _let_go_of_lost(self) -> None:
        """Ask runs that are no longer ours, because they were cancelled or taken over, to stop early."""
        with self._state:
            busy = dict(self._busy)
        if not busy:
            return
        held = self.store.driven()
        for claim, control in busy.items():
            if (claim.lease.run_id, claim.lease.epoch) not in held:
                control.request_drain("the run is no longer this worker's")

    # ── Stopping ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _drain(self) -> None:
        """Let what runs come to its next step and be given back; what takes longer than the grace is left to others."""
        with self._state:
            for control in self._busy.values():
                control.request_drain("the worker is stopping")
        deadline = elapsed() + self.grace
        while self.busy and elapsed() < deadline:
            self._news.clear()
            if self.busy:
                self._news.wait(0.1)
        for _ in range(self.concurrency):
            self._waiting.put(None)
        if self.busy:
            logger.warning("%d runs did not come to a step in time; other workers will take them over.", self.busy)


class _Signals:
    """SIGTERM and SIGINT ask a worker to stop; a second one ends it at once."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._ask)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self._worker._stopping.is_set():
            raise KeyboardInterrupt
        logger.info("Stopping after the steps that run now (signal %d).", number)
        self._worker._stopping.set()
        self._worker._news.set()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
