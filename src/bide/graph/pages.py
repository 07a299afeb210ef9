"""How a thread is written down: the engine's values as rows of bytes, and rows read back into values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bide.codec import Codec, checkpointable
from bide.engine.plan import branch_of, place_in_tree
from bide.engine.spec import DEFERRED, GraphSpec
from bide.engine.values import (
    Checkpoint,
    JournalEntry,
    Loaded,
    Origin,
    Outcome,
    Question,
    RunInfo,
    Task,
    Wait,
)
from bide.errors import CodecError, CorruptDataError, UnstorableValueError
from bide.graph.stored_values import StoredValues
from bide.messages import add_messages, settled
from bide.store.frames import pack_frame
from bide.store.rows import CheckpointRow, EventRow, Found, JournalRow, Stored, WaitRow
from bide.types import UNSET, Command, Overwrite, Send, TimeoutPolicy, WaitStatus

checkpointable("bide.Send")(Send)
checkpointable("bide.Overwrite")(Overwrite)
checkpointable("bide.TimeoutPolicy")(TimeoutPolicy)


class Pages:
    """Writes and reads one thread's rows, and knows where the values of its present checkpoint are."""

    def __init__(
        self, spec: GraphSpec, thread_id: str = "", metadata: Mapping[str, Any] | None = None, prefix: str = ""
    ) -> None:
        self.spec = spec
        self.codec: Codec = spec.codec
        self.thread_id = thread_id
        self.prefix = prefix
        self.values = StoredValues(spec)
        self._metadata = spec.codec.encode(dict(metadata), "metadata") if metadata else None

    def begin_anew(self) -> None:
        """Forget what was read: the next checkpoint has nothing to do with it."""
        is_whole = self.values.is_whole
        self.values = StoredValues(self.spec)
        self.values.is_whole = is_whole

    # ── Values to rows ─────────────────────────────────────────────────────────────────────────────────────────────

    def checkpoint_row(self, checkpoint: Checkpoint, changed: frozenset[str]) -> CheckpointRow:
        """Write a checkpoint as a row: small values in its body, large ones that changed beside it."""
        # The frame is ours and plain; the codec is for what users put into it.
        rest = [
            checkpoint.fingerprint,
            [task[:2] if task.arg is UNSET else self._sent(task) for task in checkpoint.tasks],
            [(id_, node, self._places(goto) if goto else None) for id_, node, goto in checkpoint.origins],
            None if checkpoint.resume_value is None else self.codec.encode(checkpoint.resume_value, "answer"),
            list(checkpoint.extras),
            self._metadata,
            checkpoint.prefix,
        ]
        keys = changed | {DEFERRED} if self.spec.deferred else changed
        frame, large = self.values.write(checkpoint, keys, rest)
        body = pack_frame(frame)
        return CheckpointRow(
            checkpoint.seq, checkpoint.parent, checkpoint.step, checkpoint.source, body, large, ns=checkpoint.ns
        )

    def _sent(self, task: Task) -> tuple[Any, ...]:
        arg = self.codec.encode(task.arg, f"argument of Send({task.node!r}, …)")
        if task.timeout is None:
            return task.id, task.node, arg
        return task.id, task.node, arg, self.codec.encode(task.timeout, f"timeout of Send({task.node!r}, …)")

    def _places(self, goto: tuple[str | Send, ...]) -> bytes:
        return self.codec.encode(list(goto), "Command(goto=…)")

    def follow(self, checkpoint: Checkpoint | None) -> None:
        """Take over where the values of a checkpoint are that was read, without those that are gone since."""
        if checkpoint is not None:
            self.values.follow(checkpoint)

    def outcome_row(self, outcome: Outcome) -> JournalRow:
        """Write down what became of a task whose step is not over."""
        task = outcome.task
        if outcome.error is not None:
            line = self.codec.encode(told(outcome.error), "error")
            return JournalRow(task.id, "", "error", "done", task.node, "", line)
        returns = [[question.id, question.key, question.value, question.schema] for question in outcome.returns]
        writes = [[key, value] for key, value in outcome.writes if self.spec.channel(key).saved]
        try:
            told_up = [[up.update, list(up.targets)] for up in outcome.up]
            body = self.codec.encode([writes, list(outcome.goto), list(outcome.routes), returns, told_up], "result")
        except UnstorableValueError:
            self._name_unstorable(outcome)
            raise
        return JournalRow(task.id, "", "result", "done", task.node, "", body)

    def _name_unstorable(self, outcome: Outcome) -> None:
        """Raise again what cannot be stored, under a path that the user knows."""
        for key, value in outcome.writes:
            self.codec.encode(value, f"state[{key!r}]")
        for place in (*outcome.goto, *outcome.routes):
            if isinstance(place, Send):
                self.codec.encode(place.arg, f"argument of Send({place.node!r}, …)")

    def wait_row(self, question: Question) -> WaitRow:
        """Write down an open question."""
        shown = self.codec.encode(
            [question.value, question.schema, *question.place], f"interrupt value in node {question.node!r}"
        )
        return WaitRow(
            question.id,
            question.task_id,
            question.node,
            question.key,
            question.kind,
            WaitStatus.OPEN,
            question.digest,
            shown,
            needs=question.needs,
        )

    def event(self, kind: str, body: Mapping[str, Any]) -> EventRow:
        """Write down a line of the log."""
        return EventRow(kind, self.codec.encode(body, "event"))

    def step_row(self, task: Task, key: str, entry: JournalEntry, value: Any) -> JournalRow:
        """Write down the result of a step."""
        body = self.codec.encode(value, f"result of step {key!r} in node {task.node!r}")
        return JournalRow(task.id, key, "step", "done", entry.name, entry.digest, body)

    # ── Rows to values ─────────────────────────────────────────────────────────────────────────────────────────────

    def loaded(self, stored: Stored) -> Loaded:
        """Turn what was read of a thread back into values."""
        checkpoint = None if stored.checkpoint is None else self.read_checkpoint(stored.checkpoint)
        run = stored.run
        return self.step_of(checkpoint, stored.journal, stored.waits)._replace(
            uid=stored.uid,
            head=stored.head,
            run=None if run is None else RunInfo(run.run_id, run.status, run.epoch, run.is_orphan, run.has_input),
            parent=stored.parent,
        )

    def step_of(self, checkpoint: Checkpoint | None, journal: Iterable[JournalRow], waits: Iterable[WaitRow]) -> Loaded:
        """Return what is known of the step that a graph stands in: its own tasks' journal, and all that is asked."""
        tasks = {} if checkpoint is None else {task.id: task for task in checkpoint.tasks}
        results: dict[str, Outcome] = {}
        errors: dict[str, str] = {}
        steps: dict[str, dict[str, JournalEntry]] = {}
        done: set[str] = set()
        failed: set[str] = set()
        for row in journal:
            if row.kind == "result":
                done.add(row.task_id)
            elif row.kind == "error":
                failed.add(row.task_id)
            elif row.kind == "step" and row.phase == "done":
                done.add(f"{row.task_id}:{row.key}")
            if not self._is_own(row.task_id):
                continue
            with self._reading(f"the journal of task {row.task_id!r}") as where:
                if row.kind == "step":
                    is_bare = row.phase == "intent" and not row.body
                    value = None if is_bare else self._decoded(row.body, where)
                    entry = JournalEntry(row.name, row.digest, row.phase == "done", value)
                    steps.setdefault(row.task_id, {})[row.key] = entry
                elif row.kind == "error":
                    errors[row.task_id] = str(self._decoded(row.body, where))
                elif row.task_id in tasks:
                    results[row.task_id] = _outcome(tasks[row.task_id], self._decoded(row.body, where))
        return Loaded(
            None,
            0,
            None,
            checkpoint,
            results,
            {task_id: error for task_id, error in errors.items() if task_id not in results},
            steps,
            in_task_order(checkpoint, map(self.wait, waits)),
            self.thread_id,
            done=frozenset(done),
            failed=frozenset(failed),
        )

    def _is_own(self, task_id: str) -> bool:
        """Whether a task is one of this graph's, or was started by one, and is not of a graph inside one of them."""
        return "|" not in task_id[len(self.prefix) :]

    def wait(self, row: WaitRow) -> Wait:
        """Turn a row back into a wait."""
        with self._reading(f"question {row.wait_id}") as where:
            value, schema, *calls = self._decoded(row.question, where)
            if schema is not None and type(schema) is not dict:
                raise ValueError("what the answer should look like is missing")
            question = Question(row.wait_id, row.task_id, row.node, row.key, row.kind, value, row.digest, schema)
            question = question._replace(place=tuple(calls)) if calls else question
            answer = UNSET if row.answer is None else self._decoded(row.answer, f"the answer to {where}")
            return Wait(question, row.status, answer, row.answered_at)

    def _settled(self, key: str, value: Any) -> Any:
        """Let a conversation that was stored without LangChain be one of LangChain's where it is loaded."""
        reducer = getattr(self.spec.channel(key), "reducer", None)
        return settled(value) if getattr(reducer, "func", reducer) is add_messages else value

    def _decoded(self, body: bytes, where: str) -> Any:
        return self.codec.decode(body, where)

    @contextmanager
    def _reading(self, what: str) -> Iterator[str]:
        """Name what cannot be read, whichever way it is damaged."""
        where = f"{what} in thread {self.thread_id!r}"
        try:
            yield where
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
            if isinstance(problem, CodecError):
                raise
            raise CorruptDataError(
                f"Cannot read {where}: {problem}. It was damaged, or written by a newer Bide. Older checkpoints may be "
                f"sound: see get_state_history(config)."
            ) from problem

    def read_checkpoint(self, found: Found) -> Checkpoint:
        """Turn rows back into a checkpoint."""
        row = found.row
        with self._reading(f"checkpoint {row.seq}") as where:
            fingerprint, tasks, origins, resume_value, extras, metadata, prefix = found.frame.rest
            decode = self._decoded
            stored = {key: self._settled(key, value) for key, value in self.values.read(found, where).items()}
            return Checkpoint(
                row.seq,
                row.parent,
                row.step,
                row.source,
                {**self.spec.initial(), **stored},
                tuple(Task(id_, node, *(decode(arg, where) for arg in rest)) for id_, node, *rest in tasks),
                tuple(Origin(id_, node, tuple(decode(goto, where)) if goto else ()) for id_, node, goto in origins),
                fingerprint,
                None if resume_value is None else decode(resume_value, where),
                frozenset(extras),
                row.created_at,
                row.run_id,
                None if metadata is None else decode(metadata, where),
                row.ns,
                prefix,
            )


def _outcome(task: Task, value: Any) -> Outcome:
    writes, goto, routes, returns, told_up = value
    questions = (
        Question(id_, task.id, task.node, key, "return", shown, schema=schema) for id_, key, shown, schema in returns
    )
    pairs = tuple((key, written) for key, written in writes)
    up: tuple[Command[Any], ...] = tuple(
        Command(update=update, goto=goto, graph=Command.PARENT) for update, goto in told_up
    )
    return Outcome(task, pairs, tuple(goto), tuple(routes), (), tuple(questions), up=up)


def in_task_order(checkpoint: Checkpoint | None, waits: Iterable[Wait]) -> tuple[Wait, ...]:
    """Sort waits as the tasks that they belong to."""
    ids = (
        []
        if checkpoint is None
        else [*(task.id for task in checkpoint.tasks), *(o.task_id for o in checkpoint.origins)]
    )
    place = {task_id: index for index, task_id in enumerate(ids)}
    prefix = "" if checkpoint is None else checkpoint.prefix

    def where(wait: Wait) -> tuple[Any, ...]:
        branch = branch_of(prefix, wait.question.task_id)
        return place.get(branch, len(place)), place_in_tree(wait.question)

    return tuple(sorted(waits, key=where))


def told(error: BaseException | None) -> str | None:
    """Write an error down in one line, whatever its own text does."""
    if error is None:
        return None
    try:
        text = str(error)
    except Exception as problem:  # noqa: BLE001 — a text that cannot be made must not hide the error
        text = f"(its text cannot be shown: {problem!r})"
    # PostgreSQL keeps no NUL in a text, and nobody keeps half a character.
    return f"{type(error).__name__}: {text}".replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
