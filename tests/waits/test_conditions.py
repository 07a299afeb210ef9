"""What can be waited for, how it is said, and which mistakes are found where they are made."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from bide.errors import InterruptError
from bide.waits import (
    After,
    At,
    Child,
    Condition,
    Regex,
    after,
    approval,
    at,
    child,
    email,
    event,
    one_of,
    regex,
    webhook,
)

DAY = 24 * 3_600_000


# --- times ------------------------------------------------------------------------------------------------------------


def test_after_takes_every_way_to_say_a_length_of_time():
    assert after("2h30m") == after(timedelta(hours=2.5)) == after(9000) == after("PT2H30M") == After(9_000_000)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 31, 8, 30, tzinfo=UTC),
        datetime(2026, 1, 31, 9, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 1, 31, 3, 30, tzinfo=timezone(timedelta(hours=-5))),
        "2026-01-31T08:30:00Z",
        "2026-01-31T09:30+01:00",
        "2026-01-31 09:30:00.000+01:00",
    ],
)
def test_at_takes_a_moment_that_everybody_agrees_on(moment):
    condition = at(moment)

    assert condition == At(1_769_848_200_000)
    assert condition.when == datetime(2026, 1, 31, 8, 30, tzinfo=UTC)


def test_at_never_wakes_before_the_moment_that_was_said():
    moment = datetime(2026, 1, 31, 8, 30, 0, 1, tzinfo=UTC)

    assert at(moment).when == moment.replace(microsecond=1000)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 31, 9, 30),  # noqa: DTZ001 - that is what is refused
        "2026-01-31T09:30:00",
        "2026-01-31",
        "tomorrow",
        "",
        "2026-13-01T00:00Z",
        1_769_848_200,
        None,
        "2" * 1000,
    ],
)
def test_at_refuses_what_may_be_another_moment_elsewhere(moment):
    with pytest.raises(InterruptError, match=r"is no moment.*zone"):
        at(moment)


def test_at_refuses_moments_that_no_calendar_has_in_utc():
    with pytest.raises(InterruptError, match="9999"):
        at(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))))


# --- mails ------------------------------------------------------------------------------------------------------------


def test_a_mail_is_described_by_globs_and_regular_expressions():
    condition = email(from_="*@example.org", subject=regex("(?i)quote"), body=re.compile("yes", re.IGNORECASE))

    assert condition.from_ == "*@example.org"
    assert condition.subject == Regex("(?i)quote")
    assert condition.body == Regex("yes", "i")
    assert (condition.lookback, condition.exclusive) == (DAY, False)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Ann <ann@example.org>", "ann@example.org"),
        ('"Smith, Ann" <Ann@example.org>', "ann@example.org"),
        (" ann@example.org ", "ann@example.org"),
        ("Sales <*@example.org>", "*@example.org"),
        ("ANN@example.org", "ANN@example.org"),
    ],
)
def test_of_an_address_with_a_name_the_address_is_waited_for(given, kept):
    assert email(from_=given).from_ == kept


@pytest.mark.parametrize(
    "given", ["ann@x.org <evil@y.org>", "a@x.org, b@y.org", "<>", '"', "Ann Smith", "", "x" * 501, 7, b"a@x.org", []]
)
def test_what_is_no_address_pattern_is_refused(given):
    with pytest.raises(InterruptError, match=r"email\(from_="):
        email(from_=given)


def test_a_mail_that_could_be_any_mail_is_refused():
    with pytest.raises(InterruptError, match=r"says nothing about the mail.*subject='\*'"):
        email(mailbox="sales")


def test_the_brackets_of_a_message_id_do_not_count():
    assert email(in_reply_to="<1@example.org>") == email(in_reply_to=" 1@example.org ")


@pytest.mark.parametrize("given", ["", "<>", "\n", 7, "x" * 2000])
def test_what_is_no_message_id_is_refused(given):
    with pytest.raises(InterruptError, match="Message-ID"):
        email(in_reply_to=given)


@pytest.mark.parametrize("given", ["", " ", "a\nb", "\x00", "x" * 201, 7])
def test_what_names_no_mailbox_is_refused(given):
    with pytest.raises(InterruptError, match="mailbox"):
        email(subject="*", mailbox=given)


# --- events and webhooks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [event, webhook])
@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00b", "\u2028", "\ud800", "x" * 201, None, 7, b"paid"])
def test_a_name_that_could_not_be_waited_for_is_refused(make, name):
    with pytest.raises(InterruptError, match="has no name that could be waited for"):
        make(name)


def test_a_match_is_copied_so_that_nobody_changes_it_later():
    match = {"order": {"id": "A-17"}, "tags": ["new"], "sum": one_of(1, 2), "note": regex("x")}

    condition = event("paid", match=match)
    match["order"]["id"] = "B"
    match["tags"].append("old")

    assert condition.match == {"order": {"id": "A-17"}, "tags": ["new"], "sum": one_of(1, 2), "note": regex("x")}


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ("order", "must be a dict"),
        ([], "must be a dict"),
        ({1: 2}, "keys of a payload are texts"),
        ({"a": {None: 2}}, "keys of a payload are texts"),
        ({"a": float("nan")}, "it must be JSON"),
        ({"a": float("inf")}, "it must be JSON"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "it must be JSON"),
        ({"a": {1, 2}}, "it must be JSON"),
        ({"a": b"x"}, "it must be JSON"),
        ({"a": [regex("x")]}, "inside a list"),
        ({"a": one_of(regex("x"))}, "it must be JSON|inside a list"),
        ({"a": Regex("(")}, "never closed"),
        ({"a": list(range(20_000))}, "holds more than"),
    ],
)
def test_a_match_that_no_payload_could_fit_is_refused(match, why):
    with pytest.raises(InterruptError, match=why):
        event("paid", match=match)


def test_a_match_that_nests_too_deep_is_refused():
    match: dict[str, object] = {}
    for _ in range(2000):
        match = {"a": match}

    with pytest.raises(InterruptError, match="nests deeper"):
        webhook("paid", match=match)


def test_one_of_nothing_is_refused():
    with pytest.raises(InterruptError, match="nothing could ever fit"):
        one_of()


def test_a_webhook_takes_a_schema_or_a_type():
    assert webhook("paid", schema=list[int]).schema == {"type": "array", "items": {"type": "integer"}}
    with pytest.raises(InterruptError, match="cannot be enforced"):
        webhook("paid", schema={"whatever": 1})


@pytest.mark.parametrize(("given", "kept"), [(None, 0), (0, 0), ("90s", 90_000), (timedelta(days=2), 2 * DAY)])
def test_look_back_is_a_length_of_time_or_nothing(given, kept):
    assert event("paid", lookback=given).lookback == kept
    assert webhook("paid", lookback=given).lookback == kept
    assert email(subject="*", lookback=given).lookback == kept


@pytest.mark.parametrize("given", ["long", -1, True, float("inf")])
def test_a_look_back_that_is_none_is_refused(given):
    with pytest.raises(InterruptError, match="lookback="):
        event("paid", lookback=given)


@pytest.mark.parametrize("given", [None, 1, "yes"])
def test_exclusive_is_yes_or_no(given):
    with pytest.raises(InterruptError, match="exclusive="):
        event("paid", exclusive=given)


# --- people and children ----------------------------------------------------------------------------------------------


def test_an_approval_has_two_options_unless_others_are_given():
    assert approval("May I?").options == ("approve", "reject")
    assert approval(options=["yes", "no", "later"], assignees="ann@example.org").assignees == ("ann@example.org",)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"title": "two\nlines"}, "one line"),
        ({"title": None}, "one line"),
        ({"title": "x" * 2000}, "one line"),
        ({"options": ()}, "nothing to answer with"),
        ({"options": ("a", "a")}, "twice"),
        ({"options": ("a", "")}, "short texts"),
        ({"options": ("a", 7)}, "short texts"),
        ({"options": [str(n) for n in range(200)]}, "more than"),
        ({"assignees": ["a\nb"]}, "short texts"),
        ({"form": {"whatever": 1}}, "cannot be enforced"),
        ({"form": object()}, "cannot say what an answer must look like"),
    ],
)
def test_an_approval_that_nobody_could_answer_is_refused(arguments, why):
    with pytest.raises(InterruptError, match=why):
        approval(**arguments)


def test_a_child_is_a_handle_or_the_id_of_a_thread():
    assert child("t-1") == child(SimpleNamespace(thread_id="t-1")) == Child("t-1")
    assert child(7) == Child("7")


@pytest.mark.parametrize("handle", ["", None, True, 1.5, "a\nb", SimpleNamespace(thread_id=None), "x" * 2000])
def test_what_is_no_child_is_refused(handle):
    with pytest.raises(InterruptError, match="names no thread"):
        child(handle)


def test_conditions_are_values_that_nobody_can_change():
    condition = after("1h")

    assert isinstance(condition, Condition)
    assert hash(condition) == hash(after(3600))
    with pytest.raises(FrozenInstanceError):
        condition.ms = 0
