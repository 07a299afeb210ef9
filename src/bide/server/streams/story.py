"""The story of a run in the events that LangGraph's clients know: each entry of the log becomes the parts of the modes
that were asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bide.clock import iso
from bide.errors import UnknownCheckpointError
from bide.graph.telling import TOLD
from bide.server.context import Context
from bide.server.langgraph.shapes import RUN_STATUS, error_shape, read_raised, state_shape
from bide.server.langgraph.wire import jsonable
from bide.server.payloads import interrupt_of
from bide.server.streams.conversation import Conversation
from bide.server.streams.log import Entry
from bide.server.streams.run_events import RunEvents
from bide.server.streams.sse import Part, part
from bide.store.notes import run_notes
from bide.store.rows import checkpoint_id
from bide.store.tail import StepRow
from bide.types import RunStatus, StateSnapshot

INTERRUPT = "__interrupt__"
ENDS: Mapping[str, RunStatus] = {
    "run.done": RunStatus.DONE,
    "run.failed": RunStatus.FAILED,
    "run.cancelled": RunStatus.CANCELLED,
    "run.blocked": RunStatus.BLOCKED,
    "run.dead": RunStatus.DEAD,
    "run.continued": RunStatus.WAITING,
}
"""Lines after which a run tells nothing more. Whoever saw it wait has seen all of it: another went on in its place."""
NEEDS_THE_STATE = frozenset({"values", "checkpoints", "debug"})


class Story:
    """One run, told in some modes."""

    def __init__(
        self, ctx: Context, thread_id: str, run_id: str, modes: tuple[str, ...], *, subgraphs: bool, goes_on: bool
    ) -> None:
        self.ctx = ctx
        self.thread_id = thread_id
        self.run_id = run_id
        self.modes = frozenset(modes)
        self.subgraphs = subgraphs
        self.goes_on = goes_on
        """Whether it began without an input, on a state that was there."""
        self.status: RunStatus | None = None
        """How it ended, once that was told."""
        self.is_paused = False
        self._is_mute = False
        self._conversation = Conversation(self.modes)
        self._events: RunEvents | None = None
        self._step_now: int | None = None
        self._told: Mapping[str, Callable[[str, Any, Entry], Iterator[Part]]] = {
            "updates": self._plain("updates"),
            "custom": self._plain("custom"),
            "values": self._plain("values"),
            "tasks": self._task,
            "messages": self._message,
        }

    @property
    def is_stateful(self) -> bool:
        """Whether its parts are made of what came before, so that it must be told from its beginning."""
        return bool(self.modes & {"messages", "tools", "events"})

    def hear(self, entry: Entry) -> None:
        """Know what an entry says, without telling it: states are not even read."""
        self._is_mute = True
        self.parts(entry)
        self._is_mute = False

    def needs_the_store(self, entry: Entry) -> bool:
        """Whether parts of this entry cannot be made without looking something up."""
        return not entry.is_told

    def parts(self, entry: Entry) -> list[Part]:
        """Return what is told of an entry; nothing of those of other runs."""
        if entry.row.run_id != self.run_id:
            return []
        return list(self._parts(entry))

    def _parts(self, entry: Entry) -> Iterator[Part]:
        if isinstance(entry.row, StepRow):
            yield from self._step(entry, entry.row.seq)
        elif entry.is_told:
            yield from self._told_line(entry)
        elif entry.kind in ("run.ready", "run.queued"):
            yield from self._begin(entry)
        elif entry.kind == "run.reaped":
            self._conversation = Conversation(self.modes)  # what was cut short is said again, from its beginning
            if self._events is not None:
                self._events.forget()
            yield part("metadata", {"run_id": self.run_id, "attempt": int(entry.body.get("crashes", 1)) + 1})
        elif entry.kind == "run.waiting":
            yield from self._pause(entry)
        elif entry.kind in ENDS:
            yield from self._end(ENDS[entry.kind], entry)

    def _begin(self, entry: Entry) -> Iterator[Part]:
        yield part("metadata", {"run_id": self.run_id, "attempt": 1})
        if "events" in self.modes:
            yield from self._begin_events(entry)
        if self.goes_on and "values" in self.modes and entry.row.seq:
            snapshot = self.snapshot(entry, entry.row.seq)
            if snapshot is not None:
                yield part("values", jsonable(snapshot.values))

    def _begin_events(self, entry: Entry) -> Iterator[Part]:
        notes = run_notes(self.ctx.app.store, self.thread_id, self.run_id)
        where = {"thread_id": self.thread_id, "run_id": self.run_id}
        self._events = RunEvents(self.run_id, entry.graph, {**(notes.get("metadata") or {}), **where})
        yield from self._events.begin((notes.get("kwargs") or {}).get("input"))

    # ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self, entry: Entry, seq: int) -> Iterator[Part]:
        self.is_paused = False
        self._step_now = entry.row.step if isinstance(entry.row, StepRow) else None
        if not self.modes & NEEDS_THE_STATE:
            return
        snapshot = self.snapshot(entry, seq)
        if snapshot is None:
            return  # retention has let it go
        if "values" in self.modes:
            yield part("values", jsonable(snapshot.values))
        if "checkpoints" in self.modes:
            yield part("checkpoints", self._checkpoint(snapshot))
        if "debug" in self.modes:
            yield part("debug", self._debugged(entry, "checkpoint", self._checkpoint(snapshot)))

    def snapshot(self, entry: Entry, seq: int) -> StateSnapshot | None:
        """Return the state that a checkpoint is; None if it was let go, or its graph is not known here."""
        if self._is_mute:
            return None
        graph = self.ctx.app.graphs.find(entry.graph)
        uid = self.ctx.app.store.uid_of(self.thread_id)
        if graph is None or uid is None:
            return None
        place = {"thread_id": self.thread_id, "checkpoint_id": checkpoint_id(uid, seq)}
        try:
            return graph.written_state({"configurable": place})
        except UnknownCheckpointError:
            return None

    def _checkpoint(self, snapshot: StateSnapshot) -> dict[str, Any]:
        shown = state_shape(self.ctx, snapshot)
        return {
            "config": jsonable(snapshot.config),
            "parent_config": jsonable(snapshot.parent_config),
            **{key: shown[key] for key in ("values", "metadata", "next", "tasks", "checkpoint", "parent_checkpoint")},
        }

    def _debugged(self, entry: Entry, kind: str, payload: Any) -> dict[str, Any]:
        step = entry.row.step if isinstance(entry.row, StepRow) else self._next_step(entry)
        return {"step": step, "timestamp": iso(entry.row.at), "type": kind, "payload": payload}

    def _next_step(self, entry: Entry) -> int:
        """Return the step that something was told in; steps and checkpoints are counted alike, but for branches."""
        return entry.row.seq if self._step_now is None else self._step_now + 1

    # ── What was told ──────────────────────────────────────────────────────────────────────────────────────────────

    def _told_line(self, entry: Entry) -> Iterator[Part]:
        self.is_paused = False
        ns: list[str] = entry.body.get("ns", [])
        if (ns and not self.subgraphs) or "data" not in entry.body:
            return
        suffix = "".join(f"|{one}" for one in ns)
        yield from self._told[entry.kind.removeprefix(TOLD)](suffix, entry.body["data"], entry)

    def _plain(self, mode: str) -> Callable[[str, Any, Entry], Iterator[Part]]:
        def told(suffix: str, data: str, entry: Entry) -> Iterator[Part]:
            if mode in self.modes:
                yield Part(f"{mode}{suffix}", data)

        return told

    def _task(self, suffix: str, data: str, entry: Entry) -> Iterator[Part]:
        task = json.loads(data)
        if task.get("error"):
            task["error"] = read_raised(str(task["error"]))
        if "tasks" in self.modes:
            yield part(f"tasks{suffix}", task)
        if "debug" in self.modes:
            yield part(f"debug{suffix}", self._debugged(entry, "task" if "input" in task else "task_result", task))
        if self._events is not None:
            yield from self._events.task(suffix, task, self._next_step(entry))

    def _message(self, suffix: str, data: str, entry: Entry) -> Iterator[Part]:
        yield from self._conversation.parts(suffix, data)
        if self._events is not None:
            yield from self._events.message(suffix, *json.loads(data))

    # ── Pauses and ends ────────────────────────────────────────────────────────────────────────────────────────────

    def _pause(self, entry: Entry) -> Iterator[Part]:
        self.is_paused = True
        self._conversation = Conversation(self.modes)  # a node that goes on says it again, too
        asks = self.questions(entry.body)
        if entry.body.get("error"):
            yield part("error", error_shape(entry.body["error"]))
        if "updates" in self.modes:
            yield part("updates", {INTERRUPT: asks})
        if "values" in self.modes and asks:
            values = self._values(entry)
            yield part("values", {**(values if isinstance(values, dict) else {}), INTERRUPT: asks})
        if self._events is not None:
            yield from self._events.chunk({INTERRUPT: asks})
            yield from self._events.end(self._values(entry))

    def _values(self, entry: Entry) -> Any:
        snapshot = self.snapshot(entry, entry.row.seq)
        return {} if snapshot is None else jsonable(snapshot.values)

    def questions(self, body: Any) -> list[Any]:
        """Return what was asked at a pause, whatever became of it."""
        asked = []
        for ask in (body or {}).get("asks", ()):
            if ask["kind"] not in ("before", "after") and self.ctx.app.store.wait(ask["id"]) is not None:
                asked.append(jsonable(interrupt_of(self.ctx.app.wait(ask["id"]))))
        return asked

    def _end(self, status: RunStatus, entry: Entry) -> Iterator[Part]:
        self.status = status
        if self._events is not None and status is RunStatus.DONE and entry.kind == "run.done":
            yield from self._events.end(self._values(entry))
        if RUN_STATUS[status] == "error":
            yield part("error", error_shape((entry.body or {}).get("error")))
        yield self.end(status)

    def end(self, status: RunStatus) -> Part:
        """Return the last event of a stream."""
        return part("end", {"run_id": self.run_id, "status": RUN_STATUS[status]})
