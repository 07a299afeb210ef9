"""Whether a fact is what a leaf waits for, and what is told about it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.waits import (
    Fact,
    Match,
    after,
    any_of,
    approval,
    child,
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
from bide.waits.criteria import same
from tests.waits.strategies import VALUES, facts, leaf_conditions


def mail(mailbox="sales", **parts):
    return email_fact(mailbox, received_at=0, **parts)


def judged(condition, fact) -> Match:
    return match(to_plain(condition), fact)


REPLY = mail(
    from_="Ann Example <Ann@Example.org>",
    to=["Sales <sales@example.com>", "boss@example.com"],
    cc="ben@example.com",
    subject="RE: Your  quote",
    body="Yes, we take it.\n\nAnn\n",
    in_reply_to="<q-17@example.com>",
    references="<q-1@example.com> <q-17@example.com>",
)


# --- mails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        email(from_="ann@example.org"),
        email(from_="ANN@EXAMPLE.ORG"),
        email(from_="*@example.org"),
        email(from_="Somebody Else <ann@example.org>"),
        email(from_=regex(r"^ann@example\.(org|net)$")),
        email(from_=regex(r"ANN@")),
        email(to="sales@example.com"),
        email(to="*@example.com"),
        email(to="ben@example.com"),
        email(subject="Re: *"),
        email(subject="re: your quote"),
        email(subject=regex("(?i)quote$")),
        email(body="yes*ann"),
        email(body=regex("we take it")),
        email(in_reply_to="<q-17@example.com>"),
        email(in_reply_to="q-1@example.com"),
        email(subject="*", mailbox="SALES"),
        email(from_="ann@*", to="sales@*", subject="*quote*", body="*take it*", in_reply_to="<q-17@example.com>"),
    ],
    ids=repr,
)
def test_a_mail_that_is_waited_for_fits(condition):
    fits, reasons = judged(condition, REPLY)

    assert fits, reasons


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (email(from_="ben@example.org"), "from 'ann@example.org' does not match the pattern 'ben@example.org'"),
        (email(from_="A?n@example.com"), None),
        (email(from_=regex("Example <")), None),
        (email(to="ann@example.org"), "'boss@example.com', 'ben@example.com' does not match"),
        (email(subject="Quote*"), "subject 'RE: Your  quote' does not match the pattern 'Quote*'"),
        (email(subject=regex("quote!")), "does not fit the regular expression 'quote!'"),
        (email(body="take it"), "body"),
        (email(in_reply_to="<q-2@example.com>"), "neither in_reply_to nor references names the mail 'q-2@example.com'"),
        (email(in_reply_to="<Q-17@example.com>"), "neither"),
        (email(subject="*", mailbox="support"), "the mailbox is 'sales', not 'support'"),
    ],
    ids=repr,
)
def test_another_mail_does_not_fit_and_the_reason_is_told(condition, reason):
    fits, reasons = judged(condition, REPLY)

    assert not fits
    assert any((reason or "does not match") in told for told in reasons)


def test_every_criterion_is_told_also_after_one_has_failed():
    fits, reasons = judged(email(from_="ben@*", subject="Re: *", body="*no*"), REPLY)

    assert not fits
    assert reasons[0].startswith("from 'ann@example.org' does not match")
    assert reasons[1] == "subject 'RE: Your  quote' matches the pattern 'Re: *'"
    assert reasons[2].startswith("body 'Yes, we take it.")


@pytest.mark.parametrize(
    "sender",
    [
        '"ann@example.org" <evil@example.net>',
        "ann@example.org <evil@example.net>",
        "evil@example.net (ann@example.org)",
        "ann@example.org, evil@example.net",
        "Ann <ann@example.org>, evil@example.net",
        "ann@example.org\n <evil@example.net>",
        "\u212aann@example.org",
        "ann@example.org.evil.net",
        "ann@example.org@evil.net",
        "xann@example.org",
    ],
)
def test_nobody_passes_for_somebody_else(sender):
    assert not judged(email(from_="ann@example.org"), mail(from_=sender)).fits


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"from": None, "to": None, "subject": None, "body": None, "in_reply_to": None, "references": None},
        {"from": 7, "to": 7, "subject": 7, "body": 7, "in_reply_to": 7, "references": 7},
        {"from": [], "to": [], "subject": [], "body": [], "in_reply_to": [], "references": []},
        {"from": {}, "to": {}, "subject": {}, "body": {}, "in_reply_to": {}, "references": {}},
        {
            "from": "a@x" * 9999,
            "to": "a@x" * 9999,
            "subject": "a" * 10_001,
            "body": "a" * 100_001,
            "references": "a" * 10**6,
        },
        None,
        "a mail",
        [],
        7,
    ],
    ids=lambda payload: repr(payload)[:40],
)
@pytest.mark.parametrize(
    "condition",
    [
        email(from_="*"),
        email(to="*"),
        email(subject="*"),
        email(body="*"),
        email(in_reply_to="a"),
        *(email(**{part: regex("")}) for part in ("from_", "to", "subject", "body")),
    ],
    ids=lambda condition: repr(condition)[:60],
)
def test_what_a_mail_lacks_or_has_too_much_of_does_not_fit(condition, payload):
    fits, reasons = judged(condition, Fact("email", "sales", payload, "s", "1", 0))

    assert not fits
    assert len(reasons) == 1


def test_a_text_from_outside_is_waited_for_as_it_is():
    hostile = "*"

    assert judged(email(subject=hostile), mail(subject="anything")).fits
    assert not judged(email(subject=literal(hostile)), mail(subject="anything")).fits
    assert judged(email(subject=literal(hostile)), mail(subject="*")).fits


def test_of_many_references_the_newest_count():
    many = [f"<{number}@x>" for number in range(200)]

    assert judged(email(in_reply_to="<199@x>"), mail(references=many)).fits
    assert judged(email(in_reply_to="<150@x>"), mail(references=" ".join(many))).fits
    assert not judged(email(in_reply_to="<149@x>"), mail(references=many)).fits


# --- events and webhooks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "payload"),
    [
        (None, None),
        (None, {"a": 1}),
        ({}, {}),
        ({}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": None}, {"a": None}),
        ({"a": {"b": {"c": "x"}}}, {"a": {"b": {"c": "x", "d": 1}, "e": 2}}),
        ({"a": {}}, {"a": {"b": 1}}),
        ({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2}]}),
        ({"a": one_of("x", "y")}, {"a": "y"}),
        ({"a": one_of([1], None)}, {"a": None}),
        ({"a": regex("[0-9]+")}, {"a": "order 17"}),
        ({"a": {"b": regex("^x")}}, {"a": {"b": "xyz"}}),
    ],
)
def test_a_payload_that_holds_what_is_asked_for_fits(wanted, payload):
    for condition, fact in _both(wanted, payload):
        fits, reasons = judged(condition, fact)

        assert fits, reasons


@pytest.mark.parametrize(
    ("wanted", "payload", "reason"),
    [
        ({"a": 1}, {}, "payload.a is missing"),
        ({"a": None}, {}, "payload.a is missing"),
        ({"a": 1}, {"a": 2}, "payload.a is 2, not 1"),
        ({"a": 1}, {"a": True}, "payload.a is true, not 1"),
        ({"a": 1}, {"a": "1"}, "payload.a is '1', not 1"),
        ({"a": True}, {"a": 1}, "payload.a is 1, not true"),
        ({"a": False}, {"a": 0}, "payload.a is 0, not false"),
        ({"a": None}, {"a": False}, "payload.a is false, not null"),
        ({"a": ""}, {"a": None}, "payload.a is null, not ''"),
        ({"a": [1]}, {"a": [1, 2]}, "payload.a is [1, 2], not [1]"),
        ({"a": [1]}, {"a": [True]}, "payload.a"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, "payload.a"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "payload.a.b is 2, not 1"),
        ({"a": {"b": 1}}, {"a": [1]}, "payload.a is [1], not an object"),
        ({"a": {}}, {"a": None}, "payload.a is null, not an object"),
        ({"a b": 1}, {"a b": 2}, "payload['a b'] is 2, not 1"),
        ({"a": one_of(1, 2)}, {"a": True}, "payload.a is true, none of 1, 2"),
        ({"a": regex("x")}, {"a": 7}, "payload.a is 7, and a regular expression needs a text"),
        ({"a": regex("x")}, {"a": "y"}, "payload.a 'y' does not fit the regular expression 'x'"),
        ({"a": regex("x")}, {"a": "x" * 200_000}, "more than the 100000 that are searched"),
        ({}, None, "payload is null, not an object"),
        ({}, [], "payload is [], not an object"),
        ({"a": 1}, "a", "payload is 'a', not an object"),
    ],
)
def test_a_payload_that_lacks_what_is_asked_for_does_not_fit(wanted, payload, reason):
    for condition, fact in _both(wanted, payload):
        fits, reasons = judged(condition, fact)

        assert not fits
        assert any(reason in told for told in reasons), reasons


def _both(wanted, payload):
    yield event("paid", match=wanted), event_fact("paid", payload, received_at=0)
    yield webhook("paid", match=wanted), webhook_fact("paid", payload, received_at=0)


def test_a_webhook_must_fit_its_schema_and_its_match():
    condition = webhook(
        "paid", schema={"properties": {"sum": {"type": "number"}}, "required": ["sum"]}, match={"ok": True}
    )

    assert judged(condition, webhook_fact("paid", {"sum": 1, "ok": True}, received_at=0)) == Match(
        True, ("the webhook is 'paid'", "the payload fits the schema", "payload.ok is true")
    )
    assert judged(condition, webhook_fact("paid", {"sum": "1", "ok": True}, received_at=0)).reasons == (
        "the webhook is 'paid'",
        "payload.sum: expected a number, got '1'",
        "payload.ok is true",
    )
    assert not judged(condition, webhook_fact("paid", {"sum": 1}, received_at=0)).fits


@pytest.mark.parametrize("make", [event, webhook])
def test_names_are_equal_or_they_are_not(make):
    plain = to_plain(make("paid"))

    for name in ("Paid", "paid ", "pai", "*", ""):
        assert not match(plain, Fact(make.__name__, name, None, "s", "1", 0)).fits


def test_a_child_is_waited_for_by_its_thread():
    assert judged(child("t-1"), Fact("child", "t-1", None, "s", "1", 0)) == Match(True, ("the thread is 't-1'",))
    assert judged(child("t-1"), Fact("child", "t-2", None, "s", "1", 0)).reasons == ("the thread is 't-2', not 't-1'",)


@pytest.mark.parametrize("condition", [after("1h"), approval(), any_of(event("paid")), webhook("paid"), child("paid")])
def test_no_fact_is_what_something_of_another_kind_waits_for(condition):
    fits, (reason,) = judged(condition, event_fact("paid", received_at=0))

    assert not fits
    assert reason.endswith("and the fact an event")


# --- whatever comes ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(leaf_conditions(), facts())
def test_whatever_comes_there_is_a_verdict_with_reasons(condition, fact):
    fits, reasons = judged(condition, fact)

    assert isinstance(fits, bool)
    assert reasons
    assert all(isinstance(reason, str) and len(reason) < 2000 for reason in reasons)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.data())
def test_a_payload_holds_every_part_of_itself(payload, data):
    part = data.draw(st.sets(st.sampled_from(sorted(payload)))) if payload else set()

    assert judged(
        event("paid", match={key: payload[key] for key in part}), event_fact("paid", payload, received_at=0)
    ).fits


@settings(deadline=None)
@given(VALUES, VALUES)
def test_values_are_equal_exactly_when_json_says_so(one, other):
    assert same(one, one)
    assert same(one, other) == same(other, one) == (_canonical(one) == _canonical(other))


def _canonical(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    if isinstance(value, int | float):
        return "number", value
    if isinstance(value, list):
        return "list", [_canonical(item) for item in value]
    return "dict", {key: _canonical(item) for key, item in value.items()}
