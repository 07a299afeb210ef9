"""Every write of the store is hit by every fault that a connection can have, one at a time and at every round trip.

What is left in the database must be what is left in peace, and the caller must be told the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from bide import Store
from bide.errors import StoreUnavailableError
from bide.store import postgres_transaction, postgres_wire
from bide.store.database import Transaction
from tests.faults.aimed import AimedDatabase
from tests.faults.operations import OPERATIONS, picture, wipe
from tests.faults.proxy import CUTS, ChaosProxy, Fault, Plan, at, once, peace
from tests.faults.shop import prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STRIDE = 8
"""Of how many round trips one is tried, where there are many that are alike."""
SHORT = 2.0
"""Seconds of patience, where a fault is only noticed when that is over."""


class Scene:
    """A schema behind a proxy, in which one operation after another is hit."""

    def __init__(self, proxy: ChaosProxy, dsn: str, schema: str) -> None:
        self.proxy = proxy
        self.dsn = dsn
        self.schema = schema
        self.trips = 0

    def play(self, name: str, plan: Plan, **options: Any) -> tuple[Any, dict[str, list[Any]]]:
        """Do it with this plan for its round trips; return what the caller was told, and what is left."""
        operation = OPERATIONS[name]
        wipe(self.dsn, self.schema)
        with Store.open(self.dsn, schema=self.schema) as store:
            operation.before(store, self.schema)
        with Store(AimedDatabase(self.proxy, self.schema, operation.target, plan, **options)) as store:
            told = operation.act(store, self.schema)
        assert store.database.target is None, "it was not aimed at"
        self.trips = store.database.trips
        return told, picture(self.dsn, self.schema)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server, and us, give up sooner what is silent."""
    monkeypatch.setattr(postgres_transaction, "IDLE_MILLISECONDS", 500)
    monkeypatch.setattr(postgres_wire, "CANCEL_SECONDS", 0.2)


@pytest.fixture
def scene(postgres_url: str, schema: str) -> Iterator[Scene]:
    with Store.open(postgres_url, schema=schema) as store:
        prepare(store, schema)
    with ChaosProxy(postgres_url) as proxy:
        yield Scene(proxy, postgres_url, schema)


@pytest.mark.parametrize("name", OPERATIONS)
def test_broken_connection_changes_nothing_at_any_round_trip(name, scene):
    expected = scene.play(name, peace)
    trips = scene.trips

    outcomes = {(trip, fault): scene.play(name, at(trip, fault)) for trip in range(trips) for fault in CUTS}

    assert trips > 0
    assert scene.proxy.hits == dict.fromkeys(CUTS, trips)
    assert {place: outcome for place, outcome in outcomes.items() if outcome != expected} == {}
    print(f"{name}: {len(outcomes)} cuts at {trips} round trips")


@pytest.mark.parametrize("name", OPERATIONS)
def test_commit_that_arrives_after_the_caller_went_on_is_not_applied(name, scene, short_waits):
    expected = scene.play(name, peace)

    outcome = scene.play(name, once(Fault.LATE))
    scene.proxy.release()

    assert scene.proxy.hits == {Fault.LATE: 1}
    assert outcome == expected
    assert picture(scene.dsn, scene.schema) == expected[1]


@pytest.mark.parametrize("fault", [Fault.SILENT_BEFORE, Fault.SILENT_AFTER])
@pytest.mark.parametrize("name", ["begin", "plain step", "transact"])
def test_connection_that_falls_silent_is_given_up_and_its_commit_is_found_out(name, fault, scene, short_waits):
    expected = scene.play(name, peace)

    outcome = scene.play(name, once(fault), patience=SHORT)

    assert scene.proxy.hits == {fault: 1}
    assert outcome == expected


@pytest.mark.parametrize("name", ["begin", "edit"])
def test_server_that_waits_for_the_rest_of_a_transaction_does_nothing_of_it(name, scene, short_waits):
    """As long as the server is not told that nobody is there, it keeps what half of a transaction has locked."""
    expected = scene.play(name, peace)

    with pytest.raises(StoreUnavailableError, match="whether it was written is not known"):
        scene.play(name, once(Fault.SILENT_MIDWAY), patience=SHORT)
    scene.proxy.release()
    with Store.open(scene.dsn, schema=scene.schema) as store:
        told = OPERATIONS[name].act(store, scene.schema)

    assert scene.proxy.hits == {Fault.SILENT_MIDWAY: 1}
    assert (told, picture(scene.dsn, scene.schema)) == expected


def test_commit_that_is_late_by_more_than_a_day_is_not_applied(scene):
    """Notes of how writes ended are forgotten after a day; one that is still needed is not."""

    def count_up(tx: Transaction) -> None:
        tx.send("count_events", {"thread_id": "job", "added": 100})

    with Store(AimedDatabase(scene.proxy, scene.schema, "count", once(Fault.LATE))) as slow:
        OPERATIONS["end"].act(slow, scene.schema)
        with psycopg.connect(scene.dsn) as database:
            database.execute(f"UPDATE {scene.schema}.outcomes SET noted_at = now() - interval '2 days'")
        slow.database.write("count", count_up)

        with Store.open(scene.dsn, schema=scene.schema) as other:
            other.items.put(("memories",), "first", {"text": "whoever writes first also tidies up"})
        scene.proxy.release()

    assert scene.proxy.hits == {Fault.LATE: 1}
    assert len(scene.proxy.late_replies) == 1
    [(_, events)] = picture(scene.dsn, scene.schema)["threads"]
    assert 100 < events < 200


def test_tables_are_made_whole_wherever_the_connection_breaks(scene):
    def open_new(plan: Plan) -> AimedDatabase:
        with psycopg.connect(scene.dsn) as database:
            database.execute(f"DROP SCHEMA {scene.schema} CASCADE")
        made = AimedDatabase(scene.proxy, scene.schema, "migrate", plan)
        with Store(made) as store:
            OPERATIONS["begin"].act(store, scene.schema)
        return made

    trips = range(open_new(peace).trips)
    faults = [Fault.REQUEST_LOST, Fault.REPLY_LOST]
    for number, trip in enumerate([*trips[:-1:STRIDE], trips[-1]]):
        open_new(at(trip, faults[number % 2]))
    for fault in CUTS:
        open_new(once(fault))

    assert sum(scene.proxy.hits.values()) == len(trips[:-1:STRIDE]) + 1 + len(CUTS)
    assert len(trips) > 2 * STRIDE
