"""Bugs are planted, in the driver and in what it has written: an audit that does not find them proves nothing."""

from __future__ import annotations

import psycopg
import pytest

from bide import Store
from bide.errors import BideError
from bide.store.postgres import PostgresDatabase
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.proxy import ChaosProxy, Fault, by_dice
from tests.faults.shop import Shop, drive_many, prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ORDERS = [f"order-{number}" for number in range(12)]
FACT = (
    "INSERT INTO deliveries (delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, "
    "received_at, body)"
)
WOKEN = (
    "INSERT INTO conditions (wait_id, number, kind, correlation, is_open, exclusive, created_at, delivery_id, wake) "
    "SELECT wait_id, 0, 'event', 'event:x', 0, 1, 1, 'fact', 'woken' FROM waits WHERE thread_id = 'order-1'"
)
TAMPERING = [
    "UPDATE runs SET status = 'waiting' WHERE thread_id = 'order-1'",
    "DELETE FROM checkpoints WHERE thread_id = 'order-1' AND seq = (SELECT max(seq) FROM checkpoints c "
    "WHERE c.thread_id = 'order-1')",
    "DELETE FROM checkpoints WHERE thread_id = 'order-1' AND seq = 2",
    "DELETE FROM events WHERE thread_id = 'order-1' AND number = 2",
    "UPDATE threads SET events = events + 1 WHERE thread_id = 'order-1'",
    "UPDATE waits SET consumed = 0 WHERE thread_id = 'order-1'",
    "DELETE FROM bookings WHERE booked = 'order-1' AND what = 'packed'",
    "INSERT INTO bookings SELECT * FROM bookings WHERE booked = 'order-1'",
    "INSERT INTO runs (thread_id, run_id, status, epoch, created_at, updated_at, lane, owner, rank, crashes) "
    "VALUES ('order-1', 'x', 'done', 1, 1, 1, 'default/shop@', '', 0, 0)",
    "INSERT INTO runs (thread_id, run_id, status, epoch, created_at, updated_at, lane, owner, rank, crashes) "
    "VALUES ('order-1', 'x', 'queued', 1, 1, 1, 'default/shop@', '', 0, 0)",
    "UPDATE runs SET input = 'again' WHERE thread_id = 'order-1'",
    "UPDATE waits SET answered_via = NULL WHERE thread_id = 'order-1'",
    "INSERT INTO conditions (wait_id, number, kind, correlation, is_open, exclusive, created_at) "
    "VALUES ('nothing', 0, 'event', 'event:x', 1, 0, 1)",
    "INSERT INTO conditions (wait_id, number, kind, correlation, is_open, exclusive, created_at, delivery_id) "
    "SELECT wait_id, 0, 'event', 'event:x', 0, 0, 1, 'fact' FROM waits WHERE thread_id = 'order-1'",
    f"{FACT} VALUES ('fact', '', 's', 'x', 'event', 'n', '', 1, 0, NULL, 1, '')",
    f"WITH fact AS ({FACT} VALUES ('fact', '', 's', 'x', 'event', 'n', '', 0, 0, NULL, 1, '')) {WOKEN}",
    f"WITH fact AS ({FACT} VALUES ('fact', '', 's', 'x', 'event', 'n', '', 0, 1, 'other', 1, '')) {WOKEN}",
    "INSERT INTO delivery_keys (correlation, received_at, delivery_id) VALUES ('event:x', 1, 'fact')",
]


class Trusting(PostgresDatabase):
    """Believes that a commit was made when its reply did not come."""

    def _was_applied(self, slot: object) -> bool:
        return True


class Hasty(PostgresDatabase):
    """Does everything again when its reply did not come."""

    def _was_applied(self, slot: object) -> bool:
        return False


@pytest.mark.parametrize(("driver", "fault"), [(Trusting, Fault.REQUEST_LOST), (Hasty, Fault.REPLY_LOST)])
def test_driver_that_does_not_ask_how_a_commit_ended_is_found_out(driver, fault, postgres_url, schema, ledger):
    with Store.open(postgres_url, schema=schema) as store:
        prepare(store, schema)

    def drive_and_check(proxy: ChaosProxy) -> None:
        with Store(driver(proxy.dsn, schema=schema, patience=5)) as store:
            shop = Shop(store, ledger, schema)
            drive_many(ORDERS, 4, shop.drive)
            check_nothing_lost_or_doubled(shop, postgres_url, ORDERS)

    with ChaosProxy(postgres_url) as proxy:
        proxy.plan = by_dice(1, share=0.25, faults=(fault,))
        with pytest.raises((AssertionError, BideError)):
            drive_and_check(proxy)

    assert proxy.hits[fault] > 0


@pytest.fixture
def shop(postgres_url, schema, ledger):
    with Store.open(postgres_url, schema=schema) as store:
        prepare(store, schema)
        shop = Shop(store, ledger, schema)
        drive_many(ORDERS[:3], 1, shop.drive)
        yield shop


@pytest.mark.parametrize("statement", TAMPERING)
def test_row_that_is_lost_or_changed_or_doubled_is_found_out(statement, shop, postgres_url):
    check_nothing_lost_or_doubled(shop, postgres_url, ORDERS[:3])
    with psycopg.connect(postgres_url, options=f"-c search_path={shop.schema}") as database:
        assert database.execute(statement).rowcount > 0

    with pytest.raises(AssertionError):
        check_nothing_lost_or_doubled(shop, postgres_url, ORDERS[:3])


@pytest.mark.parametrize("what", ["reserve", "charge"])
def test_effect_that_happened_twice_or_under_two_keys_is_found_out(what, shop, postgres_url):
    effect = next(effect for effect in shop.ledger.effects if effect.what == what)
    shop.ledger.add_effect(effect._replace(key="another key"))

    with pytest.raises(AssertionError):
        check_nothing_lost_or_doubled(shop, postgres_url, ORDERS[:3])


def test_caller_who_was_told_of_what_is_not_there_is_found_out(shop, postgres_url):
    shop.ledger.acknowledge("order-77", shop.expected("order-77", is_done=False), is_done=False)

    with pytest.raises(AssertionError):
        check_nothing_lost_or_doubled(shop, postgres_url, ORDERS[:3])
