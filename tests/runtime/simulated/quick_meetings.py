"""The same meetings of facts and waits, transaction by transaction on one store, without graphs or drivers: SQLite lets
one transaction write at a time, so an order of transactions is all that a race can be there."""

from __future__ import annotations

from typing import Any

from bide import Store
from bide.store.database import Database
from bide.store.lanes import lane_of
from bide.store.queue_rows import Claim, Start
from bide.store.rows import Transition, WaitRow
from bide.testing import FakeClock
from bide.types import RunStatus, WaitStatus
from bide.waits import to_plain
from bide.waits.facts import Fact
from bide.waits.needs import Needs
from tests.runtime.simulated.meetings import Choose, Trial, check_meeting, condition


class Table:
    """A store at which one trial after the other is made."""

    def __init__(self, database: Database) -> None:
        self.store = HalfStore(database, FakeClock())
        self.trials = 0

    def meet(self, trial: Trial, choose: Choose) -> None:
        """Let all of it happen, in some order, and check that nothing was lost and nothing came twice."""
        self.trials += 1
        prefix = f"{self.trials}."
        claims = [self._claim(f"{prefix}t{number}") for number in range(len(trial.trees))]
        stories: list[list[Any]] = [
            [lambda claim=claim, tree=tree: self._pause(claim, named(tree, prefix))]
            for claim, tree in zip(claims, trial.trees, strict=True)
        ]
        stories += [self._delivery(prefix + name, f"{prefix}{id_}") for name, id_ in trial.facts]
        while stories:
            story = stories[choose(len(stories))]
            story.pop(0)()
            stories = [story for story in stories if story]
        check_meeting(self.store, trial, prefix)

    def _claim(self, thread_id: str) -> Claim:
        # In a lane of its own: runs of earlier trials that were woken are ready, too.
        self.store.start(Start(thread_id, b"input", thread_id))
        (claim,) = self.store.claim([lane_of(thread_id)], 1)
        return claim

    def _pause(self, claim: Claim, tree: Any) -> None:
        """Register a wait in the commit that pauses its run."""
        plain = to_plain(condition(tree))
        thread_id = claim.lease.thread_id
        wait = WaitRow(f"wait {thread_id}", "1.hear", "hear", "#0", "call", WaitStatus.OPEN, "", b"?")
        waits = (wait._replace(needs=Needs(condition=plain)),)
        self.store.commit(claim.lease, Transition(0, waits=waits, status=RunStatus.WAITING))
        self.store.let_go(claim.lease)

    def _delivery(self, name: str, id_: str) -> list[Any]:
        """The two transactions of a delivery; the second is none when the fact was there before."""
        made: list[str] = []
        fact = Fact("event", name, id_, "world", id_, self.store.clock.now())

        def take() -> None:
            self.store.later = made
            self.store.deliver(fact)

        return [take, lambda: [Store.match_delivery(self.store, delivery_id) for delivery_id in made]]


class HalfStore(Store):
    """A store that takes facts in, and is in no hurry to match them."""

    later: list[str]

    def match_delivery(self, delivery_id: str) -> tuple[str, ...]:
        self.later.append(delivery_id)
        return ()


def named(tree: Any, prefix: str) -> Any:
    """The same tree about facts of this trial alone."""
    if tree[0] == "event":
        return ["event", prefix + tree[1], tree[2]]
    return [*tree[:-1], [named(part, prefix) for part in tree[-1]]]
