"""Lengths of time as people write them, and what is refused since nobody could say what is meant."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.errors import InterruptError
from bide.waits import milliseconds
from bide.waits.durations import LONGEST

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("duration", "wanted"),
    [
        ("2h30m", 2.5 * HOUR),
        ("90s", 90_000),
        ("1d12h", 36 * HOUR),
        ("2w", 14 * 24 * HOUR),
        ("500ms", 500),
        ("1w2d3h4m5s6ms", 7 * 24 * HOUR + 48 * HOUR + 3 * HOUR + 245_006),
        ("1.5h", 1.5 * HOUR),
        ("2h 30m", 2.5 * HOUR),
        (" 2 hours 30 minutes ", 2.5 * HOUR),
        ("1 day", 24 * HOUR),
        ("3 weeks", 21 * 24 * HOUR),
        ("10 min", 600_000),
        ("45 sec", 45_000),
        ("0s", 0),
        ("PT2H30M", 2.5 * HOUR),
        ("PT90S", 90_000),
        ("P1DT12H", 36 * HOUR),
        ("P2W", 14 * 24 * HOUR),
        ("PT0.5S", 500),
        (timedelta(hours=2, minutes=30), 2.5 * HOUR),
        (timedelta(0), 0),
        (90, 90_000),
        (0.25, 250),
        (0, 0),
    ],
)
def test_length_of_time_is_read(duration, wanted):
    assert milliseconds(duration, "timeout") == wanted


@pytest.mark.parametrize(
    "duration",
    [
        *("", " ", "2", "h", "2x", "2h30", "30m2h", "2h2h", "1h60min5min", "-2h", "+2h", "2,5h", ".5h", "2.h", "1e3s"),
        *("2 H", "2h!", "two hours", "1 month", "1y", "٣h", "²h", "2h\x00", "2\u00a0\u200bh", "9" * 200 + "s"),
        *(
            "P",
            "PT",
            "P1",
            "PT1",
            "P1H",
            "P1Y",
            "P1M",
            "PT2M1H",
            "P1DT",
            "PT1.5H30M",
            "PT1..5S",
            "PT.S",
            "-PT1H",
            "pt1h",
        ),
        *(None, True, False, b"2h", [], {}, object(), 1j),
        *(-1, -0.001, timedelta(seconds=-1), float("nan"), float("inf"), float("-inf"), 10**400, "999999999w"),
        timedelta.max,
    ],
)
def test_what_is_no_length_of_time_is_refused_by_name(duration):
    with pytest.raises(InterruptError, match=r"timeout=.* is no length of time.*'2h30m'"):
        milliseconds(duration, "timeout")


def test_whatever_is_more_than_nothing_takes_a_millisecond():
    assert milliseconds(0.0000001) == milliseconds(timedelta(microseconds=1)) == milliseconds("0.001ms") == 1


@settings(deadline=None)
@given(st.integers(0, LONGEST))
def test_every_length_can_be_said_in_every_way(ms):
    days, rest = divmod(ms, 24 * HOUR)
    said = f"{days}d{rest}ms"
    in_iso = f"P{days}DT{rest // 1000}.{rest % 1000:03}S"

    assert milliseconds(said) == milliseconds(in_iso) == milliseconds(timedelta(milliseconds=ms)) == ms


@settings(deadline=None)
@given(st.text(alphabet="0123456789.wdhms PTHM-", max_size=20) | st.text())
def test_any_text_is_a_length_or_a_typed_error(text):
    with suppress(InterruptError):
        assert 0 <= milliseconds(text) <= LONGEST
