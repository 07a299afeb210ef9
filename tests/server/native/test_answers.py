"""Answering a wait over HTTP: once, truthfully, and with every attempt in the audit log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.native.world import Office, World


def test_answer_lets_the_thread_go_on_with_it(world: World):
    wait_id = world.ask("pay")

    told = world.answer(wait_id, "approve")

    assert told.status_code == 200
    assert told.json()["status"] == "resumed"
    assert told.json()["thread_id"] == "t"
    assert told.json()["resolution"]["via"] == "api"
    assert world.answer_of() == "approve"


@pytest.mark.requirement("Z1-08")
def test_whoever_is_late_is_told_who_was_first(office: Office):
    wait_id = office.ask("pay", owner="acme")
    first = office.ada.post(f"/waits/{wait_id}/answer", json={"value": "approve"})

    late = office.bob.post(f"/waits/{wait_id}/answer", json={"value": "reject"})

    assert late.status_code == 409
    assert late.json()["status"] == "answered"
    assert late.json()["resolution"]["by"] == first.json()["resolution"]["by"]
    assert late.json()["resolution"]["via"] == "api"
    assert office.answer_of() == "approve"


def test_same_answer_by_the_same_caller_again_is_told_what_came_of_the_first(office: Office):
    wait_id = office.ask("pay", owner="acme")
    first = office.ada.post(f"/waits/{wait_id}/answer", json={"value": "approve"}).json()

    again = office.ada.post(f"/waits/{wait_id}/answer", json={"value": "approve"})
    by_another = office.bob.post(f"/waits/{wait_id}/answer", json={"value": "approve"})

    assert again.status_code == 200
    assert again.json() == {**first, "status": "already_resolved"}
    assert by_another.status_code == 409


@pytest.mark.parametrize("in_header", [True, False])
def test_same_key_is_told_what_came_of_the_first_but_only_to_its_own_caller(office: Office, in_header: bool):
    wait_id = office.ask("question", owner="acme")
    address = f"/waits/{wait_id}/answer"
    headers = {"idempotency-key": "k-1"} if in_header else {}
    body = {} if in_header else {"idempotency_key": "k-1"}
    office.ada.post(address, json={"value": 1, **body}, headers=headers)

    again = office.ada.post(address, json={"value": 2, **body}, headers=headers)
    by_another = office.bob.post(address, json={"value": 2, **body}, headers=headers)

    assert (again.status_code, again.json()["status"]) == (200, "already_resolved")
    assert by_another.status_code == 409
    assert office.answer_of() == 1


def test_answer_that_does_not_fit_is_refused_with_its_places_and_the_wait_stays_open(world: World):
    wait_id = world.ask("form")

    told = world.answer(wait_id, {"decision": "approve", "form": {"amount": "much", "note": 3}})

    assert told.status_code == 422
    assert {one["pointer"] for one in told.json()["problems"]} == {"/form/amount", "/form/note"}
    assert world.client.get(f"/waits/{wait_id}").json()["status"] == "open"
    assert world.answer(wait_id, {"decision": "approve", "form": {"amount": 3}}).status_code == 200


def test_answer_after_the_deadline_is_gone(world: World):
    wait_id = world.ask("number")
    world.clock.advance("2h")

    told = world.answer(wait_id, 7)

    assert told.status_code == 410
    assert told.json()["status"] == "expired"
    assert world.answer_of() == 0


def test_answer_that_is_too_large_is_refused_before_anybody_looks_at_it(world: World):
    wait_id = world.ask("question")

    told = world.answer(wait_id, "x" * 20_000)

    assert told.status_code == 413
    assert world.client.get(f"/waits/{wait_id}").json()["status"] == "open"


def test_decisions_count_one_by_one_and_each_stands(world: World):
    wait_id = world.ask("both")

    without_name = world.answer(wait_id, "approve")
    unknown = world.answer(wait_id, "approve", leaf="eve")
    first = world.answer(wait_id, "approve", leaf="ada")
    again = world.answer(wait_id, "approve", leaf="ada")
    otherwise = world.answer(wait_id, "reject", leaf="ada")
    parts = world.client.get(f"/waits/{wait_id}").json()["parts"]
    last = world.answer(wait_id, False, leaf="bob")

    assert without_name.status_code == 422
    assert unknown.status_code == 404
    assert [first.json()["status"], again.json()["status"]] == ["counted", "already_counted"]
    assert otherwise.status_code == 409
    assert [(part["leaf"], part["is_open"]) for part in parts] == [("ada", False), ("bob", True)]
    assert last.json()["status"] == "resumed"
    assert world.answer_of() == {"ada": "approve", "bob": "reject"}


def test_same_decision_again_after_the_last_one_is_told_what_came_of_it(world: World):
    wait_id = world.ask("both")
    world.answer(wait_id, "approve", leaf="ada")
    world.answer(wait_id, "approve", leaf="bob")

    again = world.answer(wait_id, "approve", leaf="ada")
    otherwise = world.answer(wait_id, "reject", leaf="ada")

    assert (again.status_code, again.json()["status"]) == (200, "already_resolved")
    assert otherwise.status_code == 409


@pytest.mark.parametrize(
    "answer",
    [[{"type": "accept", "args": None}], {"decisions": [{"type": "approve"}]}, True, {"approved": True}, "Approve"],
)
def test_answers_of_other_inboxes_are_understood(world: World, answer):
    wait_id = world.ask("pay")

    assert world.answer(wait_id, answer).json()["status"] == "resumed"
    assert world.answer_of() == "approve"


def test_resolve_is_another_name_for_answer(world: World):
    wait_id = world.ask("pay")

    told = world.client.post(f"/waits/{wait_id}/resolve", json={"value": "approve"})

    assert told.json()["status"] == "resumed"


def test_no_is_said_with_a_message_that_the_node_hears_and_that_is_audited(world: World):
    wait_id = world.ask("pay")

    told = world.client.post(f"/waits/{wait_id}/reject", json={"message": "too dear"})

    assert told.json()["status"] == "resumed"
    assert world.answer_of() == "reject"
    assert world.app.wait(wait_id).answer.comment == "too dear"
    (line,) = world.store.audit_entries("", subject=wait_id)
    assert (line.action, line.outcome, line.details["comment"]) == ("wait.reject", "resumed", "too dear")


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/waits/{wait_id}/answer", {"value": "reject", "comment": "too dear"}),
        ("/waits/{wait_id}/answer", {"value": {"decisions": [{"type": "reject", "message": "too dear"}]}}),
        ("/waits/{wait_id}/answer", {"value": [{"type": "response", "args": "too dear"}]}),
        ("/threads/t/resume", {"value": "reject", "comment": "too dear"}),
        ("/threads/t/resume", {"value": {"approved": False, "reason": "too dear"}}),
    ],
)
def test_what_is_said_beside_a_decision_is_shown_and_in_the_log(world: World, address: str, body: dict[str, Any]):
    wait_id = world.ask("pay")

    world.client.post(address.format(wait_id=wait_id), json=body)

    (part,) = world.client.get(f"/waits/{wait_id}").json()["parts"]
    assert (part["value"], part["comment"]) == ("reject", "too dear")
    assert world.answer_of() == "reject"
    told = [event.data["text"] for event in world.app.follow("t") if event.kind == "wait.commented"]
    assert told == ["too dear"]
    (line,) = world.store.audit_entries("", subject=wait_id)
    assert line.details["comment"] == "too dear"


def test_comment_that_is_too_long_is_refused_and_the_wait_stays_open(world: World):
    wait_id = world.ask("pay")

    told = world.answer(wait_id, "reject", comment="x" * 4001)

    assert told.status_code == 422
    assert world.app.wait(wait_id).status == "open"


def test_no_cannot_be_said_where_nothing_is_to_be_decided(world: World):
    wait_id = world.ask("question")

    told = world.client.post(f"/waits/{wait_id}/reject")

    assert told.status_code == 422
    assert "cancel" in told.json()["detail"]


def test_message_of_a_no_goes_where_the_form_asks_for_one(world: World):
    wait_id = world.ask("form")

    world.client.post(f"/waits/{wait_id}/reject", json={"message": "too dear"})

    said = world.answer_of()
    assert said == {"decision": "reject", "form": {"amount": 120, "note": "too dear"}}


def test_every_attempt_is_in_the_audit_log_with_who_made_it(office: Office):
    wait_id = office.ask("pay", owner="acme")
    address = f"/waits/{wait_id}/answer"
    for value in ("perhaps", "approve", "approve"):
        office.ada.post(address, json={"value": value})
    office.bob.post(address, json={"value": "reject"})

    lines = list(reversed(office.store.audit_entries("acme", subject=wait_id)))

    assert [line.outcome for line in lines] == ["refused", "resumed", "duplicate", "late"]
    assert [line.actor for line in lines][:3] == [lines[0].actor] * 3
    assert lines[3].actor != lines[0].actor
    assert all(line.thread_id == "t" for line in lines)


def test_answer_to_a_wait_that_has_changed_since_it_was_read_is_refused(world: World):
    wait_id = world.ask("pay", timeout="2h")
    seen = world.client.get(f"/waits/{wait_id}").headers["etag"]
    world.client.post(f"/waits/{wait_id}/extend", json={"timeout": "1d"})

    stale = world.client.post(f"/waits/{wait_id}/answer", json={"value": "approve"}, headers={"if-match": seen})
    now = world.client.get(f"/waits/{wait_id}").headers["etag"]
    fresh = world.client.post(f"/waits/{wait_id}/answer", json={"value": "approve"}, headers={"if-match": now})

    assert stale.status_code == 412
    assert fresh.status_code == 200


def test_answer_needs_the_scope_to_answer(office: Office):
    wait_id = office.ask("pay", owner="acme")
    reader = office.person("reader", "acme", "read")

    told = reader.post(f"/waits/{wait_id}/answer", json={"value": "approve"})

    assert told.status_code == 403
    assert office.app.wait(wait_id).status == "open"


@pytest.mark.parametrize("body", ["{}", "[]", '{"value": 1, "valeu": 2}', '{"value": 1', "\xff"])
def test_body_that_is_no_answer_is_refused_and_never_a_failure(world: World, body: str):
    wait_id = world.ask("question")

    told = world.client.post(
        f"/waits/{wait_id}/answer", content=body.encode("latin-1"), headers={"content-type": "application/json"}
    )

    assert told.status_code in (400, 422)
    assert world.client.get(f"/waits/{wait_id}").json()["status"] == "open"
