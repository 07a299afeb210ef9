"""The recorder: does what the engine says should be saved, for one call on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bide.engine.nested import lasting_path
from bide.engine.opening import NOTHING
from bide.engine.spawning import Spawned
from bide.engine.spec import GraphSpec, Subgraph
from bide.engine.values import (
    Begin,
    Begun,
    Checkpoint,
    Commit,
    Edit,
    JournalEntry,
    Load,
    Loaded,
    Prepare,
    Record,
    RunInfo,
    Task,
    Wait,
)
from bide.errors import LeaseLostError, StoreError, UnknownCheckpointError
from bide.graph.accepting import start_of_child
from bide.graph.door import Reference
from bide.graph.hold import Hold
from bide.graph.migration import Migrate, migrated
from bide.graph.pages import Pages, told
from bide.graph.run_rows import ENDS, run_row, status_after
from bide.graph.summary import summary_of
from bide.graph.telling import Teller
from bide.store.rows import (
    CheckpointRow,
    EventRow,
    JournalRow,
    Lease,
    Report,
    Stored,
    Taking,
    Transition,
    checkpoint_id,
)
from bide.types import RunStatus


class Recorder:
    """Saves one graph of one thread: the engine's `Saver`, and the `Journal` of its tasks."""

    def __init__(
        self,
        hold: Hold,
        spec: GraphSpec,
        reference: Reference | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        ns: str = "",
        prefix: str = "",
        outer: Recorder | None = None,
        migrate: Migrate | None = None,
    ) -> None:
        self.hold = hold
        self.store = hold.store
        self.spec = spec
        self.codec = spec.codec
        self.reference = reference
        self.blocking = hold.store.blocking
        self.ns = ns
        self.prefix = prefix
        self.outer = outer
        self.metadata = metadata
        self.migrate = migrate
        self.head = 0
        """The newest checkpoint that was handed to the store."""
        self.teller: Teller | None = None
        """Who writes down what the run tells, if somebody has asked for it."""
        self.at: Checkpoint | None = None
        """Where the graph stands, as far as it was told."""
        self.has_records = False
        """Whether the present step has lines in the journal, or waits, that its end must retire."""
        self.pages = Pages(spec, hold.thread_id, metadata, prefix)
        self.pages.values.is_whole = hold.writer.mode == "exit"
        self._perform: dict[type, Callable[[Any], Any]] = {
            Commit: self._commit,
            Record: self._record,
            Prepare: self._prepare,
            Load: self._load if outer is None else self._load_inside,
            Begin: self._begin,
            Edit: self._edit,
        }

    @property
    def uid(self) -> str:
        """The life of the thread."""
        return self.hold.uid

    @property
    def thread_id(self) -> str:
        """The thread that is held."""
        return self.hold.thread_id

    def perform(self, effect: Any) -> Any:
        """Do one of Load, Begin, Prepare, Record, Commit, Edit."""
        return self._perform[effect.__class__](effect)

    def inside(self, spec: GraphSpec, ns: str, prefix: str) -> Recorder:
        """Return what saves a graph inside a task of this one."""
        return Recorder(self.hold, spec, None, self.metadata, ns=ns, prefix=prefix, outer=self)

    def inside_task(self, sub: Subgraph, task_id: str) -> Recorder:
        """Return what reads the graph that a task of this one is."""
        ns = f"@{lasting_path(task_id)}" if sub.keeps is True else task_id
        return self.inside(sub.spec, ns, f"{task_id}|")

    def abandon(self, reason: BaseException) -> None:
        """Let go of a run that its caller has dropped: finished steps and recorded results stay."""
        if self.outer is not None:
            return  # the thread is held by the graph around this one
        hold = self.hold
        lease, hold.lease = hold.lease, None
        if lease is None:
            return
        if hold.lost or isinstance(reason, LeaseLostError) or (hold.is_claimed and isinstance(reason, StoreError)):
            # The run is another's; there is nothing to mark, only to let go of. And a database that said no is not the
            # run's fault: a worker finds it left behind, counts that, and makes it ready again.
            self.store.let_go(lease)
            hold.writer.close()
            return
        status = status_after(reason) if hold.is_claimed else RunStatus.CANCELLED
        event = self.pages.event(f"run.{status.value}", {"reason": type(reason).__name__, "error": told(reason)})
        is_awaited = hold.parent is not None
        report = None if status not in ENDS else Report(status, error=told(reason), is_awaited=is_awaited)
        change = Transition(0, status=status, error=told(reason), events=(event,), report=report, owner=hold.owner)
        try:
            hold.writer.flush(lease)
        except Exception as problem:  # noqa: BLE001 — the reason is the one to tell; this goes along with it
            reason.add_note(f"What came before could not be saved: {problem}")
        try:
            self.store.commit(lease, change)
        except Exception as problem:  # noqa: BLE001 — as above
            reason.add_note(f"The run could not be marked as {status.value}: {problem}")
        finally:
            self.store.let_go(lease)
            hold.writer.close()

    # ── Taking the thread ──────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, begin: Begin) -> Begun:
        expected = begin.expected
        answers = tuple(
            (question.id, self.codec.encode(answer, f"answer to {question.value!r}"))
            for question, answer in begin.answers
        )
        checkpoint = begin.checkpoint
        self.pages.follow(checkpoint)
        taking = Taking(
            thread_id=self.thread_id,
            graph=self.spec.name,
            uid=expected.uid,
            head=expected.head,
            claim=run_row(begin.claim),
            supersede=run_row(begin.supersede),
            answers=answers,
            forget=begin.forget,
            checkpoint=None if checkpoint is None else self.pages.checkpoint_row(checkpoint, begin.changed),
            events=self._begin_events(begin),
            seen=self._seen(begin.claim or begin.supersede),
            lease=self.hold.lease,
            asked=() if begin.claim is None else tuple(wait.question.id for wait in expected.open_waits),
        )
        hold = self.hold
        hold.uid, hold.lease = self.store.begin(taking)
        hold.note(dict(answers), forget=begin.forget)
        self.head = expected.head if checkpoint is None else checkpoint.seq
        self._stand_at(expected.checkpoint if checkpoint is None else checkpoint)
        if self.teller is not None and not begin.forget:
            self.teller.begin(expected.results)
        self.has_records = not begin.forget and bool(
            expected.waits or expected.results or expected.steps or expected.errors
        )
        return Begun(self.thread_id, hold.uid, hold.lease.run_id)

    def _seen(self, run: RunInfo | None) -> tuple[JournalRow, ...] | None:
        return self.hold.journal if run is not None and run.is_orphan else None

    def _begin_events(self, begin: Begin) -> tuple[EventRow, ...]:
        event = self.pages.event
        replaced = None if self.hold.lease is not None else begin.supersede  # a claimed run replaces nobody
        asks = [wait.question for wait in begin.expected.open_waits]
        cancelled = [{"id": ask.id, "node": ask.node, "kind": ask.kind} for ask in asks] if begin.forget else []
        before = (event("run.replaced", {"run": replaced.id, "asks": cancelled}),) if replaced is not None else ()
        if begin.answers:
            answers = {question.node: answer for question, answer in begin.answers if not question.is_static}
            return (*before, event("run.resumed", {"answers": answers}))
        if self.hold.lease is not None and begin.checkpoint is None:
            return before  # whoever made it ready has told why
        if begin.claim is not None and begin.claim.is_orphan:
            return (*before, event("run.taken_over", {"epoch": begin.claim.epoch + 1}))
        planned = [] if begin.checkpoint is None else list(begin.checkpoint.next)
        return (*before, event("run.started", {"next": planned}))

    def _edit(self, edit: Edit) -> str:
        expected = edit.expected
        run = expected.run
        is_ended = run is not None and (edit.forget or run.status is RunStatus.RUNNING)
        self.pages.follow(edit.checkpoint)
        taking = Taking(
            thread_id=self.thread_id,
            graph=self.spec.name,
            uid=expected.uid,
            head=expected.head,
            claim=None,
            supersede=run_row(run) if is_ended else None,
            answers=(),
            forget=edit.forget,
            checkpoint=None,
            events=(
                self.pages.event("thread.edited", {"keys": sorted(edit.changed), "next": list(edit.checkpoint.next)}),
            ),
            prefix=self.prefix,
            seen=self._seen(run),
            answered=tuple(
                (self.pages.wait_row(question), self.codec.encode(answer, f"answer to {question.value!r}"))
                for question, answer in edit.answered
            ),
            inner=edit.inner,
        )
        self.hold.uid = self.store.edit(taking, self.pages.checkpoint_row(edit.checkpoint, edit.changed))
        return self.uid

    # ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, commit: Commit) -> None:
        lease, writer = self._held(), self.hold.writer
        row = None if commit.changed is None else self.pages.checkpoint_row(commit.checkpoint, commit.changed)
        is_plain = commit.is_over and commit.status is RunStatus.RUNNING and not self.has_records
        lines = self._lines_of(commit)
        if is_plain:
            writer.save(lease, Transition(self.head, row, carried=commit.carried, events=lines))
        else:
            writer.save(lease, self._transition(commit, row, lines))
            is_open = bool(commit.outcomes) or self.has_records
            self._note(bool(commit.opens) or (is_open and not commit.is_over))
            if commit.status is not RunStatus.RUNNING:
                self.hold.lease = None
                self.store.let_go(lease)
        if row is not None:
            self.head = row.seq
            self._stand_at(commit.checkpoint)

    def _stand_at(self, checkpoint: Checkpoint | None) -> None:
        """Know where the graph stands: what is told of its tasks comes after it."""
        if self.teller is not None:
            self.at = checkpoint
            self.teller.begin(())

    def _lines_of(self, commit: Commit) -> tuple[EventRow, ...]:
        if self.teller is None:
            return ()
        is_last = commit.status is not RunStatus.RUNNING
        return self.teller.results(self.at, commit.outcomes, commit.opens, is_last=is_last)

    def _note(self, has_records: bool) -> None:
        """Know whether the step leaves something to retire; for the graphs around this one it does, too."""
        self.has_records = has_records
        if has_records and self.outer is not None:
            self.outer._note(True)

    def _transition(self, commit: Commit, row: CheckpointRow | None, lines: tuple[EventRow, ...]) -> Transition:
        return Transition(
            head=self.head,
            checkpoint=row,
            journal=() if commit.is_over else tuple(map(self.pages.outcome_row, commit.outcomes)),
            waits=tuple(map(self.pages.wait_row, commit.opens)),
            events=(*lines, *self._events(commit)),
            status=commit.status,
            error=told(commit.error),
            over=(self.prefix,) if commit.is_over and self.has_records else (),
            carried=commit.carried,
            report=self._report(commit, row),
            owner=self.hold.owner,
        )

    def _report(self, commit: Commit, row: CheckpointRow | None) -> Report | None:
        """Tell the thread that has spawned this one how it ended: in short, and where all of it is."""
        if commit.status not in ENDS:
            return None
        is_awaited = self.hold.parent is not None
        summary = summary_of(self.spec, commit.checkpoint) if is_awaited else ""
        reference = checkpoint_id(self.uid, self.head if row is None else row.seq)
        return Report(commit.status, summary, reference, told(commit.error), is_awaited)

    def _prepare(self, prepare: Prepare) -> CheckpointRow:
        row = self.pages.checkpoint_row(prepare.checkpoint, prepare.changed)
        self.head = row.seq
        return row

    def _record(self, record: Record) -> None:
        self._note(True)
        lease = self._held()
        rows = tuple(map(self.pages.outcome_row, record.outcomes))
        lines = () if self.teller is None else self.teller.results(self.at, record.outcomes, is_last=False)
        self.hold.writer.record(lease, rows, record.carried, lines)

    def _events(self, commit: Commit) -> tuple[EventRow, ...]:
        if commit.status is RunStatus.RUNNING:
            return ()
        if commit.status is RunStatus.WAITING:
            asks = [{"id": ask.id, "node": ask.node, "kind": ask.kind} for ask in commit.asks or commit.opens]
            return (self.pages.event("run.waiting", {"asks": asks, "error": told(commit.error)}),)
        return (self.pages.event(f"run.{commit.status.value}", {"error": told(commit.error)}),)

    def _held(self) -> Lease:
        if self.hold.lost is not None:
            raise self.hold.lost
        if self.hold.lease is None:
            raise LeaseLostError(
                f"The run on thread {self.thread_id!r} has ended: it was cancelled, or its caller went away. Nothing "
                f"was written."
            )
        return self.hold.lease

    # ── The journal of a task ──────────────────────────────────────────────────────────────────────────────────────

    def intend(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep that a step is about to be made, or what it raised."""
        body = b"" if entry.value is None else self.codec.encode(entry.value, "error")
        self._keep(JournalRow(task.id, key, "step", "intent", entry.name, entry.digest, body))

    @property
    def is_behind(self) -> bool:
        """Whether steps may have been made that are not saved yet."""
        return self.hold.writer.mode != "sync"

    def catch_up(self) -> None:
        """Make everything so far durable."""
        self.hold.writer.flush(self._held())

    def check_held(self) -> None:
        """Raise LeaseLostError if the run is no longer ours, or not surely so.

        From then on nothing is written, whatever the node makes of that error: it is not the node's own.
        """
        try:
            self.store.check_held(self._held())
        except LeaseLostError as problem:
            self.hold.lost = problem
            raise

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep the result of a step."""
        self._keep(self.pages.step_row(task, key, entry, entry.value))

    def transact(self, task: Task, key: str, entry: JournalEntry, work: Callable[[Any], Any]) -> Any:
        """Run `work` with the database's connection and keep its result in the same transaction."""
        results: list[Any] = []

        def make(connection: Any) -> JournalRow:
            results.append(work(connection))
            return self.pages.step_row(task, key, entry, results[-1])

        self._note(True)
        lease = self._held()
        self.hold.writer.flush(lease)
        body = self.store.transact(lease, task.id, key, make)
        return results[-1] if results else self.codec.decode(body, f"result of step {key!r}")

    def spawn(self, task: Task, key: str, entry: JournalEntry, start: Spawned) -> None:
        """Start a child thread, and keep that it was, in one transaction."""
        self._note(True)
        lease = self._held()
        self.hold.writer.flush(lease)
        line = self.pages.step_row(task, key, entry, entry.value)
        self.store.spawn(lease, line, start_of_child(start, self.store, self.hold.owner))

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        return self.pages.values.is_unchanged(key, value)

    def _keep(self, row: JournalRow) -> None:
        self._note(True)
        lease = self._held()
        self.hold.writer.flush(lease)
        self.store.keep(lease, row)

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self, load: Load) -> Loaded:
        hold = self.hold
        if self.reference is not None and not hold.thread_id:
            hold.thread_id = self.pages.thread_id = self.store.thread_of(self.reference.uid) or ""
        stored = self.store.load(hold.thread_id, load.seq)
        if self.reference is not None:
            self._check_reference(self.reference, stored)
        if stored is None:
            return NOTHING._replace(thread_id=hold.thread_id, place=self.store.database.path)
        hold.check_read(stored.run)
        hold.uid, hold.journal, hold.waits = stored.uid, stored.journal, stored.waits
        hold.parent, hold.owner = stored.parent, stored.owner
        return self._migrated(self.pages.loaded(stored))

    def _migrated(self, loaded: Loaded) -> Loaded:
        """Let the graph's `migrate` hook bring an older thread up to date; it is saved with the next checkpoint."""
        if self.migrate is None or loaded.checkpoint is None:
            return loaded
        return migrated(self.spec, self.migrate, loaded)

    def stand_where_it_was_left(self) -> None:
        """Take the path of the last call of a graph that keeps its state, which was asked for by its name alone."""
        loaded = self._newest()
        if loaded.checkpoint is not None:
            self.prefix = self.pages.prefix = loaded.checkpoint.prefix

    def look_inside(self, seq: int | None) -> Loaded:
        """Read a graph inside a task for somebody who only looks: as it stands, or as it stood."""
        if seq is None:
            loaded = self._load_inside(Load(None))
            return loaded if loaded.checkpoint is not None else self._newest()
        head, newest, older = self.store.load_inside(self.hold.thread_id, self.ns, seq)
        found = newest if seq == head else older
        if found is None:
            raise UnknownCheckpointError(f"There is no checkpoint {seq} at {self.ns!r} in thread {self.thread_id!r}.")
        return (
            self._load_inside(Load(None))
            if seq == head
            else NOTHING._replace(
                uid=self.uid, head=head, checkpoint=self.pages.read_checkpoint(found), thread_id=self.thread_id
            )
        )

    def _newest(self) -> Loaded:
        """Read the newest checkpoint of a graph that keeps its state, whichever call made it."""
        head, newest, _ = self.store.load_inside(self.hold.thread_id, self.ns, None)
        if newest is None:
            return NOTHING._replace(uid=self.uid, thread_id=self.thread_id)
        checkpoint = self.pages.read_checkpoint(newest)
        pages = Pages(self.spec, self.thread_id, None, checkpoint.prefix)
        own = [row for row in self.hold.journal if row.task_id.startswith(checkpoint.prefix)]
        waits = [row for row in self.hold.waits if row.task_id.startswith(checkpoint.prefix)]
        return pages.step_of(checkpoint, own, waits)._replace(uid=self.uid, head=head)

    def _load_inside(self, load: Load) -> Loaded:
        """Read a graph inside a task: where it stands, or where its last call left it (`load.seq`)."""
        hold, pages = self.hold, self.pages
        if hold.lease is not None:
            hold.writer.flush(hold.lease)  # what is not written yet could not be read
            # An earlier attempt of this very run may have left results and steps here since the thread was read.
            hold.journal = self.store.journal(hold.thread_id)
        head, newest, older = self.store.load_inside(hold.thread_id, self.ns, load.seq)
        checkpoint = None if newest is None else pages.read_checkpoint(newest)
        is_edit = newest is not None and newest.row.source == "update" and newest.row.parent == load.seq
        if checkpoint is not None and checkpoint.prefix != self.prefix and load.seq != head and not is_edit:
            checkpoint = None if older is None else pages.read_checkpoint(older)
            if checkpoint is None:
                pages.begin_anew()  # on this branch it was never called: nothing of the one that was left may stay
        own = [row for row in hold.journal if row.task_id.startswith(self.prefix)]
        waits = [row for row in hold.waits if row.task_id.startswith(self.prefix)]
        self._note(bool(own or waits))
        self.head = head
        return pages.step_of(checkpoint, own, waits)._replace(uid=hold.uid, head=head)

    def all(self, before: int = 2**62) -> Iterator[Checkpoint]:
        """Read checkpoints older than `before`, newest first, some at a time."""
        while True:
            page = self.store.history(self.thread_id, self.ns, before=before, most=50)
            if not page:
                return
            for found in page:
                yield self.pages.read_checkpoint(found)
            before = page[-1].row.seq

    def asked(self) -> tuple[Wait, ...]:
        """Read whatever the thread has ever asked."""
        asked = self.store.asked(self.thread_id)
        return tuple(self.pages.wait(row) for row in asked if row.task_id.startswith(self.prefix))

    def _check_reference(self, reference: Reference, stored: Stored | None) -> None:
        # Number 0 is the time before the first checkpoint.
        is_there = stored is not None and (stored.checkpoint is not None or reference.seq == 0)
        if stored is None or stored.uid != reference.uid or not is_there:
            raise UnknownCheckpointError(
                f"There is no checkpoint '{reference.uid}-{reference.seq:08d}'"
                + (f" in thread {self.thread_id!r}" if self.thread_id else "")
                + ". The thread may have been deleted, or another database is open. See get_state_history(config)."
            )
