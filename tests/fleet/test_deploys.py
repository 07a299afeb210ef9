"""A new version is rolled out under load: old workers are asked to stop, and new ones are there already."""

from __future__ import annotations

import pytest

from bide import Bide
from tests.fleet.audit import check_nothing_lost_or_doubled
from tests.fleet.customers import Customers
from tests.fleet.machines import Fleet, Lot
from tests.fleet.parcel import build
from tests.store.waiting import holds_at_last

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = 3
ROLLOUTS = 3
PARCELS_BETWEEN = 6
"""How many parcels must arrive before the next worker is replaced: so there is always load, and always progress."""


def test_rollout_loses_nothing_and_nobody_counts_as_crashed(make_place):
    place = make_place()
    with Bide(place.open(), build(place)) as app, app.store, place.looking() as query, Fleet(place) as fleet:
        customers = Customers(app, seed=1, at_once=12)

        def start(number: int) -> None:
            # Seen from elsewhere, each is on a machine of its own: that it has left must be in the database.
            lot: Lot = {"machine": f"machine-{number}"}
            fleet.start(number, options={"concurrency": 4, "poll": 0.1}, **lot)

        def wait_for_parcels(more: int) -> None:
            wanted = customers.arrived + more
            assert holds_at_last(lambda: customers.go_round() or customers.arrived >= wanted), fleet.said_by_all()

        for number in range(WORKERS):
            start(number)
        ended = []
        for number in range(WORKERS * ROLLOUTS):
            wait_for_parcels(PARCELS_BETWEEN)
            start(WORKERS + number)
            fleet.terminate(number)
            ended.append(fleet.wait(number))
        assert holds_at_last(lambda: customers.go_round(is_enough=True) or not customers.under_way)

        check_nothing_lost_or_doubled(app, place, customers.sent)
        assert ended == [0] * WORKERS * ROLLOUTS, fleet.said_by_all()
        assert query("SELECT DISTINCT crashes FROM runs") == [(0,)]
        assert query("SELECT thread_id FROM events WHERE kind = 'run.reaped'") == []
        said = fleet.said_by_all()
    assert "Traceback" not in said
