"""The recorder: does what the engine says should be saved, for one call on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide.codec import Codec
from bide.engine.opening import NOTHING
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    Begin,
    Begun,
    Checkpoint,
    Commit,
    Edit,
    JournalEntry,
    Load,
    Loaded,
    Record,
    RunInfo,
    Task,
    Wait,
)
from bide.errors import LeaseLostError, UnknownCheckpointError
from bide.graph.door import Reference
from bide.graph.durability import Writer
from bide.graph.pages import Pages, told
from bide.store import Store
from bide.store.rows import (
    CheckpointRow,
    EventRow,
    JournalRow,
    Lease,
    RunRow,
    Stored,
    Taking,
    Transition,
)
from bide.types import Durability, RunStatus


class Recorder:
    """Saves one call's run on one thread: the engine's `Saver`, and the `Journal` of its tasks."""

    def __init__(
        self,
        store: Store,
        spec: GraphSpec,
        codec: Codec,
        thread_id: str | None,
        reference: Reference | None = None,
        durability: Durability = "sync",
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.spec = spec
        self.codec = codec
        self.thread_id = thread_id or ""
        self.reference = reference
        self.blocking = store.blocking
        self.uid = ""
        self.lease: Lease | None = None
        self.head = 0
        """The newest checkpoint that was handed to the store."""
        self.has_records = False
        """Whether the present step has lines in the journal, or waits, that its end must retire."""
        self.pages = Pages(spec, codec, metadata)
        self.pages.thread_id = self.thread_id
        self._writer = Writer(store, durability)
        self._perform: dict[type, Callable[[Any], Any]] = {
            Commit: self._commit,
            Record: self._record,
            Load: self._load,
            Begin: self._begin,
            Edit: self._edit,
        }

    def perform(self, effect: Any) -> Any:
        """Do one of Load, Begin, Record, Commit, Edit."""
        return self._perform[effect.__class__](effect)

    def abandon(self, reason: BaseException) -> None:
        """Let go of a run that its caller has dropped: finished steps and recorded results stay."""
        lease, self.lease = self.lease, None
        if lease is None:
            return
        if isinstance(reason, LeaseLostError):
            # The run is another's; there is nothing to mark, only to let go of.
            self.store.let_go(lease)
            self._writer.close()
            return
        event = self.pages.event("run.cancelled", {"reason": type(reason).__name__})
        change = Transition(0, status=RunStatus.CANCELLED, error=told(reason), events=(event,))
        try:
            self._writer.flush(lease)
        except Exception as problem:  # noqa: BLE001 — the reason is the one to tell; this goes along with it
            reason.add_note(f"What came before could not be saved: {problem}")
        try:
            self.store.commit(lease, change)
        except Exception as problem:  # noqa: BLE001 — as above
            reason.add_note(f"The run could not be marked as cancelled: {problem}")
        finally:
            self.store.let_go(lease)
            self._writer.close()

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
            claim=_run_row(begin.claim),
            supersede=_run_row(begin.supersede),
            answers=answers,
            forget=begin.forget,
            checkpoint=None if checkpoint is None else self.pages.checkpoint_row(checkpoint, begin.changed),
            events=self._begin_events(begin),
        )
        self.uid, self.lease = self.store.begin(taking)
        self.head = expected.head if checkpoint is None else checkpoint.seq
        self.has_records = not begin.forget and bool(
            expected.waits or expected.results or expected.steps or expected.errors
        )
        return Begun(self.thread_id, self.uid, self.lease.run_id)

    def _begin_events(self, begin: Begin) -> tuple[EventRow, ...]:
        event = self.pages.event
        replaced = begin.supersede
        asks = [wait.question for wait in begin.expected.open_waits]
        cancelled = [{"id": ask.id, "node": ask.node, "kind": ask.kind} for ask in asks] if begin.forget else []
        before = (event("run.replaced", {"run": replaced.id, "asks": cancelled}),) if replaced is not None else ()
        if begin.answers:
            answers = {question.node: answer for question, answer in begin.answers if not question.is_static}
            return (*before, event("run.resumed", {"answers": answers}))
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
            supersede=_run_row(run) if is_ended else None,
            answers=(),
            forget=edit.forget,
            checkpoint=None,
            events=(
                self.pages.event("thread.edited", {"keys": sorted(edit.changed), "next": list(edit.checkpoint.next)}),
            ),
        )
        self.uid = self.store.edit(taking, self.pages.checkpoint_row(edit.checkpoint, edit.changed))
        return self.uid

    # ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, commit: Commit) -> None:
        lease = self._held()
        row = None if commit.changed is None else self.pages.checkpoint_row(commit.checkpoint, commit.changed)
        if commit.is_over and commit.status is RunStatus.RUNNING and not self.has_records:
            self._writer.save(lease, Transition(self.head, row))
        else:
            self._writer.save(lease, self._transition(commit, row))
            is_open = bool(commit.outcomes) or self.has_records
            self.has_records = bool(commit.opens) or (is_open and not commit.is_over)
            if commit.status is not RunStatus.RUNNING:
                self.lease = None
                self.store.let_go(lease)
        if row is not None:
            self.head = row.seq

    def _transition(self, commit: Commit, row: CheckpointRow | None) -> Transition:
        return Transition(
            head=self.head,
            checkpoint=row,
            journal=() if commit.is_over else tuple(map(self.pages.outcome_row, commit.outcomes)),
            waits=tuple(map(self.pages.wait_row, commit.opens)),
            events=self._events(commit),
            status=commit.status,
            error=told(commit.error),
            is_over=commit.is_over and self.has_records,
        )

    def _record(self, record: Record) -> None:
        self.has_records = True
        lease = self._held()
        rows = tuple(map(self.pages.outcome_row, record.outcomes))
        self._writer.record(lease, rows)

    def _events(self, commit: Commit) -> tuple[EventRow, ...]:
        if commit.status is RunStatus.RUNNING:
            return ()
        if commit.status is RunStatus.WAITING:
            asks = [{"id": ask.id, "node": ask.node, "kind": ask.kind} for ask in commit.asks or commit.opens]
            return (self.pages.event("run.waiting", {"asks": asks, "error": told(commit.error)}),)
        return (self.pages.event(f"run.{commit.status.value}", {"error": told(commit.error)}),)

    def _held(self) -> Lease:
        if self.lease is None:
            raise LeaseLostError(
                f"The run on thread {self.thread_id!r} has ended: it was cancelled, or its caller went away. Nothing "
                f"was written."
            )
        return self.lease

    # ── The journal of a task ──────────────────────────────────────────────────────────────────────────────────────

    def intend(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep that a step is about to be made, or what it raised."""
        body = b"" if entry.value is None else self.codec.encode(entry.value, "error")
        self._keep(JournalRow(task.id, key, "step", "intent", entry.name, entry.digest, body))

    def check_held(self) -> None:
        """Raise LeaseLostError if the run is no longer ours."""
        self._held()

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep the result of a step."""
        self._keep(self.pages.step_row(task, key, entry, entry.value))

    def transact(self, task: Task, key: str, entry: JournalEntry, work: Callable[[Any], Any]) -> Any:
        """Run `work` with the database's connection and keep its result in the same transaction."""
        results: list[Any] = []

        def make(connection: Any) -> JournalRow:
            results.append(work(connection))
            return self.pages.step_row(task, key, entry, results[-1])

        self.has_records = True
        lease = self._held()
        self._writer.flush(lease)
        self.store.transact(lease, make)
        return results[-1]

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        return self.pages.is_unchanged(key, value)

    def _keep(self, row: JournalRow) -> None:
        self.has_records = True
        lease = self._held()
        self._writer.flush(lease)
        self.store.keep(lease, row)

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self, load: Load) -> Loaded:
        if self.reference is not None and not self.thread_id:
            self.thread_id = self.pages.thread_id = self.store.thread_of(self.reference.uid) or ""
        stored = self.store.load(self.thread_id, load.seq, self.pages.logged_at)
        if self.reference is not None:
            self._check_reference(self.reference, stored)
        if stored is None:
            return NOTHING._replace(thread_id=self.thread_id, place=self.store.database.path)
        self.uid = stored.uid
        return self.pages.loaded(stored)

    def page(self, *, before: int, most: int) -> list[Checkpoint]:
        """Read checkpoints older than `before`, newest first."""
        rows = self.store.history(self.thread_id, self.pages.logged_at, before=before, most=most)
        return [self.pages.read_checkpoint(row, large) for row, large in rows]

    def asked(self) -> tuple[Wait, ...]:
        """Read whatever the thread has ever asked."""
        return tuple(map(self.pages.wait, self.store.asked(self.thread_id)))

    def _check_reference(self, reference: Reference, stored: Stored | None) -> None:
        if stored is None or stored.uid != reference.uid or stored.checkpoint is None:
            raise UnknownCheckpointError(
                f"There is no checkpoint '{reference.uid}-{reference.seq:08d}'"
                + (f" in thread {self.thread_id!r}" if self.thread_id else "")
                + ". The thread may have been deleted, or another database is open. See get_state_history(config)."
            )


def _run_row(run: RunInfo | None) -> RunRow | None:
    return None if run is None else RunRow(run.id, run.status, run.epoch, run.is_orphan)
