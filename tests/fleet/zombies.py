"""Workers that are stopped in the middle of their work, past their lease, and go on as if nothing had been."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from bide import Bide
from tests.fleet.machines import Fleet
from tests.fleet.parcel import ONCE
from tests.fleet.place import Place, Query
from tests.fleet.storm import WORKERS
from tests.store.waiting import holds_at_last

AT_A_TIME = 3
"""So many of them are stopped for the same time; the others have to be enough."""

HELD = """
SELECT r.thread_id, r.run_id, r.epoch, r.worker_id
FROM runs r
JOIN workers w ON w.worker_id = r.worker_id
WHERE r.status = 'running'
AND w.pid = ?
"""
BEGUN = "SELECT thread_id, key FROM journal WHERE phase = 'intent'"
RUN = "SELECT status, epoch FROM runs WHERE run_id = ?"
WRITTEN = """
SELECT 'checkpoint', CAST(seq AS TEXT) FROM checkpoints WHERE run_id = ? AND epoch = ?
UNION ALL
SELECT phase, key FROM journal WHERE run_id = ? AND epoch = ?
"""


class Held(NamedTuple):
    """A run in the hands of a worker."""

    thread_id: str
    run_id: str
    epoch: int
    worker_id: str

    def is_done(self, query: Query) -> bool:
        ((status, _),) = query(RUN, self.run_id)
        return bool(status == "done")

    def is_elsewhere(self, query: Query) -> bool:
        """Say whether another worker has it by now: it was made ready, which is one epoch, and claimed: another."""
        ((_, epoch),) = query(RUN, self.run_id)
        return bool(epoch > self.epoch + 1) or self.is_done(query)

    def written(self, query: Query) -> set[Any]:
        """Return what is there in the name of this hold."""
        return set(query(WRITTEN, self.run_id, self.epoch, self.run_id, self.epoch))


class Stop:
    """A worker that is stopped, and what it had in its hands."""

    def __init__(self, number: int, held: list[Held], said: int, may_go_on: Callable[[Held, Query], bool]) -> None:
        self.number = number
        self.held = held
        self.said = said
        """How many characters it had said by then."""
        self.may_go_on = may_go_on
        """What must have become of each of them before it goes on."""
        self.written: dict[Held, set[Any]] = {}


class Zombies:
    """Makes zombies, some at a time, and looks what becomes of them."""

    def __init__(self, app: Bide, place: Place, fleet: Fleet) -> None:
        self.app = app
        self.place = place
        self.fleet = fleet
        self.stops = 0
        """How many workers were stopped that had something taken from them."""
        self.taken_over = 0
        """How many runs were taken from them."""
        self.refused = 0
        """How many of these they went on with, and were told that they are another's."""

    def make_some(self, dice: Random) -> int:
        """Stop some workers until others have their work, and let them go on; return how many had lost something."""
        with self.place.looking() as query:
            # Some go on when their work is finished, and some in the midst of it, when only the epoch tells who is who.
            stopped = [
                self._stop(number, query, dice.choice((Held.is_done, Held.is_elsewhere)))
                for number in dice.sample(range(WORKERS), AT_A_TIME)
            ]
            # As a list: none of them has to wait for one before it.
            are_back = holds_at_last(lambda: all([self._goes_on(stop, query) for stop in stopped]))
            assert are_back, [self.app.get(run.thread_id) for stop in stopped for run in stop.held]
            return sum(self._has_understood(stop, query) for stop in stopped)

    # ── Stopping ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop(self, number: int, query: Query, may_go_on: Callable[[Held, Query], bool]) -> Stop:
        held: list[Held] = []

        def is_stopped_in_the_middle() -> bool:
            self.fleet.freeze(number)
            held[:] = [Held(*row) for row in query(HELD, self.fleet.pids[number])]
            if not held or not self.place.is_free() or self._is_at_the_brink(query, held):
                self.fleet.thaw(number)
                return False
            return True

        assert holds_at_last(is_stopped_in_the_middle), self.fleet.said(number)
        return Stop(number, held, len(self.fleet.said(number)), may_go_on)

    def _is_at_the_brink(self, query: Query, held: list[Held]) -> bool:
        """Say whether it may have looked for the last time whether something is its own to do, and has not done it yet.

        When it goes on it does so, and no fence of ours can hinder it: only those who are asked can, by the key that
        they are given.
        """
        threads = {run.thread_id for run in held}
        begun = {(thread_id, key) for thread_id, key in query(BEGUN) if thread_id in threads and key in ONCE}
        return bool(begun - {(effect.order, effect.what) for effect in self.place.ledger.effects})

    # ── Coming back ────────────────────────────────────────────────────────────────────────────────────────────────

    def _goes_on(self, stop: Stop, query: Query) -> bool:
        """Let it go on, if it may; say whether it does."""
        if not stop.written and all(stop.may_go_on(run, query) for run in stop.held):
            stop.written = {run: run.written(query) for run in stop.held}
            self.fleet.thaw(stop.number)
        return bool(stop.written)

    def _has_understood(self, stop: Stop, query: Query) -> bool:
        """Wait until it has let go of what it lost, and is a worker again; say whether it had lost anything."""
        taken = {run.thread_id: run for run in stop.held if self._was_reaped(run)}

        def is_told() -> bool:
            outcomes = outcomes_in(self._said_since(stop))
            return set(taken) <= outcomes["lost"] | outcomes["drained"] and bool(outcomes["well"])

        assert holds_at_last(is_told), (taken, self._said_since(stop))
        late = {run: wrote for run in taken.values() if (wrote := run.written(query) - stop.written[run])}
        assert not late, f"written by a worker whose run was another's by then: {late}"
        self.stops += bool(taken)
        self.taken_over += len(taken)
        self.refused += len(outcomes_in(self._said_since(stop))["lost"] & set(taken))
        return bool(taken)

    def _said_since(self, stop: Stop) -> str:
        return self.fleet.said(stop.number)[stop.said :]

    def _was_reaped(self, run: Held) -> bool:
        """Say whether it was taken from this very worker; of some, the end was on its way when it was stopped."""
        told = [event.body for event in self.app.store.events(run.thread_id) if event.kind == "run.reaped"]
        return any(run.worker_id.encode() in body for body in told)


def outcomes_in(said: str) -> dict[str, set[str]]:
    """Return the threads that a worker let go of as `lost`, as `drained`, and those that it began and drove `well`."""
    outcomes: dict[str, set[str]] = {"driven": set(), "lost": set(), "drained": set(), "well": set()}
    for thread_id, how in re.findall(r"Thread (\S+) \(parcel\)(?: is|:) (driven|lost|drained|waiting|done)\.", said):
        if how in outcomes:
            outcomes[how].add(thread_id)
        elif thread_id in outcomes["driven"]:
            outcomes["well"].add(thread_id)
    return outcomes
