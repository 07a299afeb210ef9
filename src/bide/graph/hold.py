"""One call's hold on one thread: its lease, what writes for it, and what was read of the step under way."""

from __future__ import annotations

from collections.abc import Mapping

from bide.errors import LeaseLostError
from bide.graph.durability import Writer
from bide.store import Store
from bide.store.rows import JournalRow, Lease, RunRow, WaitRow
from bide.store.writes import lost
from bide.types import Durability, WaitStatus


class Hold:
    """One call's hold on one thread: what the thread's own graph and the graphs inside its tasks share."""

    def __init__(self, store: Store, thread_id: str, durability: Durability, lease: Lease | None = None) -> None:
        self.store = store
        self.thread_id = thread_id
        self.uid = ""
        self.lease = lease
        self.lost: LeaseLostError | None = None
        """Why nothing is written any more, once the run was not surely ours."""
        self.is_claimed = lease is not None
        """Whether a worker has claimed the run before, so that it must be accounted for, whatever happens."""
        self.writer = Writer(store, durability)
        self.parent: str | None = None
        """The thread that is told when this one ends."""
        self.owner = store.bodies.owner
        self.journal: tuple[JournalRow, ...] = ()
        """What was read of the step under way: for graphs inside its tasks, which look for their own lines in it."""
        self.waits: tuple[WaitRow, ...] = ()

    def check_read(self, run: RunRow | None) -> None:
        """Raise LeaseLostError if the run was claimed and is another's by now: what was read is its successor's work,
        and to judge it by what this call was given would blame the run for nothing."""
        lease = self.lease
        if lease is not None and (run is None or (run.run_id, run.epoch) != (lease.run_id, lease.epoch)):
            raise lost(lease)

    def note(self, answers: Mapping[str, bytes], *, forget: bool) -> None:
        """Know what taking the thread has changed of what was read."""
        if forget:
            self.journal, self.waits = (), ()
        elif answers:
            self.waits = tuple(
                row._replace(status=WaitStatus.ANSWERED, answer=answers[row.wait_id]) if row.wait_id in answers else row
                for row in self.waits
            )
