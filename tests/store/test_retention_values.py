"""What can be said about how long things are kept, and what is refused before anything goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bide import Store
from bide.errors import RetentionError, StoreError
from bide.store.retention import Retention, milliseconds_of

SECOND = 1000
DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        ("30d", 30 * DAY),
        ("2w", 14 * DAY),
        ("12h", DAY // 2),
        ("15m", 900 * SECOND),
        ("90s", 90 * SECOND),
        (" 1.5 h ", 5400 * SECOND),
        (90, 90 * SECOND),
        (0.25, 250),
        (timedelta(days=1, milliseconds=1), DAY + 1),
        (0.0001, 1),
    ],
)
def test_length_of_time_is_a_timedelta_or_seconds_or_a_text(given, milliseconds):
    assert milliseconds_of("ttl", given) == milliseconds


NO_TIME: list[Any] = [
    "",
    "30",
    "d",
    "30y",
    "-1d",
    0,
    -1,
    timedelta(0),
    float("nan"),
    float("inf"),
    1e300,
    True,
    [],
    b"1d",
]


@pytest.mark.parametrize("given", NO_TIME, ids=repr)
@pytest.mark.parametrize("name", ["ttl", "older_than", "every"])
def test_what_is_no_length_of_time_is_refused_with_an_example(name, given):
    with pytest.raises(RetentionError, match=f"{name}=.*'30d'"):
        Retention(**{"keep_last": 5, name: given})


@pytest.mark.parametrize("given", [0, -1, 1.5, "5", True, 2**31], ids=repr)
def test_number_of_checkpoints_is_at_least_one(given):
    with pytest.raises(RetentionError, match=r"keep_last=.*1 or more"):
        Retention(keep_last=given)
    with Store.open(":memory:") as store, pytest.raises(RetentionError, match=r"keep_last=.*delete_thread"):
        store.prune(keep_last=given)


def test_policy_that_says_nothing_is_refused():
    with pytest.raises(RetentionError, match="says nothing"):
        Retention()


@pytest.mark.parametrize("given", [datetime.fromisoformat("2030-01-01"), 5, timedelta(days=1)], ids=repr)
def test_horizon_is_a_moment_with_its_zone_or_a_checkpoint(given):
    with Store.open(":memory:") as store, pytest.raises(RetentionError, match=r"horizon=.*datetime.now"):
        store.prune(horizon=given)


@pytest.mark.parametrize("horizon", [datetime(2030, 1, 1, tzinfo=UTC), "x-00000001"], ids=repr)
def test_age_and_horizon_together_are_refused(horizon):
    with Store.open(":memory:") as store, pytest.raises(RetentionError, match="one of them"):
        store.prune(older_than="1d", horizon=horizon)


def test_refusal_is_an_error_of_the_store_and_of_a_value():
    assert issubclass(RetentionError, StoreError)
    assert issubclass(RetentionError, ValueError)
