"""Workers are stopped at random, past their lease, while parcels go through them; others finish their work.

When they go on, nothing of what they still write is taken, nothing happens twice, and they are workers again. One
command shows it again, and larger, with the seed that it printed:

    BIDE_FLEET_SEED=7 BIDE_FAULTS=20 python -m pytest tests/fleet/test_random_stops.py -m slow -s
"""

from __future__ import annotations

import pytest

from bide import Bide
from tests.faults.size import TIMES
from tests.fleet.audit import check_nothing_lost_or_doubled, digest
from tests.fleet.customers import Customers
from tests.fleet.machines import Fleet
from tests.fleet.parcel import build_thoughtful
from tests.fleet.storm import SEED, WORKERS, WORKS, Storm, lot_of
from tests.fleet.zombies import Zombies

STOPS = [("postgres", 50 * TIMES), ("sqlite", 25 * TIMES)]
AT_ONCE = 24
LEASE = 0.8
GRAPHS = "tests.fleet.parcel:build_thoughtful"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 * TIMES)]


@pytest.mark.parametrize(("make_place", "stops"), STOPS, indirect=["make_place"])
def test_workers_that_are_stopped_at_random_past_their_lease_write_nothing_late_and_do_nothing_twice(make_place, stops):
    place = make_place(lease=LEASE)
    with Bide(place.open(), build_thoughtful(place)) as app, app.store, Fleet(place, GRAPHS) as fleet:
        customers, zombies = Customers(app, SEED, AT_ONCE), Zombies(app, place, fleet)
        for number in range(WORKERS):
            fleet.live("tests.fleet.lives:work_in_a_hurry", number, [place, GRAPHS, WORKS], **lot_of(number))

        with Storm(zombies.make_some, stops) as storm:
            storm.let_parcels_go_through(customers)

        check_nothing_lost_or_doubled(app, place, customers.sent)
        print(
            f"{zombies.stops} stops, and {zombies.taken_over} runs were taken over meanwhile, of which "
            f"{zombies.refused} were refused to those that came back; {customers.arrived} parcels arrived, nothing "
            f"lost, nothing twice; {len(customers.released)} released; ledger {digest(place)}"
        )
        said = fleet.said_by_all()
    assert zombies.stops >= stops
    # Those that are missing were called back by their own worker, before they came to write anything.
    assert zombies.refused > zombies.taken_over // 2
    assert "Traceback" not in said, said
