"""Workers are killed at random, again and again, while parcels go through them: nothing lost, nothing twice.

One command shows it again, and larger, with the seed that it printed:

    BIDE_FLEET_SEED=7 BIDE_FAULTS=20 python -m pytest tests/fleet/test_random_kills.py -m slow -s
"""

from __future__ import annotations

from random import Random

import pytest

from bide import Bide
from tests.faults.size import TIMES
from tests.fleet.audit import check_nothing_lost_or_doubled, digest
from tests.fleet.customers import Customers
from tests.fleet.machines import Fleet
from tests.fleet.parcel import build
from tests.fleet.storm import SEED, WORKERS, WORKS, Storm, lot_of

KILLS = 250 * TIMES
"""On each of two databases."""
AT_ONCE = 24

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 * TIMES)]


def test_workers_that_are_killed_at_random_lose_nothing_and_do_nothing_twice(make_place):
    place = make_place(lease=1.5)
    with Bide(place.open(), build(place)) as app, app.store, Fleet(place) as fleet:
        customers = Customers(app, SEED, AT_ONCE)

        def start(number: int) -> None:
            fleet.start(number, options=WORKS, **lot_of(number))

        def kill_one_and_start_it_again(dice: Random) -> int:
            number = dice.randrange(WORKERS)
            fleet.kill(number)
            start(number)
            return 1

        for number in range(WORKERS):
            start(number)
        with Storm(kill_one_and_start_it_again, KILLS) as storm:
            storm.let_parcels_go_through(customers)

        check_nothing_lost_or_doubled(app, place, customers.sent)
        kills = fleet.kills
        with place.looking() as query:
            ((reaped,),) = query("SELECT count(*) FROM events WHERE kind = 'run.reaped'")
        print(
            f"{kills} kills took {reaped} runs out of the middle of their work; {customers.arrived} parcels arrived, "
            f"nothing lost, nothing twice; {len(customers.released)} released; ledger {digest(place)}"
        )
        said = fleet.said_by_all()
    assert kills == KILLS
    assert reaped > KILLS // 10
    assert "Traceback" not in said, said
