"""Connections break around hundreds of commits, and nobody can tell at first whether these were made."""

from __future__ import annotations

import pytest

from bide import Store
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.proxy import CUTS, ChaosProxy, Fault, by_dice
from tests.faults.shop import Shop, drive_many, prepare
from tests.faults.size import TIMEOUT, TIMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

ORDERS = 90
THREADS = 6


@pytest.mark.parametrize("seed", range(1, 2 * TIMES + 1))
def test_hundreds_of_commits_with_an_unknown_outcome_lose_and_double_nothing(seed, postgres_database, schema, ledger):
    with Store.open(postgres_database, schema=schema) as store:
        prepare(store, schema)
    orders = [f"order-{number}" for number in range(ORDERS)]

    with ChaosProxy(postgres_database) as proxy, Store.open(proxy.dsn, schema=schema) as store:
        proxy.plan = by_dice(seed, share=0.25)
        drive_many(orders, THREADS, Shop(store, ledger, schema).drive)

    with Store.open(postgres_database, schema=schema) as store:
        check_nothing_lost_or_doubled(Shop(store, ledger, schema), postgres_database, orders)
    assert proxy.hits[Fault.REPLY_LOST] + proxy.hits[Fault.HALF_REPLY] > 90
    assert sum(proxy.hits[fault] for fault in CUTS) > 200
    print(f"seed {seed}: {proxy.hits.total()} connections cut around a commit, {len(orders)} orders, nothing lost")
