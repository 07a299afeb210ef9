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
from bide.errors import BideError, LeaseLostError
from bide.shape.shown import jsonable
from bide.store.needed import PLAIN
from bide.store.rows import EventRow, Lease

if TYPE_CHECKING:
    from bide.graph.streaming import Shaper
    from bide.store import Store

logger = logging.getLogger("bide.worker")

TOLD = "told."
"""What the kinds of such lines begin with."""
SUBGRAPHS = "subgraphs"
LATER = 0.05
"""Seconds until what was told in the middle of a node is written."""
MOST_WAITING = 500
"""So many lines may wait before whoever tells must wait, too."""

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
    """Writes what one run tells."""

    def __init__(self, store: Store, asked: Sequence[str]) -> None:
        self.store = store
        self.modes = written_modes(asked)
        self.subgraphs = SUBGRAPHS in asked
        self.lease: Lease | None = None
        self.head = 0
        self._shaper: Shaper | None = None
        self._waiting: list[EventRow] = []
        self._writing = Lock()
        self._timer: Timer | None = None

    def attach(self, shaper: Shaper, lease: Lease) -> None:
        """Know in which shapes things are told, and for which run."""
        self._shaper = shaper
        self.lease = lease

    # ── In the middle of a step ────────────────────────────────────────────────────────────────────────────────────

    def hear(self, event: Emit) -> None:
        """Note what is told while a node runs, or inside a graph inside it."""
        if not event.ns and event.kind not in (CUSTOM, MESSAGES, TASK):
            return  # written with the step, or there anyway
        lines = list(self._lines(event))
        if not lines:
            return
        with self._writing:
            self._waiting += lines
            if self._timer is None and len(self._waiting) < MOST_WAITING:
                self._timer = Timer(LATER, self.flush)
                self._timer.daemon = True
                self._timer.start()
        if len(self._waiting) >= MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._writing:
            lines = self._taken()
            if not lines or self.lease is None:
                return
            try:
                self.store.tell(self.lease, self.head, lines)
            except LeaseLostError:
                self.lease = None  # the run is another's, and so is the telling
            except BideError as problem:
                logger.warning("What run %s tells could not be written: %s", self.lease.run_id, problem)

    def _taken(self) -> list[EventRow]:
        lines, self._waiting = self._waiting, []
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return lines

    # ── With a step ────────────────────────────────────────────────────────────────────────────────────────────────

    def results(
        self, before: Checkpoint | None, outcomes: Iterable[Outcome], opens: Iterable[Question] = ()
    ) -> tuple[EventRow, ...]:
        """Return the lines of finished tasks and of new questions, behind all that waits: they are written together."""
        with self._writing:
            lines = self._taken()
        if before is None:
            return tuple(lines)
        for outcome in outcomes:
            if not outcome.is_skipped:
                lines += self._lines(Emit(RESULT, (before, outcome)))
        lines += self._lines_of_asking(before, opens)
        return tuple(line._replace(seq=before.seq) for line in lines)

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

    def _lines(self, event: Emit, modes: Sequence[str] | None = None) -> Iterator[EventRow]:
        assert self._shaper is not None, "it was attached before the run began"
        for mode in self.modes if modes is None else modes:
            if self._shaper.shows(mode, event):
                for payload in self._shaper.payloads(mode, event):
                    yield line_of(mode, event.ns, payload)


def line_of(mode: str, ns: Sequence[str], payload: Any) -> EventRow:
    """Write down one part of a stream."""
    text = json.dumps(jsonable(payload), ensure_ascii=False, separators=(",", ":"))
    return EventRow(f"{TOLD}{mode}", PLAIN.encode({"ns": list(ns), "data": text}, "event"))
