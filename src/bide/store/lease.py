"""The lease of a worker: renewed from its own thread, and not believed in for a moment longer than others do.

One rule decides what a worker may still do. Each beat renews the lease and asks, in the same transaction, which runs
are still leased to this worker: what is missing there is lost. If there was no lease to renew, everything is lost, and
the worker has a new name for what it takes from then on. Between two beats it trusts itself until shortly before its
lease runs out, counted from the moment at which the last beat was sent; after that it asks before it does anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, Protocol

from bide.clock import Clock, Instant, elapsed
from bide.errors import LeaseLostError, StoreError
from bide.store.database import Database, Row, Transaction
from bide.store.rows import Lease
from bide.store.workers import FORGET_AFTER, LEASE_SECONDS, NO_LEASE, Worker, this_worker

BEATS = 3
"""How often in a lease it is renewed."""
MARGIN = 0.1
"""The part of a lease, at its end, in which its holder believes in it no more: clocks agree to a round trip only."""
SOON = 0.25
"""After what part of the time between two beats one that failed is tried again."""
LAST_PATIENCE = 2.0
"""Seconds for which a store that is closed waits for a beat that is under way."""


class Renewal(NamedTuple):
    """What a beat has found."""

    is_known: bool
    """Whether there was a lease to renew."""
    driven: frozenset[Row]
    """Run and epoch of all that is leased to the worker."""


class Lifeline(Protocol):
    """The way on which a worker says that it lives."""

    def renew(self, params: Mapping[str, Any]) -> Renewal:
        """Renew a lease, and tell what is leased; StoreError if the database cannot be reached in time."""
        ...

    def close(self) -> None:
        """Let go of what is held for it."""
        ...


class SharedLifeline:
    """Beats among the other writes of a database: a file has no connections that could be used up, or break."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def renew(self, params: Mapping[str, Any]) -> Renewal:
        """Renew a lease in a transaction."""

        def beat(tx: Transaction) -> Renewal:
            is_known = tx.run("renew_lease", params) == 1
            return Renewal(is_known, frozenset(tx.all("read_driven", params)))

        return self._database.write("beat", beat)

    def close(self) -> None:
        """There is nothing of its own."""


class _Drive:
    """A run that this process drives."""

    __slots__ = ("epoch", "is_committed")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.is_committed = False


class Taken:
    """What is being taken in one transaction."""

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper
        self.worker_id = ""
        """In whose name."""
        self.leases: list[Lease] = []
        self.enlists = False

    def begin(self, tx: Transaction, now: Instant) -> str:
        """Begin, perhaps again, and return the name of the worker; if the database does not know it, it is told."""
        self.drop()
        worker, self.enlists = self._keeper.introduced()
        self.worker_id = worker.worker_id
        if self.enlists:
            tx.send("forget_workers", {"horizon": now - FORGET_AFTER})
            tx.send("insert_worker", {**worker._asdict(), "lease_until": self._keeper.lease_until(now)})
        return self.worker_id

    def add(self, lease: Lease) -> None:
        """Say what is taken, before it is committed: from that moment on others in this process may look at it."""
        self.leases.append(lease)
        self._keeper.note(lease)

    def drop(self) -> None:
        """Take it all back."""
        for lease in self.leases:
            self._keeper.let_go(lease)
        self.leases = []


class LeaseKeeper:
    """Keeps the lease of one store object, and knows what it holds."""

    def __init__(self, database: Database, clock: Clock, seconds: float = LEASE_SECONDS) -> None:
        self.seconds = seconds
        self._database = database
        self._clock = clock
        self._beats = database.blocking
        self._worker = this_worker(clock.now())
        self._driven: dict[str, _Drive] = {}
        self._is_known = False
        self._sure_until = 0.0
        self._steady_from = 0.0
        self._tries = 0
        self._state = Lock()
        self._beating = Lock()
        self._lifeline: Lifeline | None = None
        self._thread: Thread | None = None
        self._stopped = Event()

    @property
    def worker_id(self) -> str:
        """The name under which this store takes runs at present."""
        return self._worker.worker_id

    def lease_until(self, now: Instant) -> Instant:
        """Return until when a lease lasts that is given now."""
        return now + int(self.seconds * 1000) if self._beats else NO_LEASE

    # ── Taking and letting go ──────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def taking(self) -> Iterator[Taken]:
        """Hold what is taken in the block from before it is committed; drop it if the block fails.

        In the transaction call `taken.begin(tx, now)` first, for the name of the worker, and `taken.add(lease)` for
        each run.
        """
        if self._is_known and not self.is_held():
            self._ask()
        taken, sent_at = Taken(self), elapsed()
        try:
            yield taken
        except BaseException:
            taken.drop()
            raise
        self._confirm(taken, sent_at)

    def _confirm(self, taken: Taken, sent_at: float) -> None:
        with self._state:
            if taken.worker_id != self.worker_id:
                # Meanwhile that worker was laid off, and what it took is anybody's.
                return
            for lease in taken.leases:
                drive = self._driven.get(lease.run_id)
                if drive is not None and drive.epoch == lease.epoch:
                    drive.is_committed = True
            if taken.enlists and not self._is_known:
                self._is_known = True
                self._extend(sent_at)
        self._stay_alive()

    def introduced(self) -> tuple[Worker, bool]:
        """Return who takes, and whether the database has yet to be told."""
        with self._state:
            return self._worker, not self._is_known

    def note(self, lease: Lease) -> None:
        """Remember that a run is driven here."""
        with self._state:
            self._driven[lease.run_id] = _Drive(lease.epoch)

    def let_go(self, lease: Lease) -> None:
        """Forget a run that is no longer driven here."""
        with self._state:
            if self.holds(lease):
                del self._driven[lease.run_id]

    def drives(self, run_id: str) -> bool:
        """Say whether somebody in this store object drives a run right now."""
        return run_id in self._driven

    def holds(self, lease: Lease) -> bool:
        """Say whether a run is driven here under this very lease, as far as is known."""
        drive = self._driven.get(lease.run_id)
        return drive is not None and drive.epoch == lease.epoch

    # ── Being sure ─────────────────────────────────────────────────────────────────────────────────────────────────

    def is_held(self) -> bool:
        """Say whether everybody else must still believe that this worker lives."""
        return not self._beats or elapsed() < self._sure_until

    def is_steady(self) -> bool:
        """Say whether this worker may judge others: one that has slept itself gives them the time of a beat first."""
        return (self.is_held() or not self._is_known) and elapsed() >= self._steady_from

    def check(self, lease: Lease) -> None:
        """Raise LeaseLostError unless a run is surely ours; when that is in doubt, the database is asked."""
        if self.holds(lease) and not self.is_held():
            self._ask()
        if not self.holds(lease):
            raise LeaseLostError(
                f"Run {lease.run_id!r} on thread {lease.thread_id!r} is no longer leased to this worker; another one "
                f"goes on with it. Nothing was written."
            )
        if not self.is_held():
            raise LeaseLostError(
                f"{self._database.path!r} could not be reached for almost as long as a lease lasts ({self.seconds:g} "
                f"seconds), so another worker may go on with run {lease.run_id!r} on thread {lease.thread_id!r}. No "
                f"further step was made, and nothing was written. When it is back, invoke(None, config) goes on."
            )

    def _ask(self) -> None:
        """Beat at once, unless somebody has while we waited for our turn."""
        tries = self._tries
        with self._beating:
            if self._tries == tries:
                self._beat()

    # ── Beating ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _stay_alive(self) -> None:
        """Once this worker is known, keep its lease alive."""
        if self._thread is not None or not self._beats:
            return
        with self._state:
            if self._thread is None and not self._stopped.is_set():
                self._thread = Thread(target=self._keep_beating, name="bide-heartbeat", daemon=True)
                self._thread.start()

    def _keep_beating(self) -> None:
        pause = every = self.seconds / BEATS
        try:
            while not self._stopped.wait(pause):
                with self._beating:
                    pause = every if self._beat() else every * SOON
        finally:
            with self._beating:
                if self._lifeline is not None:
                    self._lifeline.close()

    def _beat(self) -> bool:
        """Renew the lease and look what it holds; return whether that went well."""
        self._tries += 1
        if self._stopped.is_set() or not self._is_known:
            return True
        with self._state:
            held = [Lease("", run_id, drive.epoch) for run_id, drive in self._driven.items() if drive.is_committed]
        sent_at = elapsed()
        params = {"worker_id": self.worker_id, "lease_until": self.lease_until(self._clock.now())}
        try:
            if self._lifeline is None:
                self._lifeline = self._database.lifeline(self.seconds)
            renewal = self._lifeline.renew(params)
        except StoreError:
            # It is tried again; if no beat succeeds, the lease runs out, here a little earlier than for others.
            return False
        with self._state:
            if renewal.is_known:
                self._drop_lost(held, renewal)
                self._extend(sent_at)
            else:
                self._begin_anew()
        return True

    def _drop_lost(self, held: list[Lease], renewal: Renewal) -> None:
        for lease in held:
            if self.holds(lease) and (lease.run_id, lease.epoch) not in renewal.driven:
                del self._driven[lease.run_id]

    def _extend(self, sent_at: float) -> None:
        if 0 < self._sure_until <= sent_at:
            self._steady_from = sent_at + self.seconds / BEATS
        self._sure_until = sent_at + self.seconds * (1 - MARGIN)

    def _begin_anew(self) -> None:
        """Take another name: what was taken under the old one is lost, and nothing of it comes back."""
        self._worker = this_worker(self._clock.now())
        self._driven.clear()
        self._is_known = False
        self._sure_until = 0.0
        self._steady_from = elapsed() + self.seconds / BEATS

    def leave(self) -> None:
        """Stop, and let others have at once what was left in the middle."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(LAST_PATIENCE)
        if not self._is_known or not self._beats:
            return
        # Without its worker's row, a run that was left in the middle is free for others at once. A disk that is full or
        # gone must not keep the store open: then the lease runs out by itself.
        with suppress(StoreError):
            self._database.write("leave", lambda tx: tx.run("delete_worker", {"worker_id": self.worker_id}))
