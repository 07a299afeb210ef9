"""The end of a thread's story: what its log and its checkpoints hold behind a place that somebody has read up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bide.clock import Instant
from bide.errors import CorruptDataError
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.frames import Frame, unpack_frame
from bide.store.places import event_place
from bide.store.reads import noticing_damage
from bide.store.seal import place_of

ENOUGH = 256 * 1024
"""So many bytes of lines are a full page, however few lines that are: whoever reads slowly holds one in memory."""


class StepRow(NamedTuple):
    """A checkpoint as a line of the log."""

    seq: int
    step: int
    source: str
    run_id: str
    at: Instant
    nodes: tuple[str, ...] = ()
    """Who has run."""
    next: tuple[str, ...] = ()
    """Who comes next."""
    changed: tuple[str, ...] | None = None
    """The keys of the state that are not as they were at its parent; None where that cannot be told."""
    problem: str | None = None
    """Why its body cannot be read, if it cannot."""


class LineRow(NamedTuple):
    """A line of the log as it was read."""

    number: int
    seq: int
    """After which checkpoint it came."""
    run_id: str | None
    kind: str
    at: Instant
    body: bytes = b""
    problem: str | None = None
    """Why its body cannot be read, if it cannot."""


class Tail(NamedTuple):
    """What comes next in a thread, from one snapshot."""

    uid: str
    graph: str
    head: int
    events: int
    """How many lines its log has."""
    live: str | None
    """The status of its live run."""
    queued: int
    """How many runs are put behind that one, or off."""
    steps: Sequence[StepRow]
    lines: Sequence[LineRow]
    is_cut: bool = False
    """Whether more lines were found than are read at once."""


def read_tail(tx: Transaction, bodies: Bodies, thread_id: str, after: tuple[int, int], most: int) -> Tail | None:
    """Read up to so many checkpoints and lines behind (checkpoint, line); None if there is no such thread."""
    seq, number = after
    # Asked together: a database that is a network away answers all of it in one round trip.
    thread = tx.ask("follow_thread", {"thread_id": thread_id})
    checkpoints = tx.ask("follow_checkpoints", {"thread_id": thread_id, "after": seq, "most": most})
    lines = tx.ask("read_events", {"thread_id": thread_id, "after": number, "most": most})
    if not thread():
        return None
    uid, graph, events, head, live, queued = thread()[0]
    reader = _Steps(tx, bodies, thread_id)
    steps = [reader.read(row) for row in checkpoints()]
    told = _read_lines(tx, bodies, thread_id, lines())
    return Tail(uid, graph, head or 0, events, live, queued, steps, told, len(told) < len(lines()))


def _read_lines(tx: Transaction, bodies: Bodies, thread_id: str, found: Sequence[Row]) -> list[LineRow]:
    """Read lines until it is enough for once."""
    told: list[LineRow] = []
    size = 0
    for row in found:
        told.append(_line(tx, bodies, thread_id, LineRow(*row)))
        size += len(told[-1].body)
        if size >= ENOUGH:
            break
    return told


def _line(tx: Transaction, bodies: Bodies, thread_id: str, line: LineRow) -> LineRow:
    place = event_place(thread_id, line.kind, line.seq, line.at)
    try:
        return line._replace(body=bodies.open(tx, place, line.body))
    except CorruptDataError as problem:
        return line._replace(body=b"", problem=str(problem))


class _Steps:
    """Reads checkpoints as lines of the log: what they are about, and not the values of the state."""

    def __init__(self, tx: Transaction, bodies: Bodies, thread_id: str) -> None:
        self.tx = tx
        self.bodies = bodies
        self.thread_id = thread_id
        self._frames: dict[int, Frame | None] = {}

    def read(self, row: Row) -> StepRow:
        """Read one checkpoint; a damaged one is a line, too."""
        seq, parent, step, source, run_id, _, created_at, _ = row
        line = StepRow(seq, step, source, run_id, created_at)
        try:
            frame = self._frames[seq] = self._opened(row)
            with noticing_damage(f"checkpoint {seq}"):
                _, tasks, origins, *_ = frame.rest
                changed = self._changed(frame, parent)
                nodes, next_ = (tuple(str(task[1]) for task in named) for named in (origins, tasks))
            return line._replace(nodes=nodes, next=next_, changed=changed)
        except CorruptDataError as problem:
            return line._replace(problem=str(problem))
        finally:
            self._forget_all_but(seq)

    def _changed(self, frame: Frame, parent: int | None) -> tuple[str, ...] | None:
        """Name the keys that differ from the parent's, by their bytes: nothing is decoded for it."""
        before = Frame(0, None, {}, {}, None) if parent is None else self._frame(parent)
        if before is None:
            return None
        ours, theirs = self._places(frame), self._places(before)
        if ours is None or theirs is None:
            return None
        keys = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
        return tuple(sorted(key for key in keys if not key.startswith("~")))  # those are the engine's own

    def _places(self, frame: Frame) -> Mapping[str, Any] | None:
        """Return for each key its bytes, or where in the channel log they are."""
        base = Frame(0, None, {}, {}, None) if frame.base is None else self._frame(frame.base)
        if base is None:
            return None
        return {**base.small, **frame.small, **frame.logged}

    def _frame(self, seq: int) -> Frame | None:
        """Read the frame of an older checkpoint, if it is still there and whole."""
        if seq not in self._frames:
            row = self.tx.one("read_checkpoint", {"thread_id": self.thread_id, "ns": "", "seq": seq, "pruned": 1})
            try:
                self._frames[seq] = None if row is None else self._opened(row)
            except CorruptDataError:
                self._frames[seq] = None
        return self._frames[seq]

    def _opened(self, row: Row) -> Frame:
        seq, parent, step, source, run_id, epoch, created_at, body = row
        place = place_of("checkpoints", self.thread_id, "", seq, parent, step, source, run_id, epoch, created_at)
        opened = self.bodies.open(self.tx, place, body)
        with noticing_damage(place):
            return unpack_frame(opened)

    def _forget_all_but(self, seq: int) -> None:
        """Keep what the next checkpoint most likely asks for: its parent, and the base of that."""
        newest = self._frames.get(seq)
        keep = {seq, None if newest is None else newest.base}
        self._frames = {known: frame for known, frame in self._frames.items() if known in keep}
