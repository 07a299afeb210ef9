"""What a checkpoint holds on to beside its own values: its tasks, and graphs inside it that keep their state.

Whoever lets checkpoints go must know this: a graph inside a task goes with the step of that task, and one that keeps
its state is needed as it stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bide.codec import Codec
from bide.errors import CorruptDataError
from bide.store.frames import Frame
from bide.store.reads import History, noticing_damage
from bide.store.seal import place_of

STANDS = "~frames"
"""The hidden key of the state that says where graphs stand which keep theirs between calls: `{ns: checkpoint}`."""
LASTING = "@"
"""The namespace of such a graph begins so, and has no number of a step in it."""


class Links(NamedTuple):
    """What one checkpoint holds on to."""

    tasks: frozenset[str]
    """The tasks that come next."""
    origins: frozenset[str]
    """Those that it came from."""
    stands: Mapping[str, int]
    """Where the graphs that keep their state stood."""


class LinkedHistory(History):
    """Reads the frames of one graph of a thread, and what they hold on to."""

    _codec = Codec()

    def frame(self, seq: int) -> Frame:
        """Read the frame of a checkpoint, whether it is there for readers or only for others that need it."""
        row = self.tx.one("read_checkpoint", {**self.place, "seq": seq, "pruned": 1})
        if row is None:
            raise CorruptDataError(f"Checkpoint {seq} of thread {self.place['thread_id']!r} is gone.")
        return self._opened(row)[1]

    def links(self, seq: int, frame: Frame) -> Links:
        """Return what a checkpoint holds on to."""
        with noticing_damage(place_of("checkpoints", self.place["thread_id"], self.place["ns"], seq)):
            _, tasks, origins, *_ = frame.rest
            ids = [frozenset(str(entry[0]) for entry in entries) for entries in (tasks, origins)]
            return Links(ids[0], ids[1], self._stands(frame))

    def _stands(self, frame: Frame) -> Mapping[str, int]:
        body = self._all_small(frame).get(STANDS)
        if body is None and STANDS in frame.logged:
            value = self._value(STANDS, frame.logged[STANDS])
            body = value if isinstance(value, bytes) else None
        stands = {} if body is None else self._codec.decode(body, f"state[{STANDS!r}]")
        return stands if isinstance(stands, dict) else {}


def outer_task(ns: str) -> str:
    """Return the task in which the graph at this place runs: `12.team` for `12.team:1`, its second call there."""
    outer, bar, last = ns.rpartition("|")
    return outer + bar + last.partition(":")[0]


def tasks_around(task_id: str) -> Iterator[str]:
    """Name a task, and all those around it: `12.team`, `12.team|3.ask` for `12.team|3.ask:fetch#2`."""
    around = ""
    for element in task_id.split("|"):
        around = f"{around}|{element}" if around else element
        yield around
        task = outer_task(around)
        if task != around:
            yield task


def planned_in(task_id: str) -> tuple[str, str, int | None]:
    """Return where a task was planned: the place of its graph, what that is called if it keeps its state, and the step.

    The step is None for what was never planned, as the start of a graph.
    """
    outer, _, last = task_id.rpartition("|")
    number = last.partition(".")[0].partition("/")[0]
    lasting = LASTING + "|".join(element.partition(".")[2] for element in outer.split("|"))
    return outer, lasting, int(number) if number.isdecimal() and "." in last else None
