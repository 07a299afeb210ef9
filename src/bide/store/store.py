"""The store: every durable operation, one transaction each, written once for every database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Event as Signal
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from bide.clock import Clock, Instant, SystemClock, uuid7
from bide.errors import StoreError, StoreUnavailableError
from bide.store.borrowed import BorrowedConnection
from bide.store.database import Transaction
from bide.store.migrate import migrate
from bide.store.reads import LoggedAt, Whole, read_history, read_inside, read_thread, read_waits
from bide.store.rows import (
    CheckpointRow,
    EventRow,
    JournalRow,
    Lease,
    OpenWaitRow,
    RunRow,
    Stored,
    Taking,
    ThreadRow,
    Transition,
    WaitRow,
)
from bide.store.sqlite import SqliteDatabase
from bide.store.workers import BEAT_SECONDS, FORGET_AFTER, LEASE, this_worker
from bide.store.writes import (
    answer_asked,
    answer_waits,
    change_run,
    check_head,
    check_left,
    checkpoint_params,
    edit_checkpoint,
    end_run,
    forget_step,
    hold_lease,
    insert_thread,
    log_events,
    lost,
    open_wait,
    retire_step,
    taken_first,
    write_checkpoint,
    write_journal,
)
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.store.items import ItemStore

_EVERYTHING_OF_A_THREAD = (
    "delete_thread",
    "delete_runs",
    "delete_checkpoints",
    "delete_channels",
    "retire_journal",
    "delete_waits",
    "delete_events",
)


class Store:
    """Threads in a database.

    `Store.open("sqlite:///bide.db")` opens a file, and makes it if need be; `":memory:"` keeps everything in memory,
    with the same code. One store may be shared by any number of graphs and threads; several processes may open one
    file.
    """

    def __init__(self, database: SqliteDatabase, clock: Clock | None = None) -> None:
        self.database = database
        self.clock = clock or SystemClock()
        try:
            self.version = migrate(database, self.clock.now())
        except BaseException:
            database.close()
            raise
        self._worker = this_worker(self.clock.now())
        self._driven: set[str] = set()
        """The runs that this store object holds right now."""
        self._is_registered = False
        self._registering = Lock()
        self._stopped = Signal()

    @classmethod
    def open(cls, url: str, *, clock: Clock | None = None) -> Store:
        """Open a store by its URL: `sqlite:///relative.db`, `sqlite:////absolute.db`, or `:memory:`."""
        return Store(SqliteDatabase(path_of(url)), clock)

    @property
    def blocking(self) -> bool:
        """Whether calls may wait for a disk."""
        return self.database.blocking

    @cached_property
    def items(self) -> ItemStore:
        """The long-term store in the same database: what is to be remembered beyond one thread."""
        from bide.store.items import (
            ItemStore,  # a tenth of `import bide`, which whoever has no use for it need not spend
        )

        return ItemStore(self)

    # ── Taking a thread ────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, taking: Taking) -> tuple[str, Lease]:
        """Take a thread, new or waiting: answers, first checkpoint and lease, all or nothing. Return uid and lease."""
        now = self.clock.now()
        uid = taking.uid or _new_uid(now)
        run_id = uuid7(now) if taking.claim is None else taking.claim.run_id

        def take(tx: Transaction) -> Lease:
            if not self._is_registered:
                tx.run("forget_workers", {"horizon": now - FORGET_AFTER})
                tx.run("insert_worker", {**self._worker._asdict(), "lease_until": now + LEASE})
            if taking.uid is None:
                insert_thread(tx, taking, uid, now)
            lease = self._claim(tx, taking, run_id, now)
            check_left(tx, taking)
            answer_waits(tx, taking, now)
            if taking.forget:
                forget_step(tx, taking.thread_id)
            check_head(tx, taking.thread_id, taking.head)
            if taking.checkpoint is not None:
                write_checkpoint(tx, lease, taking.checkpoint, now)
            seq = taking.head if taking.checkpoint is None else taking.checkpoint.seq
            log_events(tx, taking.thread_id, lease.run_id, seq, taking.events, now)
            return lease

        self.database.check_present()
        # Before it is committed: from that moment on others in this process may look at it.
        self._driven.add(run_id)
        try:
            lease = self.database.write("begin", take)
        except BaseException:
            self._driven.discard(run_id)
            raise
        self._stay_alive()
        return uid, lease

    def _claim(self, tx: Transaction, taking: Taking, run_id: str, now: Instant) -> Lease:
        """Hold the one live run of the thread: the one that was read, or a new one."""
        thread_id, mine = taking.thread_id, self._worker.worker_id
        if taking.supersede is not None:
            change_run(tx, "supersede_run", taking.supersede, now)
        if taking.claim is not None:
            change_run(tx, "claim_run", taking.claim, now, worker_id=mine)
            return Lease(thread_id, run_id, taking.claim.epoch + 1)
        if tx.run("insert_run", {"run_id": run_id, "thread_id": thread_id, "worker_id": mine, "now": now}) != 1:
            raise taken_first(thread_id)
        return Lease(thread_id, run_id, 1)

    # ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, lease: Lease, transition: Transition) -> None:
        """Save one transition of a leased run: a step, a pause, the end. Refused if lease or head are not ours."""
        now, row = self.clock.now(), transition.checkpoint
        if row is not None and transition.is_plain:
            if self.database.write_one("commit", "write_checkpoint", checkpoint_params(lease, row, now)) != 1:
                raise lost(lease)
            return

        def save(tx: Transaction) -> None:
            if row is None:
                hold_lease(tx, lease)
            else:
                write_checkpoint(tx, lease, row, now)
            self._save_rest(tx, lease, transition, now)

        if transition.status is not RunStatus.RUNNING:
            self.database.check_present()
        self.database.write("commit", save)

    def let_go(self, lease: Lease) -> None:
        """Forget a run that is no longer driven here: if its end could not be written, others may take it at once."""
        self._driven.discard(lease.run_id)

    def _save_rest(self, tx: Transaction, lease: Lease, transition: Transition, now: Instant) -> None:
        for inner in transition.carried:
            write_checkpoint(tx, lease, inner, now)
        for prefix in transition.over:
            retire_step(tx, lease.thread_id, prefix)
        for line in transition.journal:
            write_journal(tx, lease, line, now)
        for wait in transition.waits:
            open_wait(tx, lease, wait, now)
        if transition.status is not RunStatus.RUNNING:
            end_run(tx, lease, transition.status, transition.error, now)
        seq = transition.head if transition.checkpoint is None else transition.checkpoint.seq
        log_events(tx, lease.thread_id, lease.run_id, seq, transition.events, now)

    def keep(self, lease: Lease, line: JournalRow) -> None:
        """Write one line of a task's journal."""
        now = self.clock.now()

        def save(tx: Transaction) -> None:
            hold_lease(tx, lease)
            write_journal(tx, lease, line, now)

        self.database.write("journal", save)

    def transact(self, lease: Lease, task_id: str, key: str, make: Callable[[Any], JournalRow]) -> bytes:
        """Let the user's own SQL and its line of the journal be one transaction; return what the line says.

        If the line is there already, because only the reply was lost and the node tries again, nothing is done.
        """
        now = self.clock.now()

        def save(tx: Transaction) -> bytes:
            hold_lease(tx, lease)
            done = tx.one("read_step", {"thread_id": lease.thread_id, "task_id": task_id, "key": key})
            if done is not None:
                return bytes(done[0])
            line = make(BorrowedConnection(tx.connection))
            write_journal(tx, lease, line, now)
            return line.body

        return self.database.write_alone("transact", save)

    def edit(self, taking: Taking, checkpoint: CheckpointRow) -> str:
        """Write one checkpoint without running anything; return the thread's uid."""
        now = self.clock.now()
        uid = taking.uid or _new_uid(now)

        def save(tx: Transaction) -> None:
            if taking.uid is None:
                insert_thread(tx, taking, uid, now)
            if taking.supersede is not None:
                change_run(tx, "supersede_run", taking.supersede, now)
                check_left(tx, taking)
            if taking.forget:
                forget_step(tx, taking.thread_id, taking.prefix)
            edit_checkpoint(tx, taking.thread_id, checkpoint, taking.head, now)
            answer_asked(tx, taking, now)
            for row in taking.inner:
                edit_checkpoint(tx, taking.thread_id, row, 0, now)
            log_events(tx, taking.thread_id, None, checkpoint.seq, taking.events, now)

        self.database.write("edit", save)
        return uid

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self, thread_id: str, seq: int | None, logged_at: LoggedAt) -> Stored | None:
        """Read a thread at its head, or at checkpoint `seq`, with what is known of the step that it is in."""
        now = self.clock.now()
        stored = self.database.read(lambda tx: read_thread(tx, thread_id, seq, logged_at, now))
        if stored is not None and stored.run is not None and self._is_left_behind(stored.run):
            stored = stored._replace(run=stored.run._replace(is_orphan=True))
        return stored

    def _is_left_behind(self, run: RunRow) -> bool:
        """Whether a run is leased to this very object, which does not drive it: its end could not be written."""
        return run.worker_id == self._worker.worker_id and run.run_id not in self._driven

    def load_inside(self, thread_id: str, ns: str, seq: int | None, logged_at: LoggedAt) -> tuple[int, Whole, Whole]:
        """Read a graph inside a task: its newest checkpoint, and the one at `seq`; see `read_inside`."""
        return self.database.read(lambda tx: read_inside(tx, thread_id, ns, seq, logged_at))

    def history(
        self, thread_id: str, ns: str, logged_at: LoggedAt, *, before: int, most: int
    ) -> list[tuple[CheckpointRow, Mapping[str, bytes]]]:
        """Read checkpoints, newest first, each with its large values."""
        return self.database.read(lambda tx: read_history(tx, thread_id, ns, logged_at, before, most))

    def journal(self, thread_id: str) -> tuple[JournalRow, ...]:
        """Read the journal of the step that a thread stands in."""
        rows = self.database.read(lambda tx: tx.all("read_journal", {"thread_id": thread_id}))
        return tuple(JournalRow(*row) for row in rows)

    def asked(self, thread_id: str) -> tuple[WaitRow, ...]:
        """Read whatever a thread has ever asked."""
        return self.database.read(lambda tx: read_waits(tx, thread_id, "read_all_waits"))

    def events(self, thread_id: str, *, after: int = 0, most: int = 1000) -> list[EventRow]:
        """Read the log of a thread, oldest first."""
        params = {"thread_id": str(thread_id), "after": after, "most": most}
        rows = self.database.read(lambda tx: tx.all("read_events", params))
        return [EventRow(kind, body, number, seq, run_id, at) for number, seq, run_id, kind, at, body in rows]

    def open_waits(self, *, most: int = 50) -> list[OpenWaitRow]:
        """List who waits, longest first."""
        rows = self.database.read(lambda tx: tx.all("list_open_waits", {"most": most}))
        return [OpenWaitRow(*row) for row in rows]

    def threads(self, *, most: int = 100) -> list[ThreadRow]:
        """List threads, newest first."""
        return [ThreadRow(*row) for row in self.database.read(lambda tx: tx.all("list_threads", {"most": most}))]

    def waiting_threads(self, graph: str) -> list[str]:
        """Name the threads of a graph that wait for something."""
        return [str(row[0]) for row in self.database.read(lambda tx: tx.all("list_waiting", {"graph": graph}))]

    def thread_of(self, uid: str) -> str | None:
        """Find the thread that a checkpoint's id speaks of."""
        row = self.database.read(lambda tx: tx.one("find_thread", {"uid": uid}))
        return None if row is None else str(row[0])

    # ── The rest ───────────────────────────────────────────────────────────────────────────────────────────────────

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything about a thread. A run that is under way on it finds its lease gone and writes nothing."""

        def delete(tx: Transaction) -> None:
            for query in _EVERYTHING_OF_A_THREAD:
                tx.run(query, {"thread_id": str(thread_id)})

        self.database.write("delete", delete)

    def close(self) -> None:
        """Let go of the database. Threads that wait lose nothing: they are in it."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        try:
            if self._is_registered and self.blocking:
                # Without its worker's row, a run that was left in the middle is free for others at once.
                self.database.write("leave", lambda tx: tx.run("delete_worker", {"worker_id": self._worker.worker_id}))
        except StoreError:
            # A disk that is full or gone must not keep the store open; the lease runs out with this process.
            pass
        finally:
            self.database.close()

    def __enter__(self) -> Store:
        """Use the store in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def _stay_alive(self) -> None:
        """Once this process is known as a worker, keep its lease alive."""
        if self._is_registered:
            return
        with self._registering:
            if not self._is_registered and self.blocking:
                Thread(target=self._beat, name="bide-heartbeat", daemon=True).start()
            self._is_registered = True

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            try:
                self.database.write("beat", self._renew)
            except StoreError:
                # A beat that fails is tried again; if none succeeds, the lease runs out and others take over.
                continue

    def _renew(self, tx: Transaction) -> None:
        tx.run("renew_lease", {"worker_id": self._worker.worker_id, "lease_until": self.clock.now() + LEASE})


def path_of(url: str) -> str:
    """Return the path in a store's URL."""
    if url in (":memory:", "sqlite://", "sqlite:///:memory:"):
        return ":memory:"
    url = str(url)
    if url.startswith("sqlite:///") and url != "sqlite:///":
        return url.removeprefix("sqlite:///")
    if url.startswith(("postgresql://", "postgres://")):
        raise StoreUnavailableError(
            "PostgreSQL stores come with a later version; this one has 'sqlite:///bide.db' and ':memory:'."
        )
    raise StoreUnavailableError(
        f"{url!r} is no URL of a store. Use 'sqlite:///bide.db' (a file in this folder), "
        f"'sqlite:////var/lib/bide.db' (an absolute path) or ':memory:'."
    )


def _new_uid(now: Instant) -> str:
    return uuid7(now).replace("-", "")[-20:]
