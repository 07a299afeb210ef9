"""Threads over HTTP: listing them, what happened in one, its picture, and ending, retrying and freeing one."""

from __future__ import annotations

import pytest

from bide import START, Bide, StateGraph, spawn, wait_for
from bide.waits import child
from tests.server.native.world import Office, State, World, graphs


def listed(client, **query):
    told = client.get("/threads", params=query)
    assert told.status_code == 200, told.text
    return [thread["thread_id"] for thread in told.json()["threads"]]


@pytest.fixture
def several(world: World) -> World:
    world.ask("question", "asks")
    world.clock.advance("1s")
    world.app.start("broken", {}, thread_id="fails", owner="")
    world.settle()
    world.clock.advance("1s")
    world.app.start("question", {}, thread_id="begins", owner="")
    return world


def test_threads_are_listed_newest_first_and_filtered(several: World):
    assert listed(several.client) == ["begins", "fails", "asks"]
    assert listed(several.client, status="waiting") == ["asks"]
    assert listed(several.client, status="failed") == ["fails"]
    assert listed(several.client, graph="question") == ["begins", "asks"]


def test_pages_hold_every_thread_once_also_when_the_last_one_seen_is_gone(several: World):
    first = several.client.get("/threads", params={"limit": 1}).json()
    several.store.delete_thread("begins")

    second = several.client.get("/threads", params={"limit": 5, "after": first["after"]}).json()

    assert [thread["thread_id"] for thread in second["threads"]] == ["fails", "asks"]
    assert second["after"] is None


@pytest.mark.parametrize("query", [{"status": "sleepy"}, {"after": "x"}, {"after": "\u00b2.asks"}, {"limit": 1000}])
def test_list_that_cannot_be_meant_is_refused(world: World, query):
    assert world.client.get("/threads", params=query).status_code == 422


def test_timeline_tells_lines_and_steps_in_order_and_goes_on_where_it_ended(world: World):
    wait_id = world.ask("question")
    first = world.client.get("/threads/t/timeline").json()
    world.answer(wait_id, 7)
    world.settle()

    rest = world.client.get("/threads/t/timeline", params={"since": first["since"]}).json()
    end = world.client.get("/threads/t/timeline", params={"since": rest["since"]}).json()

    kinds = [event["kind"] for event in first["events"]]
    assert kinds[0] == "run.ready"
    assert kinds[-1] == "run.waiting"
    assert "step" in kinds
    assert rest["events"][0]["kind"] == "wait.answered"
    assert rest["events"][-1]["kind"] == "run.done"
    assert (end["events"], end["is_at_end"], end["since"]) == ([], True, rest["since"])


def test_timeline_in_small_parts_is_the_whole_timeline(world: World):
    world.answer(world.ask("question"), 7)
    world.settle()
    whole = world.client.get("/threads/t/timeline").json()["events"]

    found, since = [], None
    while True:
        query = {"limit": 2, **({} if since is None else {"since": since})}
        part = world.client.get("/threads/t/timeline", params=query).json()
        found, since = found + part["events"], part["since"]
        if part["is_at_end"]:
            break

    assert found == whole


@pytest.mark.parametrize(
    ("since", "status"), [("nonsense", 422), ("1.1.ffffff", 404), ("999.999", 404), ("9" * 30 + ".1", 422)]
)
def test_place_that_is_none_of_this_threads_is_refused(world: World, since, status):
    world.ask("question")

    assert world.client.get("/threads/t/timeline", params={"since": since}).status_code == status


@pytest.mark.parametrize(
    ("format", "kind", "begins"),
    [
        ("svg", "image/svg+xml", b"<svg"),
        ("png", "image/png", b"\x89PNG"),
        ("mermaid", "text/plain", b""),
        ("ascii", "text/plain", b""),
    ],
)
def test_picture_shows_where_the_thread_stands(world: World, format, kind, begins):
    world.ask("question")

    told = world.client.get("/threads/t/picture", params={"format": format})

    assert told.status_code == 200
    assert told.headers["content-type"].startswith(kind)
    assert told.content.lstrip().startswith(begins)
    assert "sandbox" in told.headers["content-security-policy"]


# ── Doing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-30")
def test_cancelled_thread_asks_no_more_and_says_so(world: World):
    wait_id = world.ask("question")

    told = world.client.post("/threads/t/cancel", json={"reason": "the customer left"})
    again = world.client.post("/threads/t/cancel")
    late = world.answer(wait_id, 1)

    assert told.json() == {"thread_id": "t", "is_done": True, "status": "cancelled"}
    assert again.json() == {"thread_id": "t", "is_done": False, "status": "cancelled"}
    assert late.status_code == 409
    assert late.json()["status"] == "cancelled"
    assert world.client.get("/waits").json()["waits"] == []


def test_thread_that_failed_is_tried_again_and_one_that_is_done_is_not(world: World):
    world.app.start("broken", {}, thread_id="t", owner="")
    world.settle()
    world.answer(world.ask("question", "done"), 1)
    world.settle()

    told = world.client.post("/threads/t/retry")
    busy = world.client.post("/threads/t/retry")
    done = world.client.post("/threads/done/retry")

    assert told.json()["status"] == "ready"
    assert busy.status_code == 409
    assert done.status_code == 409


def test_thread_that_is_in_service_is_not_released(world: World):
    world.ask("question")

    assert world.client.post("/threads/t/release").json() == {"thread_id": "t", "is_done": False, "status": "waiting"}


def test_children_of_a_thread_are_listed(store, clock, world: World):
    def parent(state: State):
        wait_for(child(spawn("question", {})))

    graph = StateGraph(State).add_node("parent", parent).add_edge(START, "parent").compile(name="parent")
    app = Bide(store, [graph, *graphs()])
    app.start("parent", {}, thread_id="p", owner="")
    app.run_ready()

    told = world.client.get("/threads/p/children").json()["threads"]

    assert [thread["graph"] for thread in told] == ["question"]
    assert told[0]["parent"] == "p"
    assert listed(world.client, parent="p") == [told[0]["thread_id"]]


def test_threads_of_another_owner_do_not_exist(office: Office):
    office.ask("question", "ours", owner="acme")

    assert listed(office.mallory) == []
    assert office.mallory.get("/threads", params={"parent": "ours"}).status_code == 404
