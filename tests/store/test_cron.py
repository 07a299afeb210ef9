"""When a schedule is due: cron in time zones, through leaps and repeats of the clock, and after nobody was there."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from bide.store.cron import MOST_MADE_UP, Cron, cron_of
from bide.store.schedule_rows import ScheduleError

NEW_YORK, LORD_HOWE = "America/New_York", "Australia/Lord_Howe"
MINUTE = 60_000


def instant(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def told(cron: Cron, start: str, zone: str, count: int) -> list[str]:
    """The next times that a cron is due, as the clock on the wall and the distance from Greenwich tell them."""
    found, now = [], instant(start, zone)
    for _ in range(count):
        now = cron.after(now)
        found.append(datetime.fromtimestamp(now / 1000, ZoneInfo(zone)).strftime("%m-%d %H:%M %z"))
    return found


# ── Daylight saving ────────────────────────────────────────────────────────────────────────────────────────────────


def test_time_that_the_clock_leaps_over_comes_right_after_the_leap():
    new_york = told(Cron("30 2 * * *", NEW_YORK), "2026-03-07T00:00", NEW_YORK, 3)
    lord_howe = told(Cron("15 2 * * *", LORD_HOWE), "2026-10-03T00:00", LORD_HOWE, 3)

    assert new_york == ["03-07 02:30 -0500", "03-08 03:00 -0400", "03-09 02:30 -0400"]
    assert lord_howe == ["10-03 02:15 +1030", "10-04 02:30 +1100", "10-05 02:15 +1100"]


def test_time_that_the_clock_repeats_comes_once():
    new_york = told(Cron("30 1 * * *", NEW_YORK), "2026-10-31T00:00", NEW_YORK, 3)
    lord_howe = told(Cron("45 1 * * *", LORD_HOWE), "2026-04-04T00:00", LORD_HOWE, 3)

    assert new_york == ["10-31 01:30 -0400", "11-01 01:30 -0400", "11-02 01:30 -0500"]
    assert lord_howe == ["04-04 01:45 +1100", "04-05 01:45 +1100", "04-06 01:45 +1030"]


def test_whoever_asks_in_the_hour_that_is_repeated_is_not_told_a_time_that_is_over():
    cron = Cron("30 1 * * *", NEW_YORK)
    in_the_second_hour = int(datetime(2026, 11, 1, 6, 15, tzinfo=UTC).timestamp() * 1000)

    found = datetime.fromtimestamp(cron.after(in_the_second_hour) / 1000, ZoneInfo(NEW_YORK))

    assert found.isoformat() == "2026-11-02T01:30:00-05:00"


def test_what_comes_every_half_hour_goes_on_as_time_does():
    repeated = told(Cron("*/30 * * * *", NEW_YORK), "2026-11-01T00:59", NEW_YORK, 5)
    leapt = told(Cron("*/30 * * * *", LORD_HOWE), "2026-10-04T01:29", LORD_HOWE, 3)

    assert repeated[:2] == ["11-01 01:00 -0400", "11-01 01:30 -0400"]
    assert repeated[2:] == ["11-01 01:00 -0500", "11-01 01:30 -0500", "11-01 02:00 -0500"]
    assert leapt == ["10-04 01:30 +1030", "10-04 02:30 +1100", "10-04 03:00 +1100"]


@pytest.mark.parametrize("zone", [NEW_YORK, LORD_HOWE, "Europe/Berlin", "UTC"])
@pytest.mark.parametrize("expression", ["30 1 * * *", "15 2 * * *", "0 */2 * * *", "*/20 * * * *", "5,50 0-3 * * *"])
def test_all_who_ask_in_between_are_told_the_same_next_time(zone, expression):
    cron, chance = Cron(expression, zone), random.Random(f"{zone} {expression}")
    for day in ("2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31"):
        chain = [cron.after(instant(f"{day}T00:00", zone))]
        while chain[-1] < chain[0] + 3 * 24 * 60 * MINUTE:
            chain.append(cron.after(chain[-1]))

        assert chain == sorted(set(chain))
        for before, after in pairwise(chain):
            assert cron.after(chance.randrange(before, after)) == after


# ── What cannot be meant ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("expression", ["", "* * * *", "61 * * * *", "0 0 30 2 *", "@daily", "a b c d e", 5, None])
def test_what_is_no_cron_is_an_error_that_shows_how_one_is_written(expression):
    with pytest.raises(ScheduleError, match="MON-FRI"):
        Cron(expression)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", 7])
def test_what_is_no_time_zone_is_an_error(zone):
    with pytest.raises(ScheduleError, match="is no time zone"):
        Cron("* * * * *", zone)


def test_time_zone_that_is_nearly_right_is_guessed():
    with pytest.raises(ScheduleError, match="Did you mean 'Europe/Berlin'"):
        Cron("* * * * *", "Europe/Berlim")


def test_cron_is_told_in_words_and_read_once():
    assert cron_of("0 9 * * MON-FRI", "UTC").explained() == "At 09:00 on Monday through Friday"
    assert cron_of("0 9 * * MON-FRI", "UTC") is cron_of("0 9 * * MON-FRI", "UTC")


# ── After nobody was there ─────────────────────────────────────────────────────────────────────────────────────────


def test_time_that_has_just_come_is_due_whatever_is_said_about_missed_ones():
    cron, nine = Cron("0 9 * * *"), instant("2026-01-05T09:00")

    for missed in ("once", "skip", "all"):
        due = cron.due(nine, nine + 400, missed)
        assert (due.instants, due.next_at) == ((nine,), instant("2026-01-06T09:00"))


def test_one_run_for_all_that_were_missed_has_the_newest_time():
    cron, now = Cron("0 9 * * *"), instant("2026-01-05T12:00")

    due = cron.due(instant("2026-01-01T09:00"), now, "once")

    assert (due.instants, due.next_at) == ((instant("2026-01-05T09:00"),), instant("2026-01-06T09:00"))


def test_what_was_missed_is_skipped_unless_it_is_due_right_now():
    cron, first = Cron("0 9 * * *"), instant("2026-01-01T09:00")

    assert cron.due(first, first + 61_000, "skip").instants == ()
    assert cron.due(first, instant("2026-01-05T12:00"), "skip").instants == ()
    assert cron.due(first, instant("2026-01-05T09:00") + 500, "skip").instants == (instant("2026-01-05T09:00"),)


def test_all_that_were_missed_are_made_up_for_and_of_many_the_newest():
    cron, first = Cron("* * * * *"), instant("2026-01-01T09:00")

    few = cron.due(first, first + 3 * MINUTE + 1, "all")
    many = cron.due(first, first + 40_000 * MINUTE + 1, "all")

    assert few.instants == tuple(first + number * MINUTE for number in range(4))
    assert len(many.instants) == MOST_MADE_UP
    assert many.instants[-1] == first + 40_000 * MINUTE
    assert {after - before for before, after in pairwise(many.instants)} == {MINUTE}


@pytest.mark.parametrize("missed", ["once", "all"])
def test_times_missed_over_a_change_of_the_clock_are_those_that_would_have_come(missed):
    cron = Cron("30 1,2 * * *", NEW_YORK)
    for day in ("2026-03-07T00:00", "2026-10-31T00:00"):
        start = instant(day, NEW_YORK)
        coming = [cron.after(start)]
        while len(coming) < 6:
            coming.append(cron.after(coming[-1]))
        now = coming[-2] + timedelta(minutes=5) // timedelta(milliseconds=1)

        due = cron.due(coming[0], now, missed)

        assert due.instants == (tuple(coming[:-1]) if missed == "all" else (coming[-2],))
        assert due.next_at == coming[-1]
