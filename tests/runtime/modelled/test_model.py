"""The real runtime refines its model: whatever is done to both, in whatever order, they look the same.

Starts of all kinds, claims, drives, deaths of workers at their writes, deliveries, answers, withdrawals, deadlines,
cancellations of runs, threads and children, retries, releases, forks, pruning; and after all of it the store is sound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from bide.store.postgres import PostgresDatabase
from tests.faults.size import TIMES
from tests.runtime.modelled.machine import Runtime
from tests.stores import SCHEMA

GENERAL = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def check_refinement(machine: Any, examples: int, steps: int) -> None:
    run_state_machine_as_test(machine, settings=settings(GENERAL, max_examples=examples, stateful_step_count=steps))


@pytest.mark.timeout(200)
def test_runtime_does_what_its_model_says():
    check_refinement(Runtime, examples=60, steps=30)


@pytest.mark.slow
@pytest.mark.timeout(600 * TIMES)
def test_runtime_does_what_its_model_says_for_long():
    check_refinement(Runtime, examples=300 * TIMES, steps=50)


@pytest.mark.slow
@pytest.mark.timeout(600 * TIMES)
def test_runtime_on_postgresql_does_what_its_model_says(shared_postgres: tuple[str, Callable[[], None]]):
    dsn, wipe = shared_postgres

    class OnPostgres(Runtime):
        """The same, with a server."""

        def open(self) -> Any:
            wipe()
            return PostgresDatabase(dsn, schema=SCHEMA)

    check_refinement(OnPostgres, examples=15 * TIMES, steps=25)
