"""The server's disk is full: callers are told, nothing that was acknowledged is lost, and all goes on afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bide import Store
from bide.errors import StoreUnavailableError
from bide.store.postgres import PostgresDatabase
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.disks import DISKS, FilesThatMayNotGrow, FullDisk, files_that_may_not_grow
from tests.faults.shop import Names, Shop, prepare
from tests.threads import thread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BALLAST = 150_000
REFUSALS = 2
MOST_ORDERS = 60


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest) -> Iterator[FullDisk]:
    with DISKS[request.param]() as disk:
        yield disk


def test_full_disk_loses_and_doubles_nothing_and_orders_go_on_when_there_is_space(disk, schema, ledger):
    names, server = Names("order"), disk.server
    with Store(PostgresDatabase(server.dsn, schema=schema, patience=2)) as store:
        prepare(store, schema)
        shop = Shop(store, ledger, schema, ballast=BALLAST)
        shop.drive("before")
        disk.fill()

        for order in names:
            shop.try_to_drive(order)
            if len(ledger.refusals) >= REFUSALS or len(names.given) == MOST_ORDERS:
                names.enough.set()
        kept = [order for order in names.given if order in {line.order for line in ledger.acknowledged if line.is_done}]
        disk.free()
        if not server.is_running():
            server.start()
        for order in names.given:
            shop.drive(order)

        check_nothing_lost_or_doubled(shop, server.dsn, ["before", *names.given])
    assert len(ledger.refusals) >= REFUSALS
    assert {kind for _, kind, _ in ledger.refusals} == {"StoreUnavailableError"}
    assert len(kept) + len(ledger.refusals) == len(names.given)


def test_full_disk_is_named_with_what_to_do(schema, ledger):
    with files_that_may_not_grow() as disk, Store.open(disk.server.dsn, schema=schema) as store:
        prepare(store, schema)
        shop = Shop(store, ledger, schema, ballast=10 * BALLAST)
        disk.fill()

        with pytest.raises(StoreUnavailableError) as refusal:
            shop.drive("order")
        other = Shop(store, ledger, schema)
        other.drive("small")

        assert isinstance(disk, FilesThatMayNotGrow)
        assert "is full" in str(refusal.value)
        assert "Free some space and go on with invoke(None, config)" in str(refusal.value)
        assert other.graph().get_state(thread("small")).values["told"] == other.expected("small", is_done=True)
