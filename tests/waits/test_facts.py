"""Facts: what may be delivered, and what is refused before it is stored."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from bide.waits import ChildResult, DeliveryError, Fact, check_fact, child_fact, email_fact, event_fact, webhook_fact
from tests.waits.strategies import facts


def test_a_mail_is_known_by_its_message_id_within_its_mailbox():
    fact = email_fact("sales", received_at=5, from_="ann@example.org", subject="Hello", message_id="<1@example.org>")

    assert fact == Fact(
        kind="email",
        name="sales",
        payload={"from": "ann@example.org", "subject": "Hello", "message_id": "<1@example.org>"},
        source="email:sales",
        external_id="<1@example.org>",
        received_at=5,
    )


def test_an_event_a_webhook_and_a_child_say_where_they_come_from():
    assert event_fact("paid", {"a": 1}, received_at=5).source == "event:paid"
    assert webhook_fact("paid", [1], received_at=5, source="shop", external_id="7")[3:5] == ("shop", "7")
    assert child_fact(ChildResult("done", thread_id="t", run_id="r"), received_at=5)[:5:4] == ("child", "r")


@settings(deadline=None)
@given(facts())
def test_facts_of_every_kind_are_taken(fact):
    assert check_fact(fact) is fact


GOOD = Fact("event", "paid", {"a": 1}, "shop", "1", 0)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"kind": "time"}, "no facts of the kind"),
        ({"kind": None}, "no facts of the kind"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"source": None}, "source"),
        ({"source": "a\x00"}, "source"),
        ({"external_id": "x" * 2000}, "external_id"),
        ({"external_id": 7}, "external_id"),
        ({"received_at": 1.5}, "received_at"),
        ({"received_at": True}, "received_at"),
        ({"received_at": 10**30}, "received_at"),
        ({"payload": {1: 2}}, "the key 1"),
        ({"payload": {None: 2}}, "the key null"),
        ({"payload": float("nan")}, "nan"),
        ({"payload": [{"a": float("inf")}]}, "inf"),
        ({"payload": (1, 2)}, "tuple"),
        ({"payload": {"a": {1}}}, "set"),
        ({"payload": datetime(2026, 1, 1, tzinfo=UTC)}, "datetime"),
        ({"payload": {"a": b"x"}}, "bytes"),
        ({"payload": {str(number): 1 for number in range(1001)}}, "1001 keys at its top"),
        ({"kind": "email", "payload": "Hello"}, "A mail is a dict"),
    ],
)
def test_what_cannot_be_stored_or_matched_is_refused(wrong, why):
    with pytest.raises(DeliveryError, match=why):
        check_fact(GOOD._replace(**wrong))


def test_a_payload_that_nests_or_grows_without_end_is_refused():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    doubling: list[object] = [1]
    for _ in range(40):
        doubling = [doubling, doubling]
    endless: list[object] = []
    endless.append(endless)

    for payload, why in ((deep, "deeper"), (doubling, "more than"), (endless, "deeper")):
        with pytest.raises(DeliveryError, match=why):
            check_fact(GOOD._replace(payload=payload))
