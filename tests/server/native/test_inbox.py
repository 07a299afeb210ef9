"""Who waits, as a list: of one owner, by age or by deadline, page after page; and one wait with all that is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.server.native.world import Office, World


def ids(client: Any, **query: Any) -> list[str]:
    """The threads of those who wait, in the order of the list."""
    told = client.get("/waits", params=query)
    assert told.status_code == 200, told.text
    return [wait["thread_id"] for wait in told.json()["waits"]]


@pytest.fixture
def crowded(world: World) -> World:
    for name, said in (
        ("late", {"timeout": "3d", "assignees": ["ada"]}),
        ("never", {"tags": ["money"]}),
        ("soon", {"timeout": "1h", "assignees": ["ada", "bob"]}),
    ):
        world.ask("pay", name, **said)
        world.clock.advance("1m")
    world.ask("question", "asked")
    return world


def test_those_who_wait_longest_come_first(crowded: World):
    assert ids(crowded.client) == ["late", "never", "soon", "asked"]


def test_by_deadline_those_without_one_come_last(crowded: World):
    assert ids(crowded.client, sort="deadline") == ["soon", "late", "never", "asked"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "approval"}, ["late", "never", "soon"]),
        ({"kind": "question"}, ["asked"]),
        ({"graph": "question"}, ["asked"]),
        ({"assignee": "bob"}, ["soon"]),
        ({"tag": "money"}, ["never"]),
        ({"thread_id": "late"}, ["late"]),
        ({"thread_id": "nowhere"}, []),
        ({"overdue": True}, []),
    ],
)
def test_list_is_filtered(crowded: World, query, found):
    assert ids(crowded.client, **query) == found


@pytest.mark.parametrize("sort", ["age", "deadline"])
def test_those_due_before_an_instant_are_found(crowded: World, sort):
    tomorrow = (crowded.clock.moment + timedelta(days=1)).isoformat()

    assert ids(crowded.client, due_before=tomorrow, sort=sort) == ["soon"]


def test_deadline_that_has_passed_and_that_nobody_has_seen_to_is_overdue(crowded: World):
    crowded.clock.advance("2h")

    assert ids(crowded.client, overdue=True) == ["soon"]


@pytest.mark.parametrize("sort", ["age", "deadline"])
@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("kind", [None, "approval"])
def test_pages_hold_everybody_once(crowded: World, sort, limit, kind):
    query = {"sort": sort, **({} if kind is None else {"kind": kind})}
    whole = ids(crowded.client, **query)
    found: list[str] = []
    after: str | None = None
    while True:
        place = {} if after is None else {"after": after}
        page = crowded.client.get("/waits", params={**query, "limit": limit, **place}).json()
        found += [wait["thread_id"] for wait in page["waits"]]
        after = page["after"]
        if after is None:
            break
        assert len(page["waits"]) == limit

    assert found == whole


def test_pages_go_on_where_the_last_one_ended_also_when_its_wait_is_settled_since(crowded: World):
    first = crowded.client.get("/waits", params={"limit": 2}).json()
    for wait in first["waits"]:
        crowded.answer(wait["id"], "approve")

    assert ids(crowded.client, after=first["after"]) == ["soon", "asked"]


@pytest.mark.parametrize(
    "query", [{"after": "nonsense"}, {"sort": "name"}, {"limit": 0}, {"limit": 501}, {"knid": "x"}]
)
def test_query_that_cannot_be_meant_is_refused(world: World, query):
    assert world.client.get("/waits", params=query).status_code == 422


def test_place_in_one_list_is_none_in_another(crowded: World):
    by_age = crowded.client.get("/waits", params={"limit": 1}).json()["after"]

    assert crowded.client.get("/waits", params={"after": by_age, "sort": "deadline"}).status_code == 422


@pytest.mark.complaint(25)
def test_inbox_holds_the_owners_waits_alone(office: Office):
    office.ask("pay", "ours", owner="acme")
    office.ask("pay", "theirs", owner="other")

    assert ids(office.ada) == ["ours"]
    assert ids(office.mallory) == ["theirs"]
    assert ids(office.mallory, thread_id="ours") == []
    assert ids(office.mallory, sort="deadline") == ["theirs"]


def test_wait_is_shown_with_all_that_is_known_of_it(world: World):
    wait_id = world.ask("reply")

    told = world.client.get(f"/waits/{wait_id}").json()

    assert told["kind"] == "any_of"
    assert told["status"] == "open"
    assert "an e-mail from ada@example.org" in told["waiting_for"]
    assert [(part["leaf"], part["kind"], part["is_open"]) for part in told["parts"]] == [
        ("email", "email", True),
        ("boss", "approval", True),
    ]
    assert told["interrupt"]["value"]["action_requests"][0]["name"] == "Close it?"
    assert told["answer_schema"]["enum"] == ["approve", "reject"]
    assert told["resolution"] is None


def test_settled_wait_tells_who_settled_it(world: World):
    wait_id = world.ask("pay")
    world.answer(wait_id, "approve")

    told = world.client.get(f"/waits/{wait_id}").json()

    assert told["status"] == "answered"
    assert told["resolution"]["by"] == "anonymous"
    assert told["parts"][0]["value"] == "approve"


def test_wait_says_why_it_still_waits(world: World):
    wait_id = world.ask("paid")
    world.client.post("/deliveries", json={"name": "paid", "payload": {"order": 8}})

    told = world.client.get(f"/waits/{wait_id}/explain").json()

    assert "the event 'paid'" in told["summary"]
    assert [verdict["fits"] for verdict in told["verdicts"]] == [False]
