"""One address for a whole conversation: what is sent starts it, answers what it asks, or is its next turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from bide import Bide, Store
from bide.server import Settings, create_app
from examples import order_api
from tests.server.graphs import chat
from tests.server.native.world import Office, World, graphs


@pytest.fixture
def app(store: Store) -> Iterator[Bide]:
    made = Bide(store, [*graphs(), chat(), order_api.graph])
    with made.worker(poll=0.05):
        yield made


@pytest.fixture
def client(app: Bide) -> Iterator[TestClient]:
    with TestClient(create_app(app, Settings(worker=False))) as made:
        yield made


# ── The order ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("L4-11", "L4-12", "Z0-28")
@pytest.mark.parametrize(
    ("said", "message", "last"),
    [("pay", "Your tea is on its way.", "warehouse"), ("cancel", "Nothing was charged.", "payment")],
)
def test_order_is_placed_and_paid_for_or_not_by_two_requests_to_one_address(app, client, said, message, last):
    placed = client.post("/conversations/order-1", json={"graph": "order", "input": "tea"})
    settled = client.post("/conversations/order-1", json={"graph": "order", "input": said})

    assert (placed.status_code, placed.json()["status"]) == (200, "waiting")
    assert placed.json()["message"] == "One tea is 40 EUR. Shall we charge it?"
    assert placed.json()["values"]["price"] == 40
    assert (settled.status_code, settled.json()["status"]) == (200, "done")
    assert settled.json()["message"] == message
    steps = [event.data["nodes"] for event in app.follow("order-1") if event.kind == "step"]
    assert steps[-1] == [last]


@pytest.mark.requirement("L4-12")
def test_order_of_what_is_not_sold_ends_before_anybody_is_asked(client):
    told = client.post("/conversations/order-1", json={"graph": "order", "input": "the moon"}).json()

    assert told["status"] == "done"
    assert told["message"] == "We do not sell the moon."
    assert told["interrupts"] == []


@pytest.mark.requirement("L4-11")
def test_conversation_goes_on_over_another_server_and_days_later(store, app, clock):
    with TestClient(create_app(app, Settings(worker=False))) as first:
        first.post("/conversations/order-1", json={"graph": "order", "input": "tea"})
    clock.advance("3d")

    with TestClient(create_app(app, Settings(worker=False))) as second:
        told = second.post("/conversations/order-1", json={"input": "pay"}).json()

    assert told["message"] == "Your tea is on its way."


# ── Turns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_turn_of_a_chat_goes_to_the_same_thread(client):
    first = client.post("/conversations/c", json={"graph": "chat", "input": "hello"}).json()
    second = client.post("/conversations/c", json={"graph": "chat", "input": "again"}).json()

    assert first["message"] == "You said: hello"
    assert second["message"] == "You said: again"
    assert len(second["values"]["messages"]) == 4
    assert client.get("/conversations/c").json() == second


def test_failure_is_told_and_the_next_turn_tries_again(client):
    told = client.post("/conversations/c", json={"graph": "broken", "input": {}}).json()

    assert told["status"] == "failed"
    assert "the printer is on fire" in told["message"]
    assert client.post("/conversations/c", json={"input": {}}).json()["run_id"] != told["run_id"]


def test_answer_that_does_not_fit_is_refused_and_the_question_stays(client):
    client.post("/conversations/c", json={"graph": "number", "input": {}})

    refused = client.post("/conversations/c", json={"input": "many"})
    told = client.post("/conversations/c", json={"input": 7})

    assert refused.status_code == 422
    assert refused.json()["problems"][0]["pointer"] == ""
    assert told.json()["values"]["answer"] == 7


def test_same_key_is_one_turn_whatever_the_conversation_has_come_to_since(client):
    """The retry of what began it must not pass for the answer to what it asks."""
    body, headers = {"graph": "question", "input": {"given": 1}}, {"idempotency-key": "first"}
    began = client.post("/conversations/c", json=body, headers=headers).json()

    again = client.post("/conversations/c", json=body, headers=headers)

    assert again.status_code == 200
    assert again.json() == began
    client.post("/conversations/c", json={"input": 7}, headers={"idempotency-key": "second"})
    late = client.post("/conversations/c", json={"input": 7}, headers={"idempotency-key": "second"})
    assert (late.json()["status"], late.json()["values"]["answer"]) == ("done", 7)


# ── As it stands ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_does_not_wait_is_told_that_it_is_still_worked_on(world: World):
    told = world.client.post("/conversations/c", json={"graph": "question", "input": {}}, headers={"prefer": "wait=0"})

    assert (told.status_code, told.json()["status"]) == (202, "queued")
    world.settle()
    assert world.client.get("/conversations/c").json()["status"] == "waiting"


def test_turn_while_the_last_one_is_worked_on_is_refused_or_put_behind_it(world: World):
    now = {"prefer": "wait=0"}
    world.client.post("/conversations/c", json={"graph": "broken", "input": {}}, headers=now)

    refused = world.client.post("/conversations/c", json={"input": {}}, headers=now)
    put_behind = world.client.post("/conversations/c", json={"input": {}, "if_busy": "enqueue"}, headers=now)

    assert refused.status_code == 409
    assert put_behind.status_code == 202
    assert len(world.app.runs("c")) == 2


@pytest.mark.parametrize(("text", "ends"), [("teas " * 40, "teas tea…"), ("Which tea?", "Which tea?")])
def test_question_without_usual_words_is_told_as_one_sentence(world: World, text, ends):
    world.ask("free", "c", action=text)

    message = world.client.get("/conversations/c").json()["message"]

    assert message.startswith("Waits for an answer: ")
    assert message.endswith(ends)


@pytest.mark.parametrize(
    ("graph", "why"), [("paid", "nobody is asked anything"), ("both", "several questions are open")]
)
def test_thread_that_asks_nobody_or_several_is_not_answered_by_a_turn(world: World, graph, why):
    world.ask(graph, "c")

    told = world.client.post("/conversations/c", json={"input": "approve"})

    assert told.status_code == 409
    assert why in told.json()["detail"]
    assert told.json()["waits"][0]["wait_id"] == world.app.waits(thread_id="c")[0].id


@pytest.mark.parametrize(
    "body", [{"input": {}}, {"graph": "no such graph", "input": {}}, {"graph": "question", "inptu": 1}]
)
def test_conversation_with_nobody_is_refused_and_not_begun(world: World, body):
    told = world.client.post("/conversations/c", json=body)

    assert told.status_code == 422
    assert world.client.get("/conversations/c").status_code == 404


def test_conversation_with_one_is_not_gone_on_with_by_another(world: World):
    world.ask("question", "c")

    told = world.client.post("/conversations/c", json={"graph": "pay", "input": "approve"})

    assert told.status_code == 409
    assert world.app.waits(thread_id="c")[0].status == "open"


def test_conversation_of_another_owner_does_not_exist(office: Office):
    office.ask("question", "c", owner="acme")

    assert office.mallory.post("/conversations/c", json={"graph": "question", "input": 1}).status_code == 404
    assert office.mallory.get("/conversations/c").status_code == 404
    assert office.app.waits(thread_id="c")[0].status == "open"


def test_answer_needs_its_own_scope_also_here(office: Office):
    runner = office.person("runner", "acme", "run")
    office.ask("question", "c", owner="acme")

    assert runner.post("/conversations/c", json={"input": 1}).status_code == 403
