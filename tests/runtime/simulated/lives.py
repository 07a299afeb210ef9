"""How a seed is lived through: everything that a machine would decide is taken from it, ids and clocks included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace

import bide.clock
import bide.store.lease
from tests.runtime.simulated.simulation import Simulation


def live(seed: int) -> Simulation:
    """Live through a seed, and return what is left of it; `.digest` tells one story from another."""
    life = Simulation(seed)
    with _decided_by(life):
        life.digest = life.run()
    return life


@contextmanager
def _decided_by(life: Simulation) -> Iterator[None]:
    """Ids come from the seed, too, since some things are done in their order; and leases are kept on the fake clock."""
    clock, lease = bide.clock, bide.store.lease
    before = clock.os, clock._last, lease.elapsed
    clock.os = SimpleNamespace(urandom=Random(life.seed).randbytes)  # type: ignore[assignment]
    clock._last = (0, 0)
    lease.elapsed = lambda: life.clock.now() / 1000
    try:
        yield
    finally:
        clock.os, clock._last, lease.elapsed = before  # type: ignore[assignment]
