"""Wall clocks that are an hour off, or jump: leases and timers go by the database's clock, and do not notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bide import Bide
from tests.faults.server import Cluster, cluster
from tests.faults.size import TIMES
from tests.fleet.audit import check_nothing_lost_or_doubled
from tests.fleet.clocks import Jumps, wrong_clock
from tests.fleet.customers import Customers
from tests.fleet.machines import Fleet
from tests.fleet.parcel import build
from tests.fleet.place import Place, Query
from tests.store.waiting import holds_at_last

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 * TIMES)]

PARCELS = 12 * TIMES
NAP = 150
SECONDS = 120 * TIMES
HOUR = 3600
STEP = 4
WORKS = {"concurrency": 4, "poll": 0.1}


def send_parcels(app: Bide, seed: int) -> Customers:
    """Send parcels, and look after them until all have arrived."""
    customers = Customers(app, seed, at_once=12)
    look_after(customers, PARCELS)
    return customers


def look_after(customers: Customers, parcels: int) -> None:
    """Send so many parcels, and look after them until all have arrived."""

    def have_arrived() -> bool:
        customers.go_round(is_enough=len(customers.sent) >= parcels)
        return len(customers.sent) >= parcels and not customers.under_way

    assert holds_at_last(have_arrived, SECONDS), {parcel: customers.why(parcel) for parcel in customers.under_way}


def now_of(query: Query) -> int:
    """What time it is on the server, in milliseconds."""
    ((now,),) = query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    return int(now)


def check_nobody_was_thought_dead(query: Query) -> None:
    """Every run was driven by whoever claimed it, to its next rest."""
    assert query("SELECT thread_id FROM events WHERE kind IN ('run.reaped', 'run.dead', 'run.taken_over')") == []
    assert query("SELECT DISTINCT crashes FROM runs") == [(0,)]


def naps_of(query: Query) -> list[int]:
    """How long each parcel has rested, by the server's clock."""
    return [nap for (nap,) in query("SELECT answered_at - created_at FROM waits WHERE node = 'rest'")]


@pytest.mark.parametrize("make_place", ["postgres"], indirect=True)
def test_workers_whose_clocks_are_wrong_or_jump_keep_their_leases_and_wake_in_time(make_place, tmp_path):
    place = make_place(lease=3.0)
    with ExitStack() as stack:
        app = stack.enter_context(Bide(place.open(), build(place)))
        stack.enter_context(app.store)
        query = stack.enter_context(place.looking())
        jumps = stack.enter_context(Jumps(tmp_path / "jumping", seed=1, hours=2))
        for number, seconds in enumerate((HOUR, -HOUR)):
            Jumps(tmp_path / f"wrong-{number}", 0, 0).set(seconds)
        clocks = [tmp_path / "jumping", tmp_path / "wrong-0", tmp_path / "wrong-1"]
        for number, clock in enumerate(clocks):
            fleet = stack.enter_context(Fleet(place, environment=wrong_clock(clock)))
            fleet.start(number, machine=f"machine-{number}", options=WORKS)
        before = now_of(query)

        customers = send_parcels(app, seed=1)

        after = now_of(query)
        check_nothing_lost_or_doubled(app, place, customers.sent)
        check_nobody_was_thought_dead(query)
        naps = naps_of(query)
        ((first, last),) = query("SELECT min(created_at), max(answered_at) FROM waits")
        ((drivers,),) = query("SELECT count(*) FROM workers WHERE host LIKE 'machine-%'")
    assert drivers == len(clocks)
    assert jumps.count > 5
    assert len(naps) == len(customers.sent) >= PARCELS
    assert min(naps) >= NAP
    assert max(naps) < 20_000
    assert before - 1000 <= first <= last <= after + 1000


@pytest.fixture
def server_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Cluster, Jumps]]:
    """A server whose clock can be set; its file lies where the server's own user can read it."""
    with cluster() as server:
        jumps = Jumps(server.home / "clock", 0, 0)
        jumps.set(0)
        server.stop()
        with monkeypatch.context() as changed:
            for name, value in wrong_clock(jumps.file).items():
                changed.setenv(name, value)
            server.start()
        yield server, jumps


def test_clock_of_the_server_that_is_set_back_stops_nothing(server_clock, tmp_path):
    """As it is when the clock is put right, or another machine becomes the server."""
    server, clock = server_clock
    place = Place(server.dsn, str(tmp_path), 2.0).prepare()
    with Bide(place.open(), build(place)) as app, app.store, place.looking() as query, Fleet(place) as fleet:
        for number in range(2):
            fleet.start(number, machine=f"machine-{number}", options=WORKS)
        customers = Customers(app, 2, at_once=12)
        look_after(customers, parcels=12)
        told = now_of(query)

        clock.set(-STEP)
        assert now_of(query) < told
        look_after(customers, parcels=36)

        check_nothing_lost_or_doubled(app, place, customers.sent)
        check_nobody_was_thought_dead(query)
        assert min(naps_of(query)) >= NAP
