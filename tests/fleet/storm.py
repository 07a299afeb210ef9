"""Bad weather over a fleet: something is done to its workers at random, again and again, while parcels go through."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from threading import Event, Thread
from typing import Self

from tests.fleet.customers import Customers
from tests.fleet.machines import Lot
from tests.store.waiting import holds_at_last

WORKERS = 6
SECONDS = 120
SEED = int(os.environ.get("BIDE_FLEET_SEED", "0")) or Random().randrange(1, 10**6)
WORKS = {"concurrency": 4, "poll": 0.2}

Strike = Callable[[Random], int]
"""Does to the fleet what the dice say, and returns how many workers it has hit."""


class Storm:
    """Strikes in a thread of its own, until it has hit often enough."""

    def __init__(self, strike: Strike, hits: int) -> None:
        self.hits = 0
        self._problem: BaseException | None = None
        self._strike = strike
        self._enough = hits
        self._dice = Random(SEED)
        self._is_over = Event()
        self._stop = Event()
        self._thread = Thread(target=self._rage, name="storm")

    def __enter__(self) -> Self:
        print(f"BIDE_FLEET_SEED={SEED}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(SECONDS)

    def _rage(self) -> None:
        try:
            while self.hits < self._enough and not self._stop.wait(self._dice.uniform(0.1, 0.5)):
                self.hits += self._strike(self._dice)
        except BaseException as problem:  # noqa: BLE001 — whoever waits for the end is told
            self._problem = problem
        finally:
            self._is_over.set()

    def let_parcels_go_through(self, customers: Customers) -> None:
        """Send parcels for as long as it rages, and wait until the last has arrived."""
        while not self._is_over.wait(0.05):
            customers.go_round()
        if self._problem is not None:
            raise self._problem
        is_over = holds_at_last(lambda: customers.go_round(is_enough=True) or not customers.under_way, SECONDS)
        assert is_over, {parcel: customers.why(parcel) for parcel in customers.under_way}


def lot_of(number: int) -> Lot:
    """Say where a worker lives: of the odd ones nobody can see whether they live, but by their lease."""
    return {"machine": f"machine-{number}"} if number % 2 else {}
