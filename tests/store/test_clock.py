"""The time that decides is the database's: no wall clock of a worker plays a part, and it never goes backwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TypedDict

import psycopg
import pytest

import bide.clock
import bide.store.postgres_clock
from bide import START, StateGraph, Store
from bide.clock import ForwardOnly, Instant, SystemClock, elapsed
from bide.store.postgres import PostgresDatabase
from bide.store.postgres_clock import PostgresClock, Reading
from tests.store.waiting import Passing
from tests.threads import thread

HOUR = 3_600_000
NOW = 1_700_000_000_000
CLOSE = 30_000
"""Milliseconds that a slow machine may need between two looks at a clock; far less than an hour."""


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    passing = Passing()
    monkeypatch.setattr(bide.clock, "elapsed", passing)
    monkeypatch.setattr(bide.store.postgres_clock, "elapsed", passing)
    return passing


def reading(passing: Passing, told: float, *, trip: float = 0.0) -> Reading:
    """What the server told just now, after a round trip of so many seconds."""
    return Reading(passing.seconds - trip, told, passing.seconds)


def set_wall_clock(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """Set the clock of this process forward, or back."""
    monkeypatch.setattr(time, "time_ns", lambda: time.clock_gettime_ns(time.CLOCK_REALTIME) + milliseconds * 1_000_000)
    monkeypatch.setattr(time, "time", lambda: time.clock_gettime(time.CLOCK_REALTIME) + milliseconds / 1000)


# ── Never backwards ────────────────────────────────────────────────────────────────────────────────────────────────


def test_clock_that_is_right_is_told_as_it_is(passing):
    forward = ForwardOnly()

    told = [forward.after(NOW), forward.after(NOW + 5)]

    assert told == [NOW, NOW + 5]


def test_clock_that_was_set_back_goes_on_at_half_speed_until_it_is_right(passing):
    forward = ForwardOnly()
    forward.after(NOW)

    told = []
    for seconds in range(1, 5):
        passing.seconds += 1
        told.append(forward.after(NOW - 2000 + seconds * 1000))

    assert told == [NOW + 500, NOW + 1000, NOW + 1500, NOW + 2000]


def test_machine_whose_clock_is_set_back_does_not_go_backwards(monkeypatch):
    before = SystemClock().now()
    set_wall_clock(monkeypatch, -HOUR)

    after = SystemClock().now()

    assert before <= after < before + CLOSE


# ── The server's clock, carried here ───────────────────────────────────────────────────────────────────────────────


def test_first_reading_is_taken_to_be_from_the_middle_of_its_round_trip(passing):
    clock = PostgresClock(lambda: reading(passing, NOW, trip=4.0))

    assert clock.now() == NOW + 2000


def test_server_is_read_once_and_then_time_just_passes(passing):
    asked: list[int] = []

    def read() -> Reading:
        asked.append(1)
        return reading(passing, NOW)

    clock = PostgresClock(read)
    first = clock.now()
    passing.seconds += 90

    assert (first, clock.now(), len(asked)) == (NOW, NOW + 90_000, 1)


def test_slow_round_trip_moves_nothing(passing):
    clock = PostgresClock(lambda: reading(passing, NOW))
    clock.now()

    clock.correct(reading(passing, NOW - 3000, trip=5.0))

    assert clock.now() == NOW


def test_clock_that_has_drifted_is_followed_to_within_a_round_trip(passing):
    clock = PostgresClock(lambda: reading(passing, NOW))
    clock.now()

    clock.correct(reading(passing, NOW + 700, trip=0.1))

    assert clock.now() == NOW + 700


def test_server_whose_clock_was_set_back_is_followed_without_going_backwards(passing):
    clock = PostgresClock(lambda: reading(passing, NOW))
    clock.now()

    clock.correct(reading(passing, NOW - 10_000))
    at_once = clock.now()
    passing.seconds += 20
    later = clock.now()
    passing.seconds += 1

    assert (at_once, later, clock.now()) == (NOW, NOW + 10_000, NOW + 11_000)


# ── On a real server ───────────────────────────────────────────────────────────────────────────────────────────────


class State(TypedDict):
    done: bool


def server_time(url: str) -> Instant:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(params=[-HOUR, HOUR], ids=["an hour behind", "an hour ahead"])
def wrong_wall_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A wall clock that is wrong, and can be made more so."""
    set_wall_clock(monkeypatch, request.param)
    return lambda times: set_wall_clock(monkeypatch, request.param * times)


def times_of(url: str) -> list[Instant]:
    """Every instant that a run has left in the tables."""
    parts = [
        "SELECT created_at FROM bide.threads",
        "SELECT updated_at FROM bide.runs",
        "SELECT created_at FROM bide.checkpoints",
        "SELECT lease_until - 30000 FROM bide.workers",
    ]
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(" UNION ALL ".join(parts))]


def test_what_a_worker_with_a_wrong_clock_writes_is_in_the_servers_time(postgres_url, wrong_wall_clock):
    with Store.open(postgres_url, schema="bide") as store:
        graph = StateGraph(State).add_node("node", lambda state: wrong_wall_clock(3)).add_edge(START, "node")
        before = server_time(postgres_url)
        graph.compile(checkpointer=store).invoke({"done": True}, thread("t"))
        written = times_of(postgres_url)
        after = server_time(postgres_url)

    assert len(written) >= 4
    assert before - CLOSE <= min(written) <= max(written) <= after + CLOSE


def test_clock_is_that_of_the_server_to_within_a_moment(postgres_url, wrong_wall_clock):
    with Store.open(postgres_url, schema="bide") as store:
        started = elapsed()
        before = server_time(postgres_url)
        now = store.clock.now()
        after = server_time(postgres_url)
        took = (elapsed() - started) * 1000

    assert before - took - 100 <= now <= after + took + 100


def test_clock_that_is_given_wins(postgres_url, clock):
    with Store.open(postgres_url, schema="bide", clock=clock) as store:
        graph = StateGraph(State).add_node("node", lambda state: None).add_edge(START, "node")
        graph.compile(checkpointer=store).invoke({"done": True}, thread("t"))

        assert store.clock is clock
        assert set(times_of(postgres_url)) == {clock.now()}


def test_heartbeat_reads_the_servers_clock_again(postgres_url):
    with closing(PostgresDatabase(postgres_url, schema="bide")) as database:
        clock, right = database.clock(), server_time(postgres_url)
        # As if the server's clock had been set forward by an hour since it was last read.
        clock.correct(Reading(elapsed(), right - HOUR, elapsed()))
        before = clock.now()

        with closing(database.lifeline(30.0)) as lifeline:
            lifeline.renew({"worker_id": "nobody", "lease_until": 0})

        assert before < right - HOUR + CLOSE
        assert right - CLOSE < clock.now() < right + CLOSE
