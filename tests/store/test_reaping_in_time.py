"""Between the look at a worker and the reaping of its runs it may be heard of: then it is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Store
from tests.store.test_postgres_fences import NEW
from tests.stores import SCHEMA

LONG_AGO = 1000


@pytest.fixture(params=["file", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two workers on one database."""
    is_file = request.param == "file"
    url = f"sqlite:///{tmp_path / 'bide.db'}" if is_file else request.getfixturevalue("postgres_url")
    schema = None if is_file else SCHEMA
    with Store.open(url, schema=schema) as worker, Store.open(url, schema=schema) as reaper:
        yield worker, reaper


def let_the_lease_run_out(worker: Store) -> None:
    silent = {"worker_id": worker.keeper.worker_id, "lease_until": LONG_AGO}
    worker.database.write("test", lambda tx: tx.run("renew_lease", silent))


def test_worker_whose_lease_ran_out_is_reaped_and_laid_off(stores):
    worker, reaper = stores
    lease = worker.begin(NEW)[1]
    let_the_lease_run_out(worker)

    reaped = reaper.reap()

    assert reaped.ready == 1
    assert (lease.run_id, lease.epoch) not in worker.driven()
    assert reaper.stats().workers == 0


def test_worker_that_beats_between_the_look_and_the_reaping_keeps_its_run(stores, monkeypatch):
    worker, reaper = stores
    lease = worker.begin(NEW)[1]
    let_the_lease_run_out(worker)
    write = reaper.database.write

    def beat_first(name: str, work: Callable[[Any], Any]) -> Any:
        if name == "reap":
            fresh = {"worker_id": worker.keeper.worker_id, "lease_until": worker.clock.now() + 30_000}
            worker.database.write("beat", lambda tx: tx.run("renew_lease", fresh))
        return write(name, work)

    monkeypatch.setattr(reaper.database, "write", beat_first)

    reaped = reaper.reap()

    assert (reaped.ready, reaped.dead) == (0, 0)
    assert (lease.run_id, lease.epoch) in worker.driven()
