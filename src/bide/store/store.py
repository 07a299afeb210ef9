"""The store: every durable operation, one transaction each, written once for every database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Event as Signal
from typing import TYPE_CHECKING, Any, Unpack

from bide.clock import Clock, uuid7
from bide.errors import EncryptionError
from bide.store.api_keys import ApiKeys
from bide.store.audit import Auditing
from bide.store.bodies import LARGEST, Bodies
from bide.store.borrowed import BorrowedConnection
from bide.store.claiming import Claiming, Turn
from bide.store.database import Database, Transaction
from bide.store.deletion import check_parent, delete_everything, end_before_deletion
from bide.store.delivering import Delivering
from bide.store.ending import ENDED, end_run, tell_parent, tell_whoever_waits
from bide.store.facts import head_of
from bide.store.lease import LeaseKeeper, Taken
from bide.store.looking_after import LookedAfter
from bide.store.migrate import migrate
from bide.store.opening import open_database
from bide.store.options import StoreOptions, check_options
from bide.store.reads import (
    History,
    read_events,
    read_inside,
    read_journal,
    read_open_waits,
    read_step,
    read_thread,
    read_waits,
)
from bide.store.registering import hold_correlations, register
from bide.store.rows import (
    CheckpointRow,
    EventRow,
    Found,
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
from bide.store.schedules import Scheduling
from bide.store.seal import ENCRYPTED, Checksums, Seal
from bide.store.starting import Starting, new_uid
from bide.store.waking import Waking
from bide.store.workers import LEASE_SECONDS
from bide.store.writes import Writing, lost, plain_step
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.store.doorbell import Doorbell
    from bide.store.items import ItemStore
    from bide.store.retention import Retention


class Store(ApiKeys, Auditing, LookedAfter, Starting, Claiming, Waking, Delivering, Scheduling):
    """Threads in a database.

    `Store.open("sqlite:///bide.db")` opens a file, and makes it if need be; `":memory:"` keeps everything in memory,
    with the same code. One store may be shared by any number of graphs and threads; several processes may open one
    file.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock | None = None,
        *,
        encryption: Seal | None = None,
        owner: str = "",
        largest_value: int = LARGEST,
        retention: Retention | None = None,
        lease: float = LEASE_SECONDS,
    ) -> None:
        self.database = database
        self.clock = clock or database.clock()
        self.bodies = Bodies(encryption or Checksums(), owner, largest_value)
        try:
            self.version = migrate(database, self.clock.now())
            if encryption is None:
                self._check_that_no_key_is_needed()
        except BaseException:
            database.close()
            raise
        self.keeper = LeaseKeeper(database, self.clock, lease)
        self.versions: dict[str, str] = {}
        """The version that runs of a graph are pinned to when they are started here."""
        self.turns: dict[str, Turn] = {}
        """Whose turn it was last, in each lane."""
        self._stopped = Signal()
        self.retention = retention
        if retention is not None:
            from bide.store.upkeep import tidy_up_from_time_to_time  # only those who let go pay for it

            tidy_up_from_time_to_time(self, retention, self._stopped)

    @classmethod
    def open(
        cls,
        url: Any,
        *,
        schema: str | None = None,
        most_connections: int | None = None,
        **options: Unpack[StoreOptions],
    ) -> Store:
        """Open a store by its URL, or over a `psycopg_pool.ConnectionPool` that is open.

        URLs are `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://user:password@host:5432/database` and
        `:memory:`. In PostgreSQL, `schema` names where the tables are, and is made if need be; `most_connections` is
        how many the store opens at once, at most.

        `encryption=Encryption(…)` encrypts what is stored. Values of more than `largest_value` bytes are refused. Large
        values are kept once for all threads of an `owner`. `retention=Retention(keep_last=50, ttl="30d")` lets old
        checkpoints and threads go by themselves; without it, nothing is ever deleted. `lease` is for how many seconds
        this process counts as alive after it was last heard of; it is heard of three times in that time.
        """
        check_options(options)
        return Store(open_database(url, schema=schema, most_connections=most_connections), **options)

    def _check_that_no_key_is_needed(self) -> None:
        """Refuse to write what everybody can read among what was encrypted."""
        row = self.database.read(lambda tx: tx.one("peek", {}))
        if row is not None and row[0][:1] == ENCRYPTED:
            raise EncryptionError(
                f"What is stored in {self.database.path!r} is encrypted. Open it with its keys: "
                f"Store.open(…, encryption=Encryption(…)). Without them nothing could be read, and what is written "
                f"would lie there in the open."
            )

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

    @cached_property
    def doorbell(self) -> Doorbell:
        """What wakes whoever waits for something to become ready, in this process and in others."""
        return self.database.doorbell()

    # ── Taking a thread ────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, taking: Taking) -> tuple[str, Lease]:
        """Take a thread, new or waiting: answers, first checkpoint and lease, all or nothing. Return uid and lease."""
        now = self.clock.now()
        uid = taking.uid or new_uid(now)
        if taking.lease is not None:
            self._enter(taking, taking.lease, now)
            return uid, taking.lease
        run_id = uuid7(now) if taking.claim is None else taking.claim.run_id

        def take(tx: Transaction, taken: Taken) -> Lease:
            writing = Writing(tx, self.bodies, now)
            worker_id = taken.begin(tx, now)
            writing.hold_thread(taking, uid)
            lease = self._claim(writing, taking, run_id, worker_id)
            taken.add(lease)
            writing.check_left(taking)
            writing.note_settled(taking, lease)
            writing.answer_waits(taking)
            if taking.forget:
                writing.forget_step(taking.thread_id)
            writing.check_head(taking.thread_id, taking.head)
            check_parent(tx, taking.thread_id, taking.checkpoint, taking.head)
            if taking.checkpoint is not None:
                writing.write_checkpoint(lease, taking.checkpoint)
            seq = taking.head if taking.checkpoint is None else taking.checkpoint.seq
            writing.log_events(taking.thread_id, lease.run_id, seq, taking.events)
            return lease

        self.database.check_present()
        with self.keeper.taking() as taken:
            lease = self.database.write("begin", lambda tx: take(tx, taken))
        return uid, lease

    def _claim(self, writing: Writing, taking: Taking, run_id: str, worker_id: str) -> Lease:
        """Hold the one live run of the thread: the one that was read, or a new one."""
        thread_id = taking.thread_id
        if taking.supersede is not None:
            writing.change_run("supersede_run", taking.thread_id, taking.supersede)
        if taking.claim is not None:
            writing.change_run("claim_run", thread_id, taking.claim, worker_id=worker_id)
            return Lease(thread_id, run_id, taking.claim.epoch + 1)
        writing.insert_run(taking, run_id, worker_id)
        return Lease(thread_id, run_id, 1)

    def _enter(self, taking: Taking, lease: Lease, now: int) -> None:
        """Begin with a run that was claimed before: its first checkpoint, if there is one, and its input is used up."""

        def enter(tx: Transaction) -> None:
            writing = Writing(tx, self.bodies, now)
            tx.send("hold_thread", {"thread_id": taking.thread_id})
            writing.hold_lease(lease)
            writing.answer_waits(taking)
            if taking.forget:
                writing.forget_step(taking.thread_id)
            check_parent(tx, taking.thread_id, taking.checkpoint, taking.head)
            if taking.checkpoint is not None:
                writing.write_checkpoint(lease, taking.checkpoint)
            tx.send("consume_input", {"thread_id": lease.thread_id, "run_id": lease.run_id})
            seq = taking.head if taking.checkpoint is None else taking.checkpoint.seq
            writing.log_events(taking.thread_id, lease.run_id, seq, taking.events)

        if taking.checkpoint is not None or taking.forget or taking.events or taking.answers:
            self.database.write("enter", enter)

    # ── As a worker ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def worker_id(self) -> str:
        """Who this store is at present among those who drive runs."""
        return self.keeper.worker_id

    def enlist(self) -> None:
        """Make this process known as a worker, before it has anything to do."""
        with self.keeper.taking() as taken:
            self.database.write("enlist", lambda tx: taken.begin(tx, self.clock.now()))

    def ring(self) -> None:
        """Let workers that nap know that there may be something to do."""
        self.doorbell.ring()

    # ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, lease: Lease, transition: Transition) -> None:
        """Save one transition of a leased run: a step, a pause, the end. Refused if lease or head are not ours."""
        now, row = self.clock.now(), transition.checkpoint
        if row is not None and transition.is_plain:
            params = plain_step(lease, row, self.bodies, now)
            if params is not None:
                if self.database.write_one("commit", "write_checkpoint", params, proof="prove_checkpoint") != 1:
                    raise lost(lease)
                return

        ended: list[str] = []

        def save(tx: Transaction) -> None:
            writing = Writing(tx, self.bodies, now)
            # In this order, as everybody does: two who wait for each other's rows would have to begin again.
            if transition.waits:
                hold_correlations(writing, transition.waits, transition.owner)
            seq = transition.head if row is None else row.seq
            writing.log_events(lease.thread_id, lease.run_id, seq, transition.events)
            if row is None:
                writing.hold_lease(lease)
            else:
                writing.write_checkpoint(lease, row)
            _save_rest(writing, lease, transition, seq)
            ended[:] = _ended(writing, lease, transition)

        if transition.status is not RunStatus.RUNNING:
            self.database.check_present()
        self.database.write("commit", save)
        self.after_end(ended)
        if transition.status is RunStatus.READY or ended:
            self.ring()

    def tell(self, lease: Lease, lines: Sequence[EventRow]) -> None:
        """Add to the log what a run tells in the middle of a step.

        Nobody saves a step of the run meanwhile: a line stands behind every checkpoint that was there before it, so
        that all who read the log, early or late, read it in one order.
        """
        now = self.clock.now()

        def save(tx: Transaction) -> None:
            writing = Writing(tx, self.bodies, now)
            tx.send("hold_thread", {"thread_id": lease.thread_id})
            tx.expect("hold_run", lease._asdict(), lambda _: lost(lease))
            writing.log_events(lease.thread_id, lease.run_id, head_of(tx, lease.thread_id), lines)

        self.database.write("tell", save)

    def let_go(self, lease: Lease) -> None:
        """Forget a run that is no longer driven here: if its end could not be written, others may take it at once."""
        self.keeper.let_go(lease)

    def check_held(self, lease: Lease) -> None:
        """Raise LeaseLostError unless a run is surely ours: what has an effect outside must not begin otherwise."""
        self.keeper.check(lease)

    def keep(self, lease: Lease, line: JournalRow) -> None:
        """Write one line of a task's journal."""
        now = self.clock.now()

        def save(tx: Transaction) -> None:
            writing = Writing(tx, self.bodies, now)
            writing.hold_lease(lease)
            writing.write_journal(lease, line)

        self.database.write("journal", save)

    def transact(self, lease: Lease, task_id: str, key: str, make: Callable[[Any], JournalRow]) -> bytes:
        """Let the user's own SQL and its line of the journal be one transaction; return what the line says.

        If the line is there already, because only the reply was lost and the node tries again, nothing is done.
        """
        now = self.clock.now()

        def save(tx: Transaction) -> bytes:
            writing = Writing(tx, self.bodies, now)
            writing.hold_lease(lease)
            done = read_step(tx, self.bodies, lease.thread_id, task_id, key)
            if done is not None:
                return done
            line = make(BorrowedConnection(tx.connection))
            writing.write_journal(lease, line)
            return line.body

        return self.database.write_alone("transact", save)

    def edit(self, taking: Taking, checkpoint: CheckpointRow) -> str:
        """Write one checkpoint without running anything; return the thread's uid."""
        now = self.clock.now()
        uid = taking.uid or new_uid(now)

        def save(tx: Transaction) -> None:
            writing = Writing(tx, self.bodies, now)
            writing.hold_thread(taking, uid)
            if taking.supersede is not None:
                writing.change_run("supersede_run", taking.thread_id, taking.supersede)
                writing.check_left(taking)
                tx.send("promote_next", {"thread_id": taking.thread_id, "now": now})
            if taking.forget:
                writing.forget_step(taking.thread_id, taking.prefix)
            check_parent(tx, taking.thread_id, checkpoint, taking.head)
            writing.edit_checkpoint(taking.thread_id, checkpoint, taking.head)
            writing.answer_asked(taking)
            for row in taking.inner:
                writing.edit_checkpoint(taking.thread_id, row, 0)
            writing.log_events(taking.thread_id, None, checkpoint.seq, taking.events)

        self.database.write("edit", save)
        return uid

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self, thread_id: str, seq: int | None) -> Stored | None:
        """Read a thread at its head, or at checkpoint `seq`, with what is known of the step that it is in."""
        now = self.clock.now()
        stored = self.database.read(lambda tx: read_thread(tx, self.bodies, thread_id, seq, now))
        if stored is not None and stored.run is not None and self._is_left_behind(stored.run):
            stored = stored._replace(run=stored.run._replace(is_orphan=True))
        return stored

    def _is_left_behind(self, run: RunRow) -> bool:
        """Whether a run is leased to this very object, which does not drive it: its end could not be written."""
        return run.worker_id == self.keeper.worker_id and not self.keeper.drives(run.run_id)

    def load_inside(self, thread_id: str, ns: str, seq: int | None) -> tuple[int, Found | None, Found | None]:
        """Read a graph inside a task: its newest checkpoint, and the one at `seq`; see `read_inside`."""
        return self.database.read(lambda tx: read_inside(tx, self.bodies, thread_id, ns, seq))

    def history(self, thread_id: str, ns: str, *, before: int, most: int) -> list[Found]:
        """Read checkpoints, newest first, each with all that its state is made of."""
        return self.database.read(lambda tx: History(tx, self.bodies, thread_id, ns).page(before, most))

    def journal(self, thread_id: str) -> tuple[JournalRow, ...]:
        """Read the journal of the step that a thread stands in."""
        return self.database.read(lambda tx: read_journal(tx, self.bodies, thread_id))

    def asked(self, thread_id: str) -> tuple[WaitRow, ...]:
        """Read whatever a thread has ever asked."""
        return self.database.read(lambda tx: read_waits(tx, self.bodies, thread_id, "read_all_waits"))

    def events(self, thread_id: str, *, after: int = 0, most: int = 1000) -> list[EventRow]:
        """Read the log of a thread, oldest first."""
        return self.database.read(lambda tx: read_events(tx, self.bodies, str(thread_id), after, most))

    def open_waits(self, *, most: int = 50) -> list[OpenWaitRow]:
        """List who waits, longest first."""
        return self.database.read(lambda tx: read_open_waits(tx, self.bodies, most))

    def threads(self, *, most: int = 100) -> list[ThreadRow]:
        """List threads, newest first."""
        return [ThreadRow(*row) for row in self.database.read(lambda tx: tx.all("list_threads", {"most": most}))]

    def thread(self, thread_id: str) -> ThreadRow | None:
        """Read one thread as it is listed."""
        row = self.database.read(lambda tx: tx.one("show_thread", {"thread_id": thread_id}))
        return None if row is None else ThreadRow(*row)

    def owner_of(self, thread_id: str) -> str | None:
        """Return whose a thread is; None if there is no such thread."""
        row = self.database.read(lambda tx: tx.one("owner_of_thread", {"thread_id": thread_id}))
        return None if row is None else str(row[0])

    def uid_of(self, thread_id: str) -> str | None:
        """Return which life of a thread there is now."""
        row = self.database.read(lambda tx: tx.one("peek_thread", {"thread_id": thread_id}))
        return None if row is None else str(row[0])

    def waiting_threads(self, graph: str) -> list[str]:
        """Name the threads of a graph that wait for something."""
        return [str(row[0]) for row in self.database.read(lambda tx: tx.all("list_waiting", {"graph": graph}))]

    def thread_of(self, uid: str) -> str | None:
        """Find the thread that a checkpoint's id speaks of."""
        row = self.database.read(lambda tx: tx.one("find_thread", {"uid": uid}))
        return None if row is None else str(row[0])

    # ── The rest ───────────────────────────────────────────────────────────────────────────────────────────────────

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything about a thread but that it was deleted: whoever still holds it writes nothing.

        A thread that was still alive ends with that: its parent hears of it, and its children follow.
        """
        now = self.clock.now()
        ended: list[str] = []

        def delete(tx: Transaction) -> None:
            tx.send("hold_thread", {"thread_id": str(thread_id)})
            ended[:] = end_before_deletion(Writing(tx, self.bodies, now), str(thread_id))
            delete_everything(tx, str(thread_id), now)

        self.database.write("delete", delete)
        self.after_end(ended)

    def close(self) -> None:
        """Let go of the database. Threads that wait lose nothing: they are in it."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self.database.stop_waiting()
        try:
            if "doorbell" in self.__dict__:
                self.doorbell.close()
            self.keeper.leave()
        finally:
            self.database.close()

    def __enter__(self) -> Store:
        """Use the store in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()


def _save_rest(writing: Writing, lease: Lease, transition: Transition, head: int) -> None:
    """Save whatever a transition has beside its own checkpoint."""
    for inner in transition.carried:
        writing.write_checkpoint(lease, inner)
    for prefix in transition.over:
        writing.retire_step(lease.thread_id, prefix)
    for line in transition.journal:
        writing.write_journal(lease, line)
    for wait in transition.waits:
        register(writing, lease, wait, head, transition.owner)
    if transition.status is not RunStatus.RUNNING:
        writing.end_run(lease, transition.status, transition.error)


def _ended(writing: Writing, lease: Lease, transition: Transition) -> list[str]:
    """Do what belongs to the end of a run, if this is one."""
    if transition.status not in ENDED:
        return []
    end_run(writing, lease.thread_id, transition.status)
    if transition.report is None:
        return []
    if not transition.report.is_awaited:
        tell_whoever_waits(writing, lease.thread_id, lease.run_id, transition.report, transition.owner)
        return []
    return [tell_parent(writing, lease.thread_id, lease.run_id, transition.report, transition.owner)]
