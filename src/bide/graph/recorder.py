"""The recorder: what the engine says should be saved, turned into rows, and rows read back into values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from ormsgpack import packb, unpackb

from bide.codec import Codec, checkpointable
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
    Origin,
    Outcome,
    Question,
    Record,
    RunInfo,
    Task,
    Wait,
)
from bide.errors import BideError, CorruptDataError, UnknownCheckpointError
from bide.graph.door import Reference
from bide.graph.durability import Writer
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
    WaitRow,
)
from bide.types import UNSET, Durability, Overwrite, RunStatus, Send, WaitStatus

checkpointable("bide.Send")(Send)
checkpointable("bide.Overwrite")(Overwrite)


FRAME = 1
"""The version of a checkpoint's own layout."""
SMALL = 256
"""Values of up to so many bytes travel in the body of every checkpoint; larger ones are logged when they change."""


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
        self._writer = Writer(store, durability)
        self._metadata = codec.encode(dict(metadata), "metadata") if metadata else None
        self._small: dict[str, bytes] = {}
        self._prints: dict[str, bytes] = {}
        self._logged: dict[str, int] = {}
        self._read: dict[bytes, list[Any]] = {}
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
        event = self._event("run.cancelled", {"reason": type(reason).__name__})
        change = Transition(0, status=RunStatus.CANCELLED, error=_told(reason), events=(event,))
        try:
            self._writer.flush(lease)
            self.store.commit(lease, change)
        except BideError as problem:
            reason.add_note(f"The run could not be marked as cancelled: {problem}")
        finally:
            self._writer.close()

    # ── Taking the thread ──────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, begin: Begin) -> Begun:
        expected = begin.expected
        answers = tuple(
            (question.id, self.codec.encode(answer, f"answer to {question.value!r}"))
            for question, answer in begin.answers
        )
        checkpoint = begin.checkpoint
        self._follow(checkpoint)
        taking = Taking(
            thread_id=self.thread_id,
            graph=self.spec.name,
            uid=expected.uid,
            head=expected.head,
            claim=_run_row(begin.claim),
            supersede=_run_row(begin.supersede),
            answers=answers,
            forget=begin.forget,
            checkpoint=None if checkpoint is None else self._checkpoint_row(checkpoint, begin.changed),
            events=(self._begin_event(begin),),
        )
        self.uid, self.lease = self.store.begin(taking)
        self.head = expected.head if checkpoint is None else checkpoint.seq
        self.has_records = not begin.forget and bool(
            expected.waits or expected.results or expected.steps or expected.errors
        )
        return Begun(self.thread_id, self.uid, self.lease.run_id)

    def _begin_event(self, begin: Begin) -> EventRow:
        if begin.answers:
            told = {question.node: answer for question, answer in begin.answers if not question.is_static}
            return self._event("run.resumed", {"answers": told})
        if begin.claim is not None and begin.claim.is_orphan:
            return self._event("run.taken_over", {"epoch": begin.claim.epoch + 1})
        return self._event("run.started", {"next": [] if begin.checkpoint is None else list(begin.checkpoint.next)})

    def _edit(self, edit: Edit) -> str:
        expected = edit.expected
        run = expected.run
        is_ended = run is not None and (edit.forget or run.status is RunStatus.RUNNING)
        self._follow(edit.checkpoint)
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
            events=(self._event("thread.edited", {"keys": sorted(edit.changed), "next": list(edit.checkpoint.next)}),),
        )
        self.uid = self.store.edit(taking, self._checkpoint_row(edit.checkpoint, edit.changed))
        return self.uid

    # ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, commit: Commit) -> None:
        lease = self.lease
        assert lease is not None, "only a run that is held can be saved"
        row = None if commit.changed is None else self._checkpoint_row(commit.checkpoint, commit.changed)
        if commit.is_over and commit.status is RunStatus.RUNNING and not self.has_records:
            self._writer.save(lease, Transition(self.head, row))
        else:
            self._writer.save(lease, self._transition(commit, row))
            self.has_records = (self.has_records and not commit.is_over) or bool(commit.outcomes or commit.opens)
            if commit.status is not RunStatus.RUNNING:
                self.lease = None
        if row is not None:
            self.head = row.seq

    def _transition(self, commit: Commit, row: CheckpointRow | None) -> Transition:
        return Transition(
            head=self.head,
            checkpoint=row,
            journal=() if commit.is_over else tuple(map(self._outcome_row, commit.outcomes)),
            waits=tuple(map(self._wait_row, commit.opens)),
            events=self._events(commit),
            status=commit.status,
            error=_told(commit.error),
            is_over=commit.is_over and self.has_records,
        )

    def _record(self, record: Record) -> None:
        self.has_records = True
        lease = self._held()
        rows = tuple(map(self._outcome_row, record.outcomes))
        self._writer.record(lease, rows)

    def _events(self, commit: Commit) -> tuple[EventRow, ...]:
        if commit.status is RunStatus.RUNNING:
            return ()
        if commit.status is RunStatus.WAITING:
            asks = [{"id": question.id, "node": question.node, "kind": question.kind} for question in commit.opens]
            return (self._event("run.waiting", {"asks": asks, "error": _told(commit.error)}),)
        return (self._event(f"run.{commit.status.value}", {"error": _told(commit.error)}),)

    def _event(self, kind: str, body: Mapping[str, Any]) -> EventRow:
        return EventRow(kind, self.codec.encode(body, "event"))

    def _held(self) -> Lease:
        assert self.lease is not None, "only a run that is held can be saved"
        return self.lease

    # ── The journal of a task ──────────────────────────────────────────────────────────────────────────────────────

    def intend(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep that a step is about to be made."""
        self._keep(JournalRow(task.id, key, "step", "intent", entry.name, entry.digest, b""))

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep the result of a step."""
        self._keep(self._step_row(task, key, entry, entry.value))

    def transact(self, task: Task, key: str, entry: JournalEntry, work: Callable[[Any], Any]) -> Any:
        """Run `work` with the database's connection and keep its result in the same transaction."""
        results: list[Any] = []

        def make(connection: Any) -> JournalRow:
            results.append(work(connection))
            return self._step_row(task, key, entry, results[-1])

        self.has_records = True
        lease = self._held()
        self._writer.flush(lease)
        self.store.transact(lease, make)
        return results[-1]

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        if key in self._small:
            return self._small[key] == self.codec.encode(value, f"state[{key!r}]")
        if key in self._logged:
            return self._prints.get(key) == _print(self.codec.encode(value, f"state[{key!r}]"))
        return True

    def _keep(self, row: JournalRow) -> None:
        self.has_records = True
        lease = self._held()
        self._writer.flush(lease)
        self.store.keep(lease, row)

    def _step_row(self, task: Task, key: str, entry: JournalEntry, value: Any) -> JournalRow:
        body = self.codec.encode(value, f"result of step {key!r} in node {task.node!r}")
        return JournalRow(task.id, key, "step", "done", entry.name, entry.digest, body)

    # ── Values to rows ─────────────────────────────────────────────────────────────────────────────────────────────

    def _checkpoint_row(self, checkpoint: Checkpoint, changed: frozenset[str]) -> CheckpointRow:
        """Write a checkpoint as a row: small values in its body, large ones that changed beside it."""
        large = self._note_changes(checkpoint, changed)
        # The frame is ours and plain; the codec is for what users put into it.
        body = packb(
            [
                FRAME,
                checkpoint.fingerprint,
                self._small,
                self._logged,
                [self._task_parts(task) for task in checkpoint.tasks],
                [(origin.task_id, origin.node, self._places(origin.goto)) for origin in checkpoint.origins],
                None if checkpoint.resume_value is None else self.codec.encode(checkpoint.resume_value, "answer"),
                list(checkpoint.extras),
                self._metadata,
            ]
        )
        return CheckpointRow(checkpoint.seq, checkpoint.parent, checkpoint.step, checkpoint.source, body, large)

    def _task_parts(self, task: Task) -> tuple[Any, ...]:
        if task.arg is UNSET:
            return task.id, task.node
        return task.id, task.node, self.codec.encode(task.arg, f"argument of Send({task.node!r}, …)")

    def _places(self, goto: tuple[str | Send, ...]) -> bytes | None:
        return self.codec.encode(list(goto), "Command(goto=…)") if goto else None

    def _note_changes(self, checkpoint: Checkpoint, changed: frozenset[str]) -> tuple[tuple[str, int, bytes], ...]:
        values, channels = checkpoint.values, self.spec.channels
        small, logged = self._small, self._logged
        large: list[tuple[str, int, bytes]] = []
        for key in changed:
            small.pop(key, None)
            logged.pop(key, None)
            if key not in values or (key in channels and not channels[key].saved):
                continue
            body = self.codec.encode(values[key], f"state[{key!r}]")
            if len(body) <= SMALL:
                small[key] = body
            else:
                logged[key] = checkpoint.seq
                self._prints[key] = _print(body)
                large.append((key, checkpoint.seq, body))
        return tuple(large)

    def _follow(self, checkpoint: Checkpoint | None) -> None:
        """Take over where the values of a checkpoint are that was read, without those that are gone since."""
        if checkpoint is not None:
            self._small = {key: body for key, body in self._small.items() if key in checkpoint.values}
            self._logged = {key: seq for key, seq in self._logged.items() if key in checkpoint.values}

    def _outcome_row(self, outcome: Outcome) -> JournalRow:
        task = outcome.task
        if outcome.error is not None:
            told = self.codec.encode(_told(outcome.error), "error")
            return JournalRow(task.id, "", "error", "done", task.node, "", told)
        returns = [[question.id, question.key, question.value] for question in outcome.returns]
        writes = [[key, value] for key, value in outcome.writes]
        body = self.codec.encode(
            [writes, list(outcome.goto), list(outcome.routes), returns], f"result of node {task.node!r}"
        )
        return JournalRow(task.id, "", "result", "done", task.node, "", body)

    def _wait_row(self, question: Question) -> WaitRow:
        shown = self.codec.encode([question.value, question.schema], f"interrupt value in node {question.node!r}")
        return WaitRow(
            question.id,
            question.task_id,
            question.node,
            question.key,
            question.kind,
            WaitStatus.OPEN,
            question.digest,
            shown,
        )

    # ── Rows to values ─────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self, load: Load) -> Loaded:
        if self.reference is not None and not self.thread_id:
            self.thread_id = self.store.thread_of(self.reference.uid) or ""
        stored = self.store.load(self.thread_id, load.seq, self._logged_at)
        if self.reference is not None:
            self._check_reference(self.reference, stored)
        if stored is None:
            return Loaded(None, 0, None, None, {}, {}, {}, ())
        self.uid = stored.uid
        checkpoint = None
        if stored.checkpoint is not None:
            checkpoint = self.read_checkpoint(stored.checkpoint, stored.channels)
        return self._loaded(stored, checkpoint)

    def page(self, *, before: int, most: int) -> list[Checkpoint]:
        """Read checkpoints older than `before`, newest first."""
        self._read.clear()
        rows = self.store.history(self.thread_id, self._logged_at, before=before, most=most)
        return [self.read_checkpoint(row, channels) for row, channels in rows]

    def _check_reference(self, reference: Reference, stored: Stored | None) -> None:
        if stored is None or stored.uid != reference.uid or stored.checkpoint is None:
            raise UnknownCheckpointError(
                f"There is no checkpoint '{reference.uid}-{reference.seq:08d}'"
                + (f" in thread {self.thread_id!r}" if self.thread_id else "")
                + ". The thread may have been deleted, or another database is open. See get_state_history(config)."
            )

    def _loaded(self, stored: Stored, checkpoint: Checkpoint | None) -> Loaded:
        tasks = {} if checkpoint is None else {task.id: task for task in checkpoint.tasks}
        results: dict[str, Outcome] = {}
        errors: dict[str, str] = {}
        steps: dict[str, dict[str, JournalEntry]] = {}
        for row in stored.journal:
            value = self.codec.decode(row.body, f"journal of task {row.task_id!r}") if row.body else None
            if row.kind == "step":
                entry = JournalEntry(row.name, row.digest, row.phase == "done", value)
                steps.setdefault(row.task_id, {})[row.key] = entry
            elif row.kind == "error":
                errors[row.task_id] = str(value)
            elif row.task_id in tasks:
                results[row.task_id] = self._outcome(tasks[row.task_id], value)
        run = stored.run
        return Loaded(
            stored.uid,
            stored.head,
            None if run is None else RunInfo(run.run_id, run.status, run.epoch, run.is_orphan),
            checkpoint,
            results,
            {task_id: error for task_id, error in errors.items() if task_id not in results},
            steps,
            tuple(map(self._wait, stored.waits)),
        )

    def _outcome(self, task: Task, value: Any) -> Outcome:
        writes, goto, routes, returns = value
        questions = (Question(id_, task.id, task.node, key, "return", shown) for id_, key, shown in returns)
        pairs = tuple((key, written) for key, written in writes)
        return Outcome(task, pairs, tuple(goto), tuple(routes), (), tuple(questions))

    def _wait(self, row: WaitRow) -> Wait:
        value, schema = self._decoded(row.question, f"question {row.wait_id}")
        question = Question(row.wait_id, row.task_id, row.node, row.key, row.kind, value, row.digest, schema)
        answer = UNSET if row.answer is None else self.codec.decode(row.answer, f"answer to question {row.wait_id}")
        return Wait(question, row.status, answer, row.answered_at)

    def _decoded(self, body: bytes, where: str) -> Any:
        return self.codec.decode(body, where)

    def _logged_at(self, body: bytes) -> Mapping[str, int]:
        try:
            frame, *parts = unpackb(body)
            if frame != FRAME or len(parts) != 8:
                raise ValueError(f"unknown frame {frame!r}")
            logged: dict[str, int] = parts[2]
            self._read[body] = parts
            return dict(logged)
        except (ValueError, TypeError) as problem:
            raise CorruptDataError(
                f"A checkpoint of thread {self.thread_id!r} cannot be read: {problem}. It was damaged, or written by a "
                f"newer Bide. Older checkpoints may be sound: see get_state_history(config)."
            ) from problem

    def read_checkpoint(self, row: CheckpointRow, large: Mapping[str, bytes]) -> Checkpoint:
        """Turn rows back into a checkpoint."""
        fingerprint, small, logged, tasks, origins, resume_value, extras, metadata = self._read[row.body]
        self._small, self._logged = dict(small), dict(logged)
        self._prints = {key: _print(body) for key, body in large.items()}
        where = f"checkpoint {row.seq} of thread {self.thread_id!r}"
        missing = [key for key in logged if key not in large]
        if missing:
            raise CorruptDataError(f"The value of state[{missing[0]!r}] at {where} is gone from the channel log.")
        decode = self._decoded
        stored = {key: decode(body, f"state[{key!r}] at {where}") for key, body in (small | large).items()}
        return Checkpoint(
            row.seq,
            row.parent,
            row.step,
            row.source,
            {**self.spec.initial, **stored},
            tuple(Task(id_, node, *(decode(arg, where) for arg in rest)) for id_, node, *rest in tasks),
            tuple(Origin(id_, node, tuple(decode(goto, where)) if goto else ()) for id_, node, goto in origins),
            fingerprint,
            None if resume_value is None else decode(resume_value, where),
            frozenset(extras),
            row.created_at,
            row.run_id,
            None if metadata is None else decode(metadata, where),
        )


def _run_row(run: RunInfo | None) -> RunRow | None:
    return None if run is None else RunRow(run.id, run.status, run.epoch, run.is_orphan)


def _print(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()


def _told(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"
