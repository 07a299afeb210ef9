"""Whether the history of a thread is whole: its checkpoints (I2), and the large values that they speak of (I9)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from bide.errors import CodecError
from bide.store.frames import Frame, Spans, unpack_frame
from bide.store.lists import GROUPED, OPAQUE, SPLICED, WHOLE
from bide.store.lists import unpack_group as inner_rows
from bide.store.reads import History
from bide.store.stored_rows import BEFORE_ALL, CHANNEL_LOG, CHECKPOINTS, Values
from bide.store.verify_rows import RESTORE, RowReader

_FORK = "Go on from a checkpoint that is whole: see get_state_history(config) and fork(config)."

Wanted = Mapping[tuple[str, str], set[Spans]]
"""For each graph and channel: the spans of the channel log in which its checkpoints say that its values are."""


class Node(NamedTuple):
    """What is remembered of a checkpoint."""

    parent: int | None
    base: int | None
    is_pruned: bool


class Told(NamedTuple):
    """What history tells the other checks."""

    heads: Mapping[str, int]
    """The newest checkpoint of each graph of the thread."""
    tasks: frozenset[str] | None
    """The tasks of the step that the thread stands in; None where that cannot be told."""
    writers: frozenset[str]
    """The runs that have written checkpoints which are still there."""
    was_pruned: bool
    """Whether retention has been here: then what older checkpoints speak of may be gone."""


def check_history(reader: RowReader, runs: Mapping[str, Values], *, was_pruned: bool, deep: bool) -> Told:
    """Look at every checkpoint, and at the channel log."""
    return _Checking(reader, runs, deep=deep).all(was_pruned=was_pruned)


class _Checking:
    def __init__(self, reader: RowReader, runs: Mapping[str, Values], *, deep: bool) -> None:
        self.reader = reader
        self.runs = runs
        self.deep = deep
        self.wanted: dict[tuple[str, str], set[Spans]] = defaultdict(set)
        self.broken: set[str] = set()
        """Graphs with checkpoints that cannot be read: what those speak of is not known."""
        self.writers: set[str] = set()
        self.tasks: frozenset[str] | None = None

    def all(self, *, was_pruned: bool) -> Told:
        graphs = {
            ns: self._read_graph(ns, rows)
            for ns, rows in groupby(self.reader.sound(CHECKPOINTS), lambda row: row["ns"])
        }
        leaves: list[tuple[str, int]] = []
        for ns, nodes in graphs.items():
            # Where retention has been, checkpoints are gone that nobody builds on, though others were made from them.
            self._check_parents(ns, nodes, may_be_gone=was_pruned or not self.reader.has_all_rows)
            self._check_bases(ns, nodes)
            parents = {node.parent for node in nodes.values()}
            leaves += [(ns, seq) for seq, node in nodes.items() if seq not in parents and not node.is_pruned]
        if self.deep:
            unsound = self._check_log()
            self._check_leaves([(ns, seq) for ns, seq in leaves if ns not in self.broken | unsound])
        return Told({ns: max(nodes) for ns, nodes in graphs.items()}, self.tasks, frozenset(self.writers), was_pruned)

    def _read_graph(self, ns: str, rows: Iterator[Values]) -> dict[int, Node]:
        nodes: dict[int, Node] = {}
        epochs: dict[str, int] = {}
        for row in rows:
            seq = row["seq"]
            self.writers.add(row["run_id"])
            self._check_epoch(row, epochs)
            frame = self._frame(row) if self.deep else None
            nodes[seq] = Node(row["parent"], None if frame is None else frame.base, bool(row["pruned"]))
            if frame is not None and not row["pruned"]:
                for channel, spans in frame.logged.items():
                    self.wanted[ns, channel].add(spans)
            if ns == "":  # the last one is the head
                self.tasks = None if frame is None else tasks_of(frame)
        return nodes

    def _frame(self, row: Values) -> Frame | None:
        body = self.reader.opened(CHECKPOINTS, row)
        if body is not None:
            try:
                return checked_frame(unpack_frame(body), row["seq"])
            except (ValueError, TypeError, KeyError, IndexError, AttributeError) as problem:
                self.reader.tell("I12", f"{CHECKPOINTS.shown(row)} is no frame of a checkpoint ({problem}).", RESTORE)
        self.reader.is_whole = False
        self.broken.add(row["ns"])
        return None

    # ── I2 ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_epoch(self, row: Values, epochs: dict[str, int]) -> None:
        run_id, epoch = row["run_id"], row["epoch"]
        if not run_id or row["pruned"]:  # an edit from outside, or what is left of one that is gone for readers
            return
        tell, shown = self.reader.tell, CHECKPOINTS.shown(row)
        run = self.runs.get(run_id)
        if run is None and not self.reader.has_all_rows:
            return
        if run is None:
            tell("I2", f"{shown} was written by run {run_id}, which is not there.", RESTORE)
        elif epoch > run["epoch"]:
            tell("I2", f"{shown} was written in epoch {epoch} of a run that is in epoch {run['epoch']}.", RESTORE)
        elif epoch < epochs.get(run_id, 0):
            what = f"{shown} was written in epoch {epoch}, after one of epoch {epochs[run_id]}."
            tell("I2", what, "Two workers wrote to one run: look at both, and fork from the right one.")
        epochs[run_id] = max(epoch, epochs.get(run_id, 0))

    def _check_parents(self, ns: str, nodes: Mapping[int, Node], *, may_be_gone: bool) -> None:
        for seq, node in nodes.items():
            if node.parent is None:
                continue
            if node.parent >= seq:
                what = f"Checkpoint {seq} at {ns!r} names {node.parent} as the one before it."
                self.reader.tell("I2", what, RESTORE)
            elif node.parent not in nodes and not may_be_gone:
                what = f"Checkpoint {node.parent} at {ns!r} is gone, and checkpoint {seq} was made from it."
                self.reader.tell("I2", what, "History has a hole there; what is left can be read. " + RESTORE)

    # ── I9 ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_bases(self, ns: str, nodes: Mapping[int, Node]) -> None:
        if ns in self.broken:
            return
        for seq, node in nodes.items():
            if node.base is None:
                continue
            base = nodes.get(node.base)
            if base is None or base.base is not None:
                fault = "is gone" if base is None else "does not hold all of them either"
                what = (
                    f"Checkpoint {node.base} at {ns!r}, which holds the rest of what is in checkpoint {seq}, {fault}."
                )
                self.reader.tell("I9", what, _FORK)
                self.broken.add(ns)

    def _check_log(self) -> set[str]:
        """Compare the channel log with what checkpoints say; return the graphs in which something is missing."""
        unsound: set[str] = set()
        seen: set[tuple[str, str]] = set()
        for place, rows in groupby(self.reader.sound(CHANNEL_LOG), lambda row: (row["ns"], row["channel"])):
            kinds = self._kinds(rows)
            seen.add(place)
            if kinds is None or place[0] in self.broken or not self._check_channel(place, kinds):
                unsound.add(place[0])
        for ns, channel in self.wanted.keys() - seen:
            self.reader.tell("I9", f"state[{channel!r}] at {ns!r} is not in the channel log.", _FORK)
            unsound.add(ns)
        return unsound

    def _kinds(self, rows: Iterator[Values]) -> dict[int, tuple[int, int]] | None:
        """Return for each change of a channel under which row it is, and its kind; None if one cannot be read."""
        kinds: dict[int, tuple[int, int]] = {}
        is_whole = True
        for row in rows:
            body = self.reader.opened(CHANNEL_LOG, row)
            try:
                if body is not None:
                    for seq, kind in _kinds_in(row["seq"], body):
                        kinds[seq] = row["seq"], kind
                    continue
            except (ValueError, TypeError, IndexError) as problem:
                self.reader.tell("I12", f"{CHANNEL_LOG.shown(row)} cannot be read ({problem}).", RESTORE)
            self.reader.is_whole = is_whole = False
        return kinds if is_whole else None

    def _check_channel(self, place: tuple[str, str], kinds: Mapping[int, tuple[int, int]]) -> bool:
        ns, channel = place
        wanted = self.wanted.get(place, set())
        wholes = sorted(seq for seq, (_, kind) in kinds.items() if kind != SPLICED)
        faults = {fault for spans in wanted if (fault := _fault(spans, kinds, wholes)) is not None}
        for fault in sorted(faults):
            self.reader.tell("I9", f"The value of state[{channel!r}] at {ns!r} is not whole: {fault}.", _FORK)
        lost = sorted({row for row, _ in kinds.values()} - _reached(wanted, kinds))
        if lost and not faults:
            what = f"Rows {lost[:5]} of the channel log, for state[{channel!r}] at {ns!r}, belong to no checkpoint."
            self.reader.tell("I9", what, "They take room, and do no harm; delete_thread() takes them away.")
        return not faults

    def _check_leaves(self, leaves: list[tuple[str, int]]) -> None:
        """Read the newest checkpoint of every branch with all its values: what was spliced must fit together."""
        for ns, group in groupby(leaves, lambda leaf: leaf[0]):
            history = History(self.reader.tx, self.reader.bodies, self.reader.thread_id or "", ns)
            for _, seq in group:
                try:
                    history.read(seq)
                except CodecError as problem:
                    self.reader.tell("I9", f"Checkpoint {seq} at {ns!r} cannot be read. {problem}", _FORK)


def _fault(spans: Spans, kinds: Mapping[int, tuple[int, int]], wholes: list[int]) -> str | None:
    """Say why the rows of a value do not make it up."""
    missing = [seq for span in spans for seq in span if seq not in kinds]
    if missing:
        return f"row {missing[0]} of the channel log is gone"
    begin = spans[0][0]
    if kinds[begin][1] == SPLICED:
        return f"it begins with row {begin} of the channel log, which builds on another"
    for first, last in ((begin + 1, spans[0][1]), *spans[1:]):
        at = bisect_left(wholes, first)
        if at < len(wholes) and wholes[at] <= last:
            return f"row {wholes[at]} of the channel log does not build on those before it"
    return None


def _reached(wanted: set[Spans], kinds: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return the rows that are part of some value."""
    ordered = sorted(kinds)
    reached: set[int] = set()
    done = BEFORE_ALL
    for first, last in sorted({span for spans in wanted for span in spans}):
        for seq in ordered[bisect_left(ordered, max(first, done)) : bisect_left(ordered, last + 1)]:
            reached.add(kinds[seq][0])
        done = max(done, last + 1)
    return reached


def _kinds_in(seq: int, body: bytes) -> Iterator[tuple[int, int]]:
    if body[1] == GROUPED:
        for inner_seq, inner in inner_rows(body):
            yield inner_seq, inner[1]
    elif body[1] in (OPAQUE, WHOLE, SPLICED):
        yield seq, body[1]
    else:
        raise ValueError(f"it is of kind {body[1]}, which is unknown")


def checked_frame(frame: Frame, seq: int) -> Frame:
    """Refuse a frame whose parts are not what they should be."""
    if not isinstance(frame.start, int) or not 0 <= frame.start <= seq:
        raise ValueError(f"its branch begins at {frame.start!r:.40}")
    if frame.base is not None and (not isinstance(frame.base, int) or not 0 < frame.base < seq):
        raise ValueError(f"its base is {frame.base!r:.40}")
    for channel, spans in frame.logged.items():
        numbers = [number for span in spans for number in span]
        if not numbers or not isinstance(channel, str) or not all(isinstance(n, int) and n <= seq for n in numbers):
            raise ValueError(f"the spans of {channel!r:.40} are none")
    if not all(isinstance(key, str) and isinstance(body, bytes | None) for key, body in frame.small.items()):
        raise ValueError("its small values are none")
    tasks_of(frame)
    return frame


def tasks_of(frame: Frame) -> frozenset[str]:
    """Return the ids of the tasks that come next."""
    tasks: list[Any] = frame.rest[1]
    ids = [task[0] for task in tasks]
    if not all(isinstance(task_id, str) for task_id in ids):
        raise ValueError("its tasks have no ids")
    return frozenset(ids)
