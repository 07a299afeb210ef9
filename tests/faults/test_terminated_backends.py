"""All connections are ended by an administrator, five times a second, while orders are driven."""

from __future__ import annotations

import pytest

from bide import Store
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.nemesis import Nemesis
from tests.faults.shop import Names, Shop, drive_many, prepare
from tests.faults.size import TIMEOUT, TIMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

ROUNDS = 25 * TIMES
THREADS = 6


def test_terminated_connections_lose_and_double_nothing(postgres_database, schema, ledger):
    names = Names("order")
    with Store.open(postgres_database, schema=schema) as store:
        prepare(store, schema)
        shop = Shop(store, ledger, schema)

        with Nemesis(postgres_database, times_a_second=5).rage(ROUNDS) as nemesis:

            def drive_until_it_is_enough(_: int) -> None:
                for order in names:
                    shop.drive(order)
                    if nemesis.has_done_enough.is_set():
                        names.enough.set()

            drive_many(range(THREADS), THREADS, drive_until_it_is_enough)

        check_nothing_lost_or_doubled(shop, postgres_database, names.given)
    assert nemesis.rounds >= ROUNDS
    assert nemesis.terminated >= 2 * ROUNDS
    assert ledger.refusals == []
    print(
        f"{nemesis.terminated} backends terminated in {nemesis.rounds} rounds, {len(names.given)} orders, nothing lost"
    )
