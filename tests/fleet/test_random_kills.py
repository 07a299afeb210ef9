"""Workers are killed at random, again and again, while parcels go through them: nothing lost, nothing twice.

One command shows it again, and larger, with the seed that it printed:

    BIDE_FLEET_SEED=7 BIDE_FAULTS=20 python -m pytest tests/fleet/test_random_kills.py -m slow -s
"""

from __future__ import annotations

import os
from random import Random
from threading import Event, Thread
from typing import Self

import pytest

from bide import Bide
from tests.faults.size import TIMES
from tests.fleet.audit import check_nothing_lost_or_doubled, digest
from tests.fleet.customers import Customers
from tests.fleet.machines import Fleet, Lot
from tests.fleet.parcel import build
from tests.store.waiting import holds_at_last

KILLS = 250 * TIMES
"""On each of two databases."""
WORKERS = 6
AT_ONCE = 24
SECONDS = 120
SEED = int(os.environ.get("BIDE_FLEET_SEED", "0")) or Random().randrange(1, 10**6)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 * TIMES)]


class Killer:
    """Kills one worker after the other, and starts it again, until it has killed enough."""

    def __init__(self, fleet: Fleet, seed: int, kills: int) -> None:
        self.fleet = fleet
        self.dice = Random(seed)
        self.kills = kills
        self.is_over = Event()
        self.problem: BaseException | None = None
        self._stop = Event()
        self._thread = Thread(target=self._rage, name="killer")

    def __enter__(self) -> Self:
        for number in range(WORKERS):
            self.start(number)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(SECONDS)

    def start(self, number: int) -> None:
        # Of the odd ones nobody can see whether they live: they are missed when their lease has run out.
        lot: Lot = {"machine": f"machine-{number}"} if number % 2 else {}
        self.fleet.start(number, options={"concurrency": 4, "poll": 0.2}, **lot)

    def _rage(self) -> None:
        try:
            while self.fleet.kills < self.kills and not self._stop.wait(self.dice.uniform(0.1, 0.5)):
                number = self.dice.randrange(WORKERS)
                self.fleet.kill(number)
                self.start(number)
        except BaseException as problem:
            self.problem = problem
            raise
        finally:
            self.is_over.set()


def test_workers_that_are_killed_at_random_lose_nothing_and_do_nothing_twice(make_place):
    place = make_place(lease=1.5)
    with Bide(place.open(), build(place)) as app, app.store, Fleet(place) as fleet:
        customers = Customers(app, SEED, AT_ONCE)
        print(f"BIDE_FLEET_SEED={SEED}")
        with Killer(fleet, SEED, KILLS) as killer:
            while not killer.is_over.wait(0.05):
                customers.go_round()
            kills = fleet.kills
            is_over = holds_at_last(lambda: customers.go_round(is_enough=True) or not customers.under_way, SECONDS)

        assert is_over, {parcel: customers.why(parcel) for parcel in customers.under_way}
        check_nothing_lost_or_doubled(app, place, customers.sent)
        with place.looking() as query:
            ((reaped,),) = query("SELECT count(*) FROM events WHERE kind = 'run.reaped'")
        print(
            f"{kills} kills took {reaped} runs out of the middle of their work; {customers.arrived} parcels arrived, "
            f"nothing lost, nothing twice; {len(customers.released)} released; ledger {digest(place)}"
        )
        said = fleet.said_by_all()
    assert killer.problem is None
    assert kills == KILLS
    assert reaped > KILLS // 10
    assert "Traceback" not in said, said
