"""What else can be done to a wait: withdrawing it, giving it more time, asking others, putting it aside."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.server.native.world import Office, World


def test_question_may_be_withdrawn(world: World):
    wait_id = world.ask("question")

    told = world.client.post(f"/waits/{wait_id}/cancel", json={"reason": "not needed"})

    assert told.status_code == 200
    assert told.json()["status"] == "cancelled"
    assert told.json()["resolution"]["by"] == "anonymous"
    world.settle()
    assert world.app.get("t").status == "failed", "its node did not catch it"


def test_wait_may_be_given_more_time_until_an_instant_or_for_ever(world: World):
    wait_id = world.ask("number")
    address = f"/waits/{wait_id}/extend"

    longer = world.client.post(address, json={"timeout": "3d"}).json()
    until = (world.clock.moment + timedelta(days=9)).isoformat()
    later = world.client.post(address, json={"until": until}).json()
    never = world.client.post(address, json={}).json()

    assert longer["deadline"] == (world.clock.moment + timedelta(days=3)).isoformat().replace("+00:00", "Z")
    assert later["deadline"] == until.replace("+00:00", "Z")
    assert never["deadline"] is None
    world.clock.advance("20d")
    world.settle()
    assert world.app.wait(wait_id).status == "open"


@pytest.mark.parametrize(
    "body", [{"timeout": "1h", "until": "2026-01-01T00:00:00Z"}, {"timeout": "soon"}, {"timeout": -1}]
)
def test_deadline_that_cannot_be_meant_is_refused(world: World, body):
    wait_id = world.ask("number")

    assert world.client.post(f"/waits/{wait_id}/extend", json=body).status_code == 422


def test_others_may_be_asked(world: World):
    wait_id = world.ask("pay", assignees=["ada"])

    told = world.client.post(f"/waits/{wait_id}/reassign", json={"assignees": ["bob"]})

    assert told.json()["assignees"] == ["bob"]
    assert world.client.get("/waits", params={"assignee": "ada"}).json()["waits"] == []


def test_wait_that_is_put_aside_comes_back_by_itself_and_tells_so(world: World):
    wait_id = world.ask("pay", timeout="1d")

    told = world.client.post(f"/waits/{wait_id}/snooze", json={"duration": "2h"}).json()
    hidden = world.client.get("/waits").json()["waits"]
    asked_for = world.client.get("/waits", params={"snoozed": True}).json()["waits"]
    world.clock.advance("2h")
    world.settle()
    back = world.client.get("/waits").json()["waits"]

    assert told["snoozed_until"] is not None
    assert hidden == []
    assert [wait["id"] for wait in asked_for] == [wait["id"] for wait in back] == [wait_id]
    kinds = [event.kind for event in world.store.events("t")]
    assert kinds.count("wait.snoozed") == kinds.count("wait.reminded") == 1


def test_reminders_are_quiet_while_a_wait_is_put_aside_and_go_on_then(world: World):
    wait_id = world.ask("pay", remind_every="1h")
    world.client.post(f"/waits/{wait_id}/snooze", json={"duration": "5h"})

    world.clock.advance("4h")
    world.settle()
    quiet = [event.kind for event in world.store.events("t")].count("wait.reminded")
    for _ in range(3):
        world.clock.advance("1h")
        world.settle()

    assert quiet == 0
    assert [event.kind for event in world.store.events("t")].count("wait.reminded") == 3


def test_wait_that_is_put_aside_still_runs_out(world: World):
    wait_id = world.ask("number")
    world.client.post(f"/waits/{wait_id}/snooze", json={"duration": "5d"})

    world.clock.advance("2h")
    world.settle()

    assert world.app.wait(wait_id).status == "expired"


def test_wait_that_was_put_aside_may_be_taken_up_again_at_once(world: World):
    wait_id = world.ask("pay")
    world.client.post(f"/waits/{wait_id}/snooze", json={"duration": "5h"})

    told = world.client.post(f"/waits/{wait_id}/snooze", json={}).json()

    assert told["snoozed_until"] is None
    assert len(world.client.get("/waits").json()["waits"]) == 1


@pytest.mark.parametrize(
    ("change", "body"),
    [("cancel", {}), ("extend", {"timeout": "1h"}), ("reassign", {"assignees": ["bob"]}), ("snooze", {"duration": 60})],
)
def test_settled_wait_cannot_be_changed_and_says_who_settled_it(world: World, change, body):
    wait_id = world.ask("pay")
    world.answer(wait_id, "approve")

    told = world.client.post(f"/waits/{wait_id}/{change}", json=body)

    assert told.status_code == 409
    assert told.json()["status"] == "answered"
    assert told.json()["resolution"]["by"] == "anonymous"


@pytest.mark.parametrize(
    ("change", "body"),
    [("cancel", {}), ("extend", {"timeout": "1h"}), ("reassign", {"assignees": ["bob"]}), ("snooze", {"duration": 60})],
)
def test_changes_are_made_only_to_the_version_that_was_seen_and_are_audited(world: World, change, body):
    wait_id = world.ask("pay", timeout="1d")
    address = f"/waits/{wait_id}/{change}"
    seen = world.client.get(f"/waits/{wait_id}").json()["version"]

    stale = world.client.post(address, json=body, headers={"if-match": '"0123456789abcdef"'})
    done = world.client.post(address, json=body, headers={"if-match": f'"{seen}"'})

    assert stale.status_code == 412
    assert done.status_code == 200
    lines = world.store.audit_entries("", subject=wait_id)
    assert [(line.action, line.outcome) for line in lines] == [(f"wait.{change}", "accepted")]


def test_changes_need_the_scope_to_answer(office: Office):
    wait_id = office.ask("pay", owner="acme")
    reader = office.person("reader", "acme", "read")

    for change, body in (("cancel", {}), ("extend", {}), ("reassign", {"assignees": []}), ("snooze", {})):
        assert reader.post(f"/waits/{wait_id}/{change}", json=body).status_code == 403
