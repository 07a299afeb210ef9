"""The thread protocol: everything that happens in a thread, across its runs, as numbered events of channels.

Events are numbered by their place in the log, before anything is filtered: the same event has the same number on every
connection and every server, also when retention has let older ones go, so that whoever goes on from a number misses
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bide.graph.telling import TOLD
from bide.server.context import Context
from bide.server.langgraph.shapes import state_shape
from bide.server.langgraph.wire import jsonable
from bide.server.payloads import interrupt_of
from bide.server.streams.log import Entry
from bide.server.streams.message_events import MessageEvents
from bide.server.streams.story import Story
from bide.store.tail import LineRow, StepRow
from bide.types import WaitStatus

ALL_MODES = ("values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "subgraphs")
"""What a run tells that the thread protocol starts: whoever subscribes later may want any of it."""
NUMBERS, OWN = 4096, 1024
"""Each entry of the log has so many numbers, and those of its own events begin in the middle. Before them come messages
that it brings to an end: how many these are depends on what is left of the log."""
_TERMINAL = ("completed", "failed", "interrupted")
_ENDS = {"run.done": "completed", "run.failed": "failed", "run.blocked": "failed", "run.dead": "failed"}


class Happened(NamedTuple):
    """One event."""

    method: str
    namespace: tuple[str, ...]
    data: Any
    at: int
    node: str | None = None
    is_past: bool = False
    """Whether it is over, and only of interest to whoever counts: a question that was answered."""

    @property
    def channel(self) -> str:
        """Where it is told."""
        if self.method == "input.requested":
            return "input"
        if self.method == "custom" and isinstance(self.data, Mapping) and self.data.get("name"):
            return f"custom:{self.data['name']}"
        return self.method


class Subscription(NamedTuple):
    """What somebody wants to hear."""

    channels: frozenset[str]
    namespaces: tuple[tuple[str, ...], ...] = ()
    depth: int | None = None
    since: int = 0

    def wants(self, number: int, happened: Happened) -> bool:
        """Whether an event is to be told."""
        if number <= self.since or happened.is_past:
            return False
        channel = happened.channel
        if channel not in self.channels and not (channel.startswith("custom:") and "custom" in self.channels):
            return False
        return self._is_near(happened.namespace)

    def _is_near(self, namespace: tuple[str, ...]) -> bool:
        prefixes = self.namespaces or ((),)
        return any(
            _begins_with(namespace, prefix) and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in prefixes
        )


def _begins_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether a namespace begins with another; a segment without an id stands for all of that name."""
    if len(prefix) > len(namespace):
        return False
    pairs = zip(prefix, namespace, strict=False)
    return all(one == other or (":" not in one and other.partition(":")[0] == one) for one, other in pairs)


class ThreadStory:
    """A thread, told from its beginning."""

    def __init__(self, ctx: Context, thread_id: str, *, is_new: bool = True) -> None:
        self.ctx = ctx
        self.thread_id = thread_id
        self._passed: tuple[int, str] | None = None if is_new else (0, "")
        """How many lines there were in the beginning, and the run whose end or pause was the last."""
        self._seq = 0
        self.since = 0
        """Up to which number everything was told: of what came before, states need not be read."""
        self._state = Story(ctx, thread_id, "", (), subgraphs=True, goes_on=False)
        self._messages: dict[tuple[str, ...], MessageEvents] = {}
        self._inside: set[tuple[str, ...]] = set()

    def happened(self, entry: Entry) -> list[tuple[int, Happened]]:
        """Return the events that an entry of the log is, with their numbers."""
        # A line names the checkpoint that it came after, also when that was let go.
        self._seq = max(self._seq, entry.row.seq)
        first = (self._seq + entry.after.number) * NUMBERS
        ended = self._finish_messages(entry.row.at) if _is_break(entry) else ()
        return [*_numbered(first, OWN, ended), *_numbered(first + OWN, NUMBERS - OWN, self._happened(entry))]

    def _happened(self, entry: Entry) -> Iterator[Happened]:
        if isinstance(entry.row, StepRow):
            yield from self._values(entry, entry.row.seq)
        elif entry.is_told:
            yield from self._told(entry, entry.row.at)
        elif entry.kind in ("run.ready", "run.queued"):
            yield self._lifecycle(entry, "started")
        elif entry.kind in ("run.started", "run.resumed", "run.taken_over", "run.reaped"):
            yield self._lifecycle(entry, "running")
        elif entry.kind == "run.waiting":
            yield from self._pause(entry)
        elif entry.kind == "run.cancelled":
            yield self._lifecycle(entry, "failed", error=f"cancelled: {(entry.body or {}).get('reason')}")
        elif entry.kind in _ENDS:
            error = (entry.body or {}).get("error")
            yield self._lifecycle(entry, _ENDS[entry.kind], **({"error": error} if error else {}))

    def _lifecycle(self, entry: Entry, event: str, **more: Any) -> Happened:
        data = {"event": event, "graph_name": entry.graph, "run_id": entry.row.run_id, **more}
        is_past = event in _TERMINAL and self._was_passed(entry)
        return Happened("lifecycle", (), data, entry.row.at, is_past=is_past)

    def _was_passed(self, entry: Entry) -> bool:
        """Whether the thread had gone on behind an end or a pause when somebody began to follow it.

        Clients take the first end that they hear of for the end of the run that they have just started.
        """
        if self._passed is None:
            row = self.ctx.app.store.database.read(lambda tx: tx.one("peek_thread", {"thread_id": self.thread_id}))
            newest = next(iter(self.ctx.app.store.runs(self.thread_id, most=1)), None)
            is_driven = row is not None and row[3] in ("ready", "running")
            self._passed = (0 if row is None else int(row[1]), "" if newest is None or is_driven else newest.run_id)
        lines, rests_with = self._passed
        return isinstance(entry.row, LineRow) and entry.row.number <= lines and entry.row.run_id != rests_with

    def _values(self, entry: Entry, seq: int) -> Iterator[Happened]:
        if (self._seq + entry.after.number + 1) * NUMBERS <= self.since:
            return
        snapshot = self._state.snapshot(entry, seq)
        at = entry.row.at
        if snapshot is None:
            return  # retention has let it go
        shape = state_shape(self.ctx, snapshot)
        yield Happened("checkpoints", (), checkpoint_event(shape), at)
        yield Happened("values", (), shape["values"], at)

    def _pause(self, entry: Entry) -> Iterator[Happened]:
        for ask in (entry.body or {}).get("asks", ()):
            if ask["kind"] in ("before", "after"):
                continue
            row = self.ctx.app.store.wait(ask["id"])
            is_past = row is None or row.status is not WaitStatus.OPEN or row.is_consumed
            told = {} if row is None else jsonable(interrupt_of(self.ctx.app.wait(ask["id"])))
            # JavaScript reads `payload`, Python reads `value`.
            data = {"interrupt_id": ask["id"], "payload": told.get("value"), **told}
            ns = () if row is None else above(row.task_id)
            yield Happened("input.requested", ns, data, entry.row.at, ask["node"], is_past=is_past)
        yield self._lifecycle(entry, "interrupted")

    # ── What was told ──────────────────────────────────────────────────────────────────────────────────────────────

    def _told(self, entry: Entry, at: int) -> Iterator[Happened]:
        if "data" not in entry.body:
            return  # it cannot be read
        mode = entry.kind.removeprefix(TOLD)
        ns = tuple(segment(one) for one in entry.body["ns"])
        data = json.loads(entry.body["data"])
        if mode == "messages":
            where = data[1] if isinstance(data[1], dict) else {}
            for channel, told in self._messages.setdefault(ns, MessageEvents()).told(data[0], where):
                yield Happened(channel, ns, told, at, where.get("langgraph_node"))
        elif mode == "tasks":
            yield from self._task(ns, {**data, "id": str(data["id"]).rpartition("|")[2]}, at)
        elif mode == "updates":
            for node, values in data.items():
                yield Happened("updates", ns, {"node": node, "values": values}, at, node)
        elif mode == "custom":
            name = data.get("name") if isinstance(data, dict) else None
            named = {"name": name} if isinstance(name, str) else {}
            yield Happened("custom", ns, {**named, "payload": data}, at)
        else:
            yield Happened(mode, ns, data, at)

    def _task(self, ns: tuple[str, ...], task: dict[str, Any], at: int) -> Iterator[Happened]:
        if ns and ns not in self._inside:
            self._inside.add(ns)
            started = {"event": "started", "graph_name": ns[-1].partition(":")[0]}
            yield Happened("lifecycle", ns, started, at)
        yield Happened("tasks", ns, task, at, task.get("name"))
        below = (*ns, f"{task.get('name')}:{task['id']}")
        if "result" in task and below in self._inside:
            self._inside.discard(below)
            event = "failed" if task.get("error") else "interrupted" if task.get("interrupts") else "completed"
            yield Happened("lifecycle", below, {"event": event, "graph_name": task.get("name")}, at)

    def _finish_messages(self, at: int) -> Iterator[Happened]:
        for ns, messages in self._messages.items():
            for channel, told in messages.finish_all():
                yield Happened(channel, ns, told, at)


def _is_break(entry: Entry) -> bool:
    """Whether nobody speaks any more who has spoken before it."""
    return isinstance(entry.row, StepRow) or entry.kind in ("run.waiting", "run.cancelled", "run.reaped", *_ENDS)


def _numbered(first: int, most: int, told: Iterable[Happened]) -> Iterator[tuple[int, Happened]]:
    for number, happened in enumerate(told, 1):
        yield first + min(number, most - 1), happened


def told_through(ctx: Context, thread_id: str) -> int:
    """Return the number up to which a thread has told its events: whatever comes of a command has a higher one."""
    row = ctx.app.store.database.read(lambda tx: tx.one("peek_thread", {"thread_id": thread_id}))
    return 0 if row is None else (int(row[1]) + int(row[2] or 0) + 1) * NUMBERS - 1


def checkpoint_event(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a checkpoint: by its step, clients know the replay of what was from what comes next."""
    named = {"id": shape["checkpoint"]["checkpoint_id"], "next": shape["next"], "metadata": shape["metadata"]}
    parent = shape["parent_checkpoint"]
    if parent is not None:
        named["parent_id"] = parent["checkpoint_id"]
    told = {key: shape["metadata"].get(key) for key in ("step", "source")}
    return {**shape["checkpoint"], **named, **told}


def above(task_id: str) -> tuple[str, ...]:
    """Return the namespace of the graph that a task is of."""
    return tuple(f"{one.partition('.')[2]}:{one}" for one in task_id.split("|")[:-1])


def segment(shown: str) -> str:
    """Return a part of a namespace as this protocol has it: the node, and the whole id of its task."""
    node, colon, place = shown.partition(":")
    return f"{node}:{place}.{node}" if colon else shown


def event_of(number: int, thread_id: str, happened: Happened) -> dict[str, Any]:
    """Return an event as it goes over the wire."""
    params: dict[str, Any] = {"namespace": list(happened.namespace), "timestamp": happened.at, "data": happened.data}
    if happened.node is not None:
        params["node"] = happened.node
    return {
        "type": "event",
        "event_id": f"{thread_id}:{number}",
        "seq": number,
        "method": happened.method,
        "params": params,
    }
