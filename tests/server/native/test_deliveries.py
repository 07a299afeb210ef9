"""Facts over HTTP: bringing one, trying what one would do, and why one woke nobody."""

from __future__ import annotations

import pytest

from tests.server.native.world import Office, World

PAID = {"name": "paid", "payload": {"order": 7}}


def test_fact_wakes_whoever_waits_for_it(world: World):
    world.ask("paid")

    told = world.client.post("/deliveries", json=PAID).json()

    assert (told["status"], told["wakes"], told["threads"], told["is_new"]) == ("matched", 1, ["t"], True)
    assert world.answer_of() == {"order": 7}


def test_same_fact_again_changes_nothing_and_tells_what_came_of_the_first(world: World):
    world.ask("paid")
    body = {**PAID, "source": "shop", "external_id": "e-1"}
    first = world.client.post("/deliveries", json=body).json()

    again = world.client.post("/deliveries", json=body).json()

    assert again == {**first, "is_new": False, "threads": []}


def test_mail_wakes_by_its_sender(world: World):
    world.ask("reply")
    mail = {"from": "Ada <ada@example.org>", "subject": "Re: quote", "message_id": "<1@example.org>"}

    told = world.client.post("/deliveries", json={"name": "sales", "kind": "email", "payload": mail}).json()

    assert told["external_id"] == "<1@example.org>"
    assert world.answer_of() == "email"


def test_trial_tells_who_would_wake_and_why_not_and_stores_nothing(world: World):
    wait_id = world.ask("paid")

    fits = world.client.post("/deliveries?dry_run=true", json=PAID).json()
    does_not = world.client.post("/deliveries?dry_run=true", json={**PAID, "payload": {"order": 8}}).json()

    assert [(one["wait_id"], one["fits"]) for one in fits["explanation"]["verdicts"]] == [(wait_id, True)]
    assert [one["fits"] for one in does_not["explanation"]["verdicts"]] == [False]
    assert world.client.get("/deliveries").json()["deliveries"] == []


def test_fact_says_why_it_woke_nobody(world: World):
    world.ask("paid")
    brought = world.client.post("/deliveries", json={**PAID, "payload": {"order": 8}}).json()

    told = world.client.get(f"/deliveries/{brought['id']}").json()

    assert told["status"] == "unmatched"
    assert told["payload"] == {"order": 8}
    assert "fits none" in told["explanation"]["summary"]


def test_facts_are_listed_newest_first_page_after_page(world: World):
    world.ask("paid")
    for order in (1, 2, 7):
        world.client.post("/deliveries", json={**PAID, "payload": {"order": order}})

    first = world.client.get("/deliveries", params={"limit": 2}).json()
    second = world.client.get("/deliveries", params={"limit": 2, "after": first["after"]}).json()
    unmatched = world.client.get("/deliveries", params={"unmatched": True}).json()

    orders = [one["payload"]["order"] for page in (first, second, unmatched) for one in page["deliveries"]]
    assert orders == [7, 2, 1, 2, 1]
    assert second["after"] is None


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x", "kind": "child"}, {"name": "x\x00"}, {"name": "x", "kind": "email", "payload": 3}],
)
def test_what_is_no_fact_is_refused(world: World, body):
    assert world.client.post("/deliveries", json=body).status_code == 422


def test_facts_wake_and_are_seen_by_their_owner_alone(office: Office):
    office.ask("paid", owner="acme")

    theirs = office.mallory.post("/deliveries", json=PAID).json()
    trial = office.mallory.post("/deliveries?dry_run=true", json=PAID).json()
    named_like_a_wait = office.app.waits(thread_id="t")[0].id
    sneaky = office.mallory.post("/deliveries?dry_run=true", json={"name": named_like_a_wait}).json()

    assert theirs["wakes"] == 0
    assert trial["explanation"]["verdicts"] == []
    assert sneaky["explanation"]["verdicts"] == []
    assert office.ada.get(f"/deliveries/{theirs['id']}").status_code == 404
    assert office.ada.get("/deliveries").json()["deliveries"] == []
