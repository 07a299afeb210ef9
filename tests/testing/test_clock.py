"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest

from bide.errors import BideError, InterruptError
from bide.testing import FakeClock

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)


def test_clock_stands_still_until_it_is_moved():
    clock = FakeClock(start=NOON)

    before = clock.moment
    clock.advance("2h30m")

    assert before == NOON
    assert clock.moment == NOON + timedelta(hours=2, minutes=30)


@pytest.mark.parametrize("duration", ["90s", "1m30s", timedelta(seconds=90), 90])
def test_clock_takes_lengths_of_time_as_a_sleep_does(duration):
    clock = FakeClock(start=1_000)

    clock.advance(duration)

    assert clock.now() == 91_000


def test_clock_does_not_go_back():
    clock = FakeClock(start=NOON)

    with pytest.raises(BideError, match="cannot go back to 2026-03-29T11:00:00"):
        clock.move_to(NOON - timedelta(hours=1))
    with pytest.raises(InterruptError, match="advance=-1"):
        clock.advance(-1)

    assert clock.moment == NOON


def test_moment_without_a_time_zone_is_refused():
    with pytest.raises(BideError, match="no time zone"):
        FakeClock(start=datetime(2026, 3, 29))  # noqa: DTZ001 — that is the mistake


def test_sleeper_wakes_up_when_the_clock_has_come_so_far():
    clock, woken = FakeClock(), []
    sleeper = Thread(target=lambda: (clock.sleep(60, Event()), woken.append(clock.now())))
    before = clock.now()

    sleeper.start()
    clock.advance("59s")
    still_asleep = list(woken)
    clock.advance("1s")
    sleeper.join(30)

    assert still_asleep == []
    assert woken == [before + 60_000]


def test_sleeper_wakes_up_when_it_is_stopped():
    clock, stopped = FakeClock(), Event()
    sleeper = Thread(target=clock.sleep, args=(60, stopped))

    sleeper.start()
    stopped.set()
    sleeper.join(30)

    assert not sleeper.is_alive()


async def test_sleeper_on_an_event_loop_wakes_up_when_the_clock_has_come_so_far():
    clock = FakeClock()
    sleeper = asyncio.ensure_future(clock.asleep(60))
    await asyncio.sleep(0)

    clock.advance("59s")
    await asyncio.sleep(0)
    is_asleep = not sleeper.done()
    clock.advance("1s")

    await asyncio.wait_for(sleeper, 30)
    assert is_asleep


def test_sleeper_takes_the_clock_along_where_nobody_else_could_move_it():
    clock = FakeClock(start=0)

    with clock.skipping():
        clock.sleep(5, Event())
        asyncio.run(clock.asleep(2))

    assert clock.now() == 7_000
