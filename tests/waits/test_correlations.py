"""Correlation keys: whatever fits is found by them, and little else is."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from bide.waits import (
    Fact,
    after,
    approval,
    child,
    correlations_of,
    email,
    email_fact,
    event,
    event_fact,
    literal,
    match,
    one_of,
    regex,
    to_plain,
    webhook,
    webhook_fact,
)
from bide.waits.leaves import leaves
from tests.waits.strategies import facts, fitting, leaf_conditions


def key_of(condition):
    (leaf,) = leaves(to_plain(condition), 0)
    return leaf.correlation


@pytest.mark.parametrize(
    ("condition", "key"),
    [
        (after("1h"), ""),
        (approval("May I?"), ""),
        (child("t-1"), "child:t-1"),
        (webhook("paid", match={"a": 1}), "webhook:paid"),
        (event("paid"), "event:paid"),
        (event("paid", match={}), "event:paid"),
        (event("paid", match={"b": 1, "a": "x"}), 'event:paid|a="x"'),
        (event("paid", match={"a": {"b": 1}, "c": [1], "d": regex("x"), "e": one_of(1)}), "event:paid"),
        (event("paid", match={"a": [1], "z": None}), "event:paid|z=null"),
        (event("paid", match={"a": True}), "event:paid|a=true"),
        (event("paid", match={"a": 1}), "event:paid|a=1"),
        (event("paid", match={"a": 1.0}), "event:paid|a=1"),
        (event("paid", match={"a": -0.0}), "event:paid|a=0"),
        (event("paid", match={"a": 1.5}), "event:paid|a=1.5"),
        (event("größe"), 'event:"gr\\u00f6\\u00dfe"'),
        (email(subject="*"), "email:"),
        (email(subject="*", mailbox="Sales"), "email:sales"),
        (email(from_="Ann@example.org"), 'email:|from="ann@example.org"'),
        (email(from_="*@example.org"), "email:"),
        (email(from_=regex("ann")), "email:"),
        (email(from_="ann@x.org", in_reply_to="<1@x>", mailbox="sales"), 'email:sales|reply="1@x"'),
    ],
)
def test_a_wait_is_registered_under_one_key(condition, key):
    assert key_of(condition) == key


def test_a_fact_has_a_key_for_everything_that_a_wait_may_go_by():
    mail = email_fact(
        "Sales", received_at=0, from_="Ann <Ann@x.org>", in_reply_to="<1@x>", references=["<0@x>", "<1@x>"]
    )

    assert correlations_of(mail) == tuple(
        sorted(
            f"email:{mailbox}{part}"
            for mailbox in ("", "sales")
            for part in ("", '|from="ann@x.org"', '|reply="0@x"', '|reply="1@x"')
        )
    )
    assert correlations_of(event_fact("paid", {"b": 1, "a": "x", "c": [1], "d": {}}, received_at=0)) == (
        "event:paid",
        'event:paid|a="x"',
        "event:paid|b=1",
    )
    assert correlations_of(event_fact("paid", [1], received_at=0)) == ("event:paid",)
    assert correlations_of(webhook_fact("paid", {"a": 1}, received_at=0)) == ("webhook:paid",)
    assert correlations_of(Fact("child", "t-1", None, "s", "1", 0)) == ("child:t-1",)


LONG = "x" * 500


@settings(max_examples=500, deadline=None)
@given(leaf_conditions(), facts())
@example(event("paid", match={"a": 1}), event_fact("paid", {"a": 1.0}, received_at=0))
@example(event("paid", match={"a": 10**300}), event_fact("paid", {"a": 1e300}, received_at=0))
@example(event("paid", match={"a": 2**70}), event_fact("paid", {"a": float(2**70)}, received_at=0))
@example(event("paid", match={"a": 0}), event_fact("paid", {"a": -0.0}, received_at=0))
@example(event("paid", match={LONG: LONG}), event_fact("paid", {LONG: LONG}, received_at=0))
@example(event("paid", match={"\x00": "\ud800"}), event_fact("paid", {"\x00": "\ud800"}, received_at=0))
@example(email(from_="A@X.org", mailbox="INBOX"), email_fact("inbox", received_at=0, from_="a@x.ORG"))
@example(email(from_=literal("a*@x.org")), email_fact("inbox", received_at=0, from_="A*@x.org"))
@example(email(in_reply_to="<1@x>"), email_fact("", received_at=0, references="<0@x>\r\n\t<1@x>"))
def test_whatever_fits_is_found_by_its_key(condition, fact):
    assert_found_if_fitting(condition, fact)


@settings(max_examples=500, deadline=None)
@given(fitting())
def test_what_was_made_to_fit_is_found_by_its_key(pair):
    assert_found_if_fitting(*pair)


def assert_found_if_fitting(condition, fact):
    keys = correlations_of(fact)

    if match(to_plain(condition), fact).fits:
        assert key_of(condition) in keys


@settings(deadline=None)
@given(leaf_conditions(), facts())
def test_keys_are_short_sorted_unique_and_can_be_held_by_any_database(condition, fact):
    keys = correlations_of(fact)

    assert keys == tuple(sorted(set(keys)))
    for key in (*keys, key_of(condition)):
        assert len(key) <= 200
        assert key.isascii()
        assert key.isprintable()


def test_a_number_too_long_to_be_printed_has_a_key_too():
    condition, fact = event("paid", match={"a": 10**5000}), event_fact("paid", {"a": 10**5000}, received_at=0)

    assert match(to_plain(condition), fact).fits
    assert key_of(condition) in correlations_of(fact)


def test_long_keys_of_different_values_differ():
    ids = [f"{LONG}{number}" for number in range(100)]

    assert len({key_of(event("paid", match={"id": one})) for one in ids}) == 100
    assert len({key_of(child(one)) for one in ids}) == 100


@pytest.mark.parametrize("payload", [None, 7, "x", [], {}, {"from": 7, "references": {}}, {1: 2, "a": float("nan")}])
@pytest.mark.parametrize("kind", ["event", "email", "webhook", "child", "other", None])
def test_any_fact_has_keys_even_one_that_was_never_checked(kind, payload):
    for name in ("x", "", None, 7):
        assert correlations_of(Fact(kind, name, payload, "s", "1", 0))
