"""Registering a wait, in the transaction that pauses its thread; what came before it is found here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bide.store.correlating import known_keys, owned, written_key
from bide.store.delivering import wake_of
from bide.store.ending import ENDED, result_of
from bide.store.facts import fact_of, read_delivery_row
from bide.store.locks import hold_keys
from bide.store.queue_rows import DeliveryRow
from bide.store.rows import Lease, Report, WaitRow, checkpoint_id
from bide.store.settling import Held, Settling
from bide.store.writes import Writing
from bide.types import RunStatus, WaitStatus
from bide.waits.facts import Fact
from bide.waits.leaves import NO_LIMIT, Leaf, leaves
from bide.waits.matching import match
from bide.waits.wake import Wake

_ENDED = tuple(status.value for status in ENDED)

PAGE = 100

Hit = tuple[int, int, Leaf, DeliveryRow, Fact]
"""When a fact came, and which leaf it fits."""


def hold_correlations(writing: Writing, waits: Sequence[WaitRow], owner: str) -> None:
    """Hold the keys of all that these waits wait for, before anything else is locked."""
    keys = [leaf.correlation for wait in waits for leaf in _leaves(wait, writing.now) if leaf.correlation]
    if keys:
        hold_keys(writing.tx, (owned(owner, key) for key in keys))


def register(writing: Writing, lease: Lease, wait: WaitRow, head: int, owner: str) -> None:
    """Write a wait and its conditions down, and look back: what it needs may be here already."""
    writing.open_wait(lease, wait)
    found = _leaves(wait, writing.now)
    if found:
        writing.tx.send("drop_conditions", {"wait_id": wait.wait_id})
    for leaf in found:
        writing.tx.send(
            "insert_condition",
            {
                "wait_id": wait.wait_id,
                "number": leaf.number,
                "kind": leaf.kind,
                "correlation": written_key(writing.bodies, owner, leaf.correlation),
                "due_at": leaf.due_at,
                "exclusive": int(leaf.exclusive),
                "now": writing.now,
            },
        )
    looking = [leaf for leaf in found if leaf.correlation and leaf.lookback]
    if looking:
        back = _LookBack(writing, lease, wait, (head, owner))
        back.through(looking)
        back.at_threads([leaf for leaf in looking if leaf.kind == "child"])


def _leaves(wait: WaitRow, now: int) -> Sequence[Leaf]:
    return () if wait.needs is None or wait.needs.condition is None else leaves(wait.needs.condition, now)


def _came(hit: Hit) -> tuple[int, str]:
    return hit[0], hit[3].delivery_id


class _LookBack:
    """Looks through what was delivered before a wait was there."""

    def __init__(self, writing: Writing, lease: Lease, wait: WaitRow, thread: tuple[int, str]) -> None:
        assert wait.needs is not None
        self.writing = writing
        self.wait = wait
        self.settling = Settling(writing)
        self.missed: set[str] = set()
        """Facts that others have taken since they were read."""
        self.thread_id = lease.thread_id
        head, self.owner = thread
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
            None if wait.needs.timeout is None else writing.now + wait.needs.timeout,
            None,
            writing.now,
            head,
        )

    def through(self, looking: Sequence[Leaf]) -> None:
        """Let what came first count first, whichever leaf it is for, until the wait is settled or nothing is left."""
        while self.held.is_open:
            needed = [leaf for leaf in looking if leaf.number in self.held.open]
            # Of a child counts how it ended last.
            hits = [self._first(leaf) for leaf in needed]
            found = [each[-1] for each in hits if each]
            if not found:
                return
            # The others are looked for again: a fact that has counted for one leaf does not count for another.
            self._take(*min(found, key=lambda hit: hit[:2])[2:])

    def _first(self, leaf: Leaf) -> list[Hit]:
        """Find the oldest fact that fits a leaf; of a child, which may have been retried, all that was told of it."""
        keys = known_keys(self.writing.bodies, self.owner, leaf.correlation)
        hits = sorted((hit for key in keys for hit in self._under(key, leaf)), key=_came)
        return hits if leaf.kind == "child" else hits[:1]

    def _under(self, key: str, leaf: Leaf) -> Iterator[Hit]:
        now, bodies = self.writing.now, self.writing.bodies
        since = 0 if leaf.lookback == NO_LIMIT else now - leaf.lookback
        place = (-1, "")
        while True:
            rows = self.writing.tx.all(
                "look_back",
                {
                    "correlation": key,
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
                    if leaf.kind != "child":
                        return
            if len(rows) < PAGE:
                return

    def at_threads(self, children: Sequence[Leaf]) -> None:
        """Look at threads of which nothing was told: they may have ended, or not be there; else their end is told."""
        for leaf in children:
            thread_id = leaf.plain["thread_id"]
            self.writing.tx.send("expect_end", {"thread_id": thread_id})
            row = self.writing.tx.one("how_it_ended", {"thread_id": thread_id})
            if not self.held.is_open or leaf.number not in self.held.open:
                continue
            if row is None:
                self._end(leaf, "", Report(RunStatus.CANCELLED, error="there is no such thread"))
            elif row[1] in _ENDED:
                # It may have ended since we looked back; then it has told more of its end than is known here.
                self.through([leaf])
                if self.held.is_open and leaf.number in self.held.open:
                    run_id, status, error, uid, seq = row
                    self._end(leaf, run_id, Report(RunStatus(status), "", checkpoint_id(uid, seq or 0), error))

    def _end(self, leaf: Leaf, run_id: str, report: Report) -> None:
        result = result_of(leaf.plain["thread_id"], run_id, report)
        wake = Wake(result, kind="child", at=self.writing.now, via="bide")
        self.held = self.settling.satisfy(self.held, leaf.number, wake)

    def _can_have(self, leaf: Leaf, row: DeliveryRow) -> bool:
        is_free = row.taken_by in (None, self.wait.wait_id) and row.delivery_id not in self.missed
        return not leaf.exclusive or is_free

    def _take(self, leaf: Leaf, row: DeliveryRow, fact: Fact) -> None:
        tx = self.writing.tx
        if leaf.exclusive and not tx.run(
            "take_delivery", {"delivery_id": row.delivery_id, "wait_id": self.wait.wait_id}
        ):
            # Somebody who looked back under another key of the same fact was faster.
            self.missed.add(row.delivery_id)
            return
        tx.send("count_wake", {"delivery_id": row.delivery_id})
        self.held = self.settling.satisfy(self.held, leaf.number, wake_of(row, fact))
