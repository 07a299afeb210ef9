"""A process of the simulated fleet: its own store object and application over the database that all share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

from bide import Bide, CompiledGraph, Store
from bide.clock import Clock
from bide.store.database import Database, Transaction
from bide.store.lease import LeaseKeeper
from bide.testing.crashing import Crashed, MortalDatabase
from tests.runtime.simulated.stage import breathe

T = TypeVar("T")

LEASE_SECONDS = 30.0


class SharedDatabase(MortalDatabase):
    """The shared database as one process sees it: before and after each transaction, others may go on."""

    def __init__(self, inner: Database, dice: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self._dies_at = dice

    @property
    def blocking(self) -> bool:
        """As one that is shared by several machines: those who use it have leases, and must renew them."""
        return True

    def write(self, name: str, work: Callable[[Transaction], T]) -> T:
        breathe()
        self._perhaps_die(f"{name}:begun")
        value = self.inner.write(name, self._fragile(name, work))
        breathe()
        self._perhaps_die(f"{name}:committed")
        return value

    def write_alone(self, name: str, work: Callable[[Transaction], T]) -> T:
        return self.write(name, work)

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        return self.write(name, lambda tx: tx.run(query, params))

    def read(self, work: Callable[[Transaction], T]) -> T:
        breathe()
        self.check_alive()
        return self.inner.read(work)

    def _fragile(self, name: str, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        def fragile(tx: Transaction) -> T:
            value = work(tx)
            self._perhaps_die(f"{name}:written")
            return value

        return fragile

    def _perhaps_die(self, point: str) -> None:
        self.check_alive()
        if self._dies_at(point):
            self.die()
            raise Crashed(point)


class PlainKeeper(LeaseKeeper):
    """A keeper of leases without a thread: the director lets its heart beat."""

    def _stay_alive(self) -> None:
        """Start nothing."""

    def beat(self) -> None:
        """Beat once, unless nobody knows this worker yet."""
        with self._beating:
            self._beat()

    @property
    def drives_something(self) -> bool:
        """Whether a run is driven here right now."""
        return bool(self._driven)

    def die(self) -> None:
        """Beat no more."""
        if self._lifeline is not None:
            self._lifeline.close()


class Process:
    """One process: it may die, and then nothing that is left of it reaches the database."""

    def __init__(
        self,
        name: str,
        inner: Database,
        clock: Clock,
        graphs: list[CompiledGraph],
        dice: Callable[[str], bool],
        seen: Counter[str],
    ) -> None:
        self.name = name
        self.seen = seen
        self.database = SharedDatabase(inner, dice)
        self.store = Store(inner, clock, lease=LEASE_SECONDS)
        # The heart beats on a way of its own, as in a real process: no other write is in its way.
        self.store.keeper = self.keeper = PlainKeeper(_Beating(inner), clock, LEASE_SECONDS)
        self.store.database = self.database
        self.app = Bide(self.store, [_bound(graph, self.store) for graph in graphs])
        self.stalled_until = 0
        """Until which move it stands still."""

    @property
    def is_dead(self) -> bool:
        """Whether it has died."""
        return self.database.is_dead

    def check_alive(self) -> None:
        """Raise in whatever is left of a process that has died."""
        self.database.check_alive()

    # ── Its threads ────────────────────────────────────────────────────────────────────────────────────────────────

    def keep_driving(self) -> None:
        """Claim and drive, one run after the other."""
        while True:
            driven = self.app.run_ready(most=1)
            self.seen.update(f"left {one.outcome}" for one in driven)
            breathe(is_idle=not driven)

    def keep_tending(self) -> None:
        """Look at the clock and after others."""
        while True:
            tended = self.app.tend()
            breathe(is_idle=not tended.is_something)


class _Beating(MortalDatabase):
    """The database as the heart of a process sees it."""

    @property
    def blocking(self) -> bool:
        return True


def _bound(graph: CompiledGraph, store: Store) -> CompiledGraph:
    bound = copy(graph)
    bound.checkpointer = store
    return bound
