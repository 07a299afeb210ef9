"""What a run tells while a worker drives it: lines of the thread's log, for whoever streams it, now or later.

Results of the thread's own graph are written with the step that they belong to. Whatever is told in the middle of a
node, or inside a graph inside it, is written as it comes, a few times a second: a node that runs again tells it again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from bide.engine.plan import branch_of
from bide.engine.values import CUSTOM, MESSAGES, RESULT, TASK, Checkpoint, Emit, Outcome, Question
from bide.errors import BideError, LeaseLostError, StoreError
from bide.shape.shown import jsonable
from bide.store.needed import PLAIN
from bide.store.rows import EventRow, Lease

if TYPE_CHECKING:
    from bide.graph.durability import Writer
    from bide.graph.streaming import Shaper
    from bide.store import Store

logger = logging.getLogger("bide.worker")

TOLD = "told."
"""What the kinds of such lines begin with."""
SUBGRAPHS = "subgraphs"
LATER = 0.05
"""Seconds until what was told in the middle of a node is written."""
MOST_WAITING, MOST_BYTES = 500, 1024 * 1024
"""So many lines, and so many bytes, may wait before whoever tells must wait, too."""
MOST_TRIES = 5
"""So often in a row the database may say no before what waits is given up."""

_WRITTEN = {
    "values": (),
    "checkpoints": (),
    "updates": ("updates",),
    "messages": ("messages",),
    "messages-tuple": ("messages",),
    "custom": ("custom",),
    "tasks": ("tasks",),
    "debug": ("tasks",),
    "events": ("tasks", "messages"),
    "tools": ("messages",),
    "lifecycle": (),
}
"""For each stream mode, what must be written for it. The states themselves are there anyway: in the checkpoints."""


def written_modes(asked: Iterable[str]) -> tuple[str, ...]:
    """Return what a run must tell so that these stream modes can be shown."""
    wanted = dict.fromkeys(mode for name in asked for mode in _WRITTEN.get(name, ()))
    inner = ("values",) if SUBGRAPHS in asked else ()
    return (*wanted, *inner)


class Teller:
    """Writes what one run tells. Telling never breaks a run: what cannot be told is left out, and said in the log."""

    def __init__(self, store: Store, asked: Sequence[str]) -> None:
        self.store = store
        self.modes = written_modes(asked)
        self.subgraphs = SUBGRAPHS in asked
        self.lease: Lease | None = None
        self._shaper: Shaper | None = None
        self._writer: Writer | None = None
        self._waiting: list[EventRow] = []
        self._size = 0
        self._tries = 0
        self._done: set[str] = set()
        """Tasks whose results were saved, and told, before their step is over."""
        self._timer: Timer | None = None
        self._buffer = Lock()
        """Held for a moment, by whoever adds to what waits, or takes it."""
        self._writing = Lock()
        """Held while something is written, so that lines keep their order."""

    def attach(self, shaper: Shaper, lease: Lease, writer: Writer) -> None:
        """Know in which shapes things are told, for which run, and who writes its steps."""
        self._shaper = shaper
        self.lease = lease
        self._writer = writer

    def begin(self, done: Iterable[str]) -> None:
        """Know which tasks of the step under way have a result from before."""
        self._done = set(done)

    # ── In the middle of a step ────────────────────────────────────────────────────────────────────────────────────

    def hear(self, event: Emit) -> None:
        """Note what is told while a node runs, or inside a graph inside it."""
        if not event.ns and event.kind not in (CUSTOM, MESSAGES, TASK):
            return  # written with the step, or there anyway
        self._add(self._lines(event))

    def _add(self, lines: Iterable[EventRow]) -> None:
        """Let lines wait a moment for others; whoever tells faster than the database writes must wait, too."""
        with self._buffer:
            before = len(self._waiting)
            self._waiting += lines
            self._size += sum(len(line.body) for line in self._waiting[before:])
            is_full = len(self._waiting) >= MOST_WAITING or self._size >= MOST_BYTES
            if self._waiting and not is_full:
                self._write_in(LATER)
        if is_full:
            self.flush()

    def _write_in(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = Timer(seconds, self.flush)
            self._timer.daemon = True
            self._timer.start()

    def flush(self) -> None:
        """Write what waits."""
        with self._writing:
            lines, lease = self._taken(), self.lease
            if not lines or lease is None:
                return
            try:
                if self._writer is not None and self._writer.mode == "async":
                    self._writer.flush(lease)  # what was told of the steps before comes first
                self.store.tell(lease, lines)
                self._tries = 0
            except LeaseLostError:
                self.lease = None  # the run is another's, and so is the telling
            except StoreError as problem:
                self._keep(lease, lines, problem)
            except BideError as problem:
                logger.warning("What run %s tells could not be written: %s", lease.run_id, problem)

    def _keep(self, lease: Lease, lines: list[EventRow], problem: StoreError) -> None:
        """Try again in a while, or with the next step; but a database that stays away must not fill the memory."""
        self._tries += 1
        if self._tries > MOST_TRIES:
            logger.warning("What run %s tells could not be written: %s", lease.run_id, problem)
            return
        with self._buffer:
            self._waiting[:0] = lines
            self._size += sum(len(line.body) for line in lines)
            self._write_in(self._tries * LATER * 10)

    def _taken(self) -> list[EventRow]:
        with self._buffer:
            lines, self._waiting, self._size = self._waiting, [], 0
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return lines

    # ── With a step ────────────────────────────────────────────────────────────────────────────────────────────────

    def results(
        self, before: Checkpoint | None, outcomes: Iterable[Outcome], opens: Iterable[Question] = (), *, is_last: bool
    ) -> tuple[EventRow, ...]:
        """Return the lines of finished tasks and of new questions, behind all that waits: they are written together.

        Steps that are written only at the end of the run do not keep back what is told of them.
        """
        if self._writer is not None and self._writer.mode == "exit" and not is_last:
            self._add([] if before is None else self._results(before, outcomes, opens))
            return ()
        with self._writing:
            lines = self._taken()
        if before is None:
            return tuple(lines)
        lines += self._results(before, outcomes, opens)
        return tuple(line._replace(seq=before.seq) for line in lines)

    def _results(
        self, before: Checkpoint, outcomes: Iterable[Outcome], opens: Iterable[Question]
    ) -> Iterator[EventRow]:
        for outcome in outcomes:
            if not outcome.is_skipped and outcome.task.id not in self._done:
                yield from self._lines(Emit(RESULT, (before, outcome)))
                if outcome.is_done:
                    self._done.add(outcome.task.id)
        yield from self._lines_of_asking(before, opens)

    def _lines_of_asking(self, before: Checkpoint, opens: Iterable[Question]) -> Iterator[EventRow]:
        if "tasks" not in self.modes:
            return
        asking: dict[str, list[Question]] = {}
        for question in opens:
            if not question.is_static:
                asking.setdefault(branch_of(before.prefix, question.task_id), []).append(question)
        for task in before.tasks:
            if task.id in asking:
                outcome = Outcome(task, asks=tuple(asking[task.id]))
                yield from self._lines(Emit(RESULT, (before, outcome)), ("tasks",))

    def _lines(self, event: Emit, modes: Sequence[str] | None = None) -> list[EventRow]:
        try:
            return list(self._lines_of(event, self.modes if modes is None else modes))
        except Exception:  # whatever a value of the application's raises when it is looked at
            logger.exception("Something that run %s tells cannot be shown.", self.lease and self.lease.run_id)
            return []

    def _lines_of(self, event: Emit, modes: Sequence[str]) -> Iterator[EventRow]:
        assert self._shaper is not None, "it was attached before the run began"
        for mode in modes:
            if self._shaper.shows(mode, event):
                for payload in self._shaper.payloads(mode, event):
                    yield line_of(mode, event.ns, payload, self.store.bodies.largest)


def line_of(mode: str, ns: Sequence[str], payload: Any, largest: int) -> EventRow:
    """Write down one part of a stream; one that the store would refuse is told to be too large."""
    line = _line(mode, ns, json.dumps(jsonable(payload), ensure_ascii=False, separators=(",", ":")))
    if len(line.body) <= largest:
        return line
    why = f"This part has {len(line.body)} bytes, and the store takes {largest}. See largest_value=… of Store.open."
    return _line(mode, ns, json.dumps({"__error__": {"error": "ValueTooLargeError", "message": why}}))


def _line(mode: str, ns: Sequence[str], data: str) -> EventRow:
    return EventRow(f"{TOLD}{mode}", PLAIN.encode({"ns": list(ns), "data": data}, "event"))
