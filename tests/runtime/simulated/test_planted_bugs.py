"""A proof that cannot fail proves nothing: each of these bugs is planted, and the simulation must find it soon."""

from __future__ import annotations

import logging

import pytest

from bide.store.database import queries
from bide.store.lease import LeaseKeeper
from tests.runtime.simulated.audit import Broken
from tests.runtime.simulated.lives import live

SOON = 400
"""Seeds within which a bug must show."""
RARE = {"lets a zombie write checkpoints": 2_500}
"""Those that need more. A zombie that reads its thread late sees there that it has lost it: the epoch alone stops only
one that stood still between reading and writing, and goes on before its successor has written."""

IN_SQL = {
    "lets a zombie write": ("hold_lease write_checkpoint end_run", "AND epoch = :epoch", "AND :epoch = :epoch"),
    "lets a zombie write checkpoints": ("write_checkpoint", "AND epoch = :epoch", "AND :epoch = :epoch"),
    "forgets what came before": ("look_back", "WHERE k.correlation", "WHERE 1 = 0 AND k.correlation"),
    "forgets facts whose bringer died": ("list_pending_deliveries", "WHERE is_pending = 1", "WHERE is_pending = 2"),
    "gives a fact for one alone to two": ("take_delivery", "SET taken_by = :wait_id", "SET taken_by = NULL"),
    "applies an input twice": ("consume_input", "SET input = NULL", "SET input = input"),
    "never reaps": ("reap_run", "AND status = 'running'", "AND status = 'nobody'"),
    "forgets deadlines": ("list_due_waits", "AND deadline <= :now", "AND deadline < 0"),
    "forgets the time": ("list_due_conditions", "AND c.due_at <= :now", "AND c.due_at < 0"),
    "forgets starts": ("read_request", "WHERE owner = :owner", "WHERE 1 = 0 AND owner = :owner"),
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "bide")


def first_to_find(seeds: range) -> int | None:
    for seed in seeds:
        try:
            live(seed)
        except Broken:
            return seed
    return None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", IN_SQL)
def test_simulation_finds_a_runtime_that(bug: str, monkeypatch: pytest.MonkeyPatch):
    names, old, new = IN_SQL[bug]
    for query in names.split():
        assert old in queries()[query], f"say anew how to plant it: {query} has changed"
        monkeypatch.setitem(queries(), query, queries()[query].replace(old, new))  # type: ignore[arg-type]
    monkeypatch.setattr("tests.runtime.simulated.simulation.MOST_MOVES", 8_000)

    assert first_to_find(range(RARE.get(bug, SOON))) is not None


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_simulation_finds_workers_that_believe_in_their_lease_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LeaseKeeper, "check", lambda self, lease: None)

    assert first_to_find(range(2 * SOON)) is not None
