"""What the store takes and gives: rows of bytes. What the bytes mean is not its business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bide.store.frames import Frame
from bide.store.lists import Logged, LogRow
from bide.types import RunStatus, WaitStatus
from bide.waits.needs import Needs


def checkpoint_id(uid: str, seq: int) -> str:
    """Write the id of a checkpoint: it sorts by time within its thread, and names the thread's life."""
    return f"{uid}-{seq:08d}"


class Lease(NamedTuple):
    """The right to write to a thread: a run, in one epoch."""

    thread_id: str
    run_id: str
    epoch: int


class CheckpointRow(NamedTuple):
    """A checkpoint, and the rows of the channel log that it wrote."""

    seq: int
    parent: int | None
    step: int
    source: str
    body: bytes
    channels: tuple[LogRow, ...] = ()
    run_id: str = ""
    created_at: int = 0
    ns: str = ""
    """The graph that it belongs to: "" for the thread's own, else the place of a graph inside it."""


class Found(NamedTuple):
    """A checkpoint as it was read, with all that its state is made of."""

    row: CheckpointRow
    frame: Frame
    small: Mapping[str, bytes]
    """All its small values, those of its base included."""
    large: Mapping[str, bytes | Logged]
    """Its large values: bytes of the codec, or a list of such."""


class JournalRow(NamedTuple):
    """One line of a task's journal."""

    task_id: str
    key: str
    kind: str
    phase: str
    name: str
    digest: str
    body: bytes


class WaitRow(NamedTuple):
    """A wait, open or answered."""

    wait_id: str
    task_id: str
    node: str
    key: str
    kind: str
    status: WaitStatus
    digest: str
    question: bytes
    answer: bytes | None = None
    answered_at: int | None = None
    needs: Needs | None = None
    """What it is about, when it is registered; it is not read again with its thread."""


class EventRow(NamedTuple):
    """One line of a thread's log."""

    kind: str
    body: bytes
    number: int = 0
    seq: int = 0
    run_id: str | None = None
    at: int = 0


class RunRow(NamedTuple):
    """The live run of a thread."""

    run_id: str
    status: RunStatus
    epoch: int
    is_orphan: bool
    worker_id: str | None = None
    has_input: bool = False
    """Whether it was accepted and has not begun."""


class OpenWaitRow(NamedTuple):
    """A line of the inbox."""

    wait_id: str
    thread_id: str
    run_id: str
    task_id: str
    node: str
    key: str
    kind: str
    question: bytes
    created_at: int
    deadline: int | None


class ThreadRow(NamedTuple):
    """A thread, and its latest run."""

    thread_id: str
    graph: str
    created_at: int
    status: str | None
    updated_at: int | None


class Stored(NamedTuple):
    """A thread as it was read at one checkpoint, from one snapshot."""

    uid: str
    head: int
    run: RunRow | None
    checkpoint: Found | None
    journal: tuple[JournalRow, ...]
    waits: tuple[WaitRow, ...]
    parent: str | None = None
    """The thread that has spawned it."""
    owner: str = ""


class Taking(NamedTuple):
    """How a thread is taken: see `Store.begin`."""

    thread_id: str
    graph: str
    uid: str | None
    """The life of the thread that was read, or None when there was none."""
    head: int
    claim: RunRow | None
    supersede: RunRow | None
    answers: tuple[tuple[str, bytes], ...]
    forget: bool
    checkpoint: CheckpointRow | None
    events: tuple[EventRow, ...]
    answered: tuple[tuple[WaitRow, bytes], ...] = ()
    """Questions that are asked and answered at once: those of a fork."""
    inner: tuple[CheckpointRow, ...] = ()
    """Checkpoints of graphs inside the tasks of a fork."""
    seen: tuple[JournalRow, ...] | None = None
    """The journal as it was read, when a run is taken that only seems to be left: nobody may have written since."""
    prefix: str = ""
    """Whose step is forgotten: that of all tasks whose id begins so."""
    lease: Lease | None = None
    """The run that was claimed before; None when it is to be claimed now."""
    asked: tuple[str, ...] = ()
    """The waits that were open when the thread was read: one that was settled since is news to the run."""


class Report(NamedTuple):
    """How a run ended, as its parent is told: in short, and where all of it is."""

    status: RunStatus
    summary: str = ""
    checkpoint_id: str | None = None
    error: str | None = None
    is_awaited: bool = True
    """Whether the thread was spawned, or somebody waits for it, as far as is known."""


class Transition(NamedTuple):
    """One transition of a leased run: see `Store.commit`."""

    head: int
    """The head that it was computed from."""
    checkpoint: CheckpointRow | None = None
    journal: tuple[JournalRow, ...] = ()
    waits: tuple[WaitRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    status: RunStatus = RunStatus.RUNNING
    error: str | None = None
    over: tuple[str, ...] = ()
    """Whose step is over, so that its journal and its waits are done with: all tasks whose id begins so."""
    carried: tuple[CheckpointRow, ...] = ()
    """Checkpoints of graphs inside this one, written in the same transaction."""
    report: Report | None = None
    """What the thread's parent is told of its end, if it has one."""
    owner: str = ""
    """Whose thread it is: only facts of the same owner wake it."""

    @property
    def is_plain(self) -> bool:
        """Whether the checkpoint's row is all there is to write."""
        has_large = self.checkpoint is not None and self.checkpoint.channels
        return not (
            has_large
            or self.carried
            or self.over
            or self.journal
            or self.waits
            or self.events
            or self.status is not RunStatus.RUNNING
        )
