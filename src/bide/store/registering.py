"""Registering a wait, in the transaction that pauses its thread; what came before it is found here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bide.store.delivering import wake_of
from bide.store.ending import owned
from bide.store.facts import fact_of, read_delivery_row
from bide.store.locks import hold_keys
from bide.store.queue_rows import DeliveryRow
from bide.store.rows import Lease, WaitRow
from bide.store.settling import Held, Settling
from bide.store.writes import Writing
from bide.types import WaitStatus
from bide.waits.facts import Fact
from bide.waits.leaves import Leaf, leaves
from bide.waits.matching import match

UNLIMITED = -1
PAGE = 100

Hit = tuple[int, int, Leaf, DeliveryRow, Fact]
"""When a fact came, and which leaf it fits."""


def hold_correlations(writing: Writing, waits: Sequence[WaitRow]) -> None:
    """Hold the keys of all that these waits wait for, before anything else is locked."""
    keys = [leaf.correlation for wait in waits for leaf in _leaves(wait, writing.now) if leaf.correlation]
    if keys:
        hold_keys(writing.tx, (owned(writing.bodies.owner, key) for key in keys))


def register(writing: Writing, lease: Lease, wait: WaitRow, head: int) -> None:
    """Write a wait and its conditions down, and look back: what it needs may be here already."""
    writing.open_wait(lease, wait)
    found = _leaves(wait, writing.now)
    for leaf in found:
        writing.tx.send(
            "insert_condition",
            {
                "wait_id": wait.wait_id,
                "number": leaf.number,
                "kind": leaf.kind,
                "correlation": owned(writing.bodies.owner, leaf.correlation) if leaf.correlation else "",
                "due_at": leaf.due_at,
                "is_open": 1,
                "exclusive": int(leaf.exclusive),
                "now": writing.now,
                "delivery_id": None,
                "wake": None,
            },
        )
    looking = [leaf for leaf in found if leaf.correlation and leaf.lookback]
    if looking:
        _LookBack(writing, lease, wait, head).through(looking)


def _leaves(wait: WaitRow, now: int) -> Sequence[Leaf]:
    return () if wait.needs is None or wait.needs.condition is None else leaves(wait.needs.condition, now)


class _LookBack:
    """Looks through what was delivered before a wait was there."""

    def __init__(self, writing: Writing, lease: Lease, wait: WaitRow, head: int) -> None:
        assert wait.needs is not None
        self.writing = writing
        self.wait = wait
        self.settling = Settling(writing)
        self.thread_id = lease.thread_id
        self.held = Held(
            wait.wait_id,
            lease.thread_id,
            lease.run_id,
            WaitStatus.OPEN,
            False,
            wait.kind,
            wait.needs,
            {},
            frozenset(leaf.number for leaf in _leaves(wait, writing.now)),
            None,
            None,
            writing.now,
            head,
        )

    def through(self, looking: Sequence[Leaf]) -> None:
        """Let what came first count first, whichever leaf it is for, until the wait is settled or nothing is left."""
        while self.held.is_open:
            needed = [leaf for leaf in looking if leaf.number in self.held.open]
            found = [hit for leaf in needed for hit in self._first(leaf)]
            if not found:
                return
            # The others are looked for again: a fact that has counted for one leaf does not count for another.
            self._take(*min(found, key=lambda hit: hit[:2])[2:])

    def _first(self, leaf: Leaf) -> Iterator[Hit]:
        """Find the oldest fact that fits a leaf."""
        now, bodies = self.writing.now, self.writing.bodies
        since = 0 if leaf.lookback == UNLIMITED else now - leaf.lookback
        place = (-1, "")
        while True:
            rows = self.writing.tx.all(
                "look_back",
                {
                    "correlation": owned(bodies.owner, leaf.correlation),
                    "since": since,
                    "after_time": place[0],
                    "after": place[1],
                    "thread_id": self.thread_id,
                    "task_id": self.wait.task_id,
                    "most": PAGE,
                },
            )
            for row in map(read_delivery_row, rows):
                fact = fact_of(bodies, self.writing.tx, row)
                place = (row.received_at, row.delivery_id)
                if self._can_have(leaf, row) and match(leaf.plain, fact).fits:
                    yield row.received_at, leaf.number, leaf, row, fact
                    return
            if len(rows) < PAGE:
                return

    def _can_have(self, leaf: Leaf, row: DeliveryRow) -> bool:
        return not leaf.exclusive or row.taken_by in (None, self.wait.wait_id)

    def _take(self, leaf: Leaf, row: DeliveryRow, fact: Fact) -> None:
        tx = self.writing.tx
        if leaf.exclusive:
            tx.send("take_delivery", {"delivery_id": row.delivery_id, "wait_id": self.wait.wait_id})
        tx.send("count_wake", {"delivery_id": row.delivery_id})
        self.held = self.settling.satisfy(self.held, leaf.number, wake_of(row, fact))
