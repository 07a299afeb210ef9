"""`POST /threads/{id}/resume`: whoever resumes a thread is told truthfully what came of it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from bide import Bide
from bide.server import Settings, create_app
from tests.server.native.world import Office, World, graphs


@pytest.mark.seed("test_durable_runs.py::test_resume_endpoint_resumes_waiting_run")
@pytest.mark.requirement("Z0-25", "Z0-31")
def test_paused_thread_is_resumed_with_what_was_sent_and_its_state_holds_it(world: World):
    wait_id = world.ask("question")

    told = world.client.post("/threads/t/resume", json={"value": {"approved": True, "user_notes": "Looks good"}})

    assert told.status_code == 200
    assert told.json()["status"] == "resumed"
    assert told.json()["wait_id"] == wait_id
    assert world.answer_of() == {"approved": True, "user_notes": "Looks good"}


@pytest.mark.requirement("Z0-25")
def test_thread_of_another_owner_does_not_exist(office: Office):
    office.ask("question", owner="acme")

    told = office.mallory.post("/threads/t/resume", json={"value": 1})
    unknown = office.mallory.post("/threads/nowhere/resume", json={"value": 1})

    assert told.status_code == unknown.status_code == 404
    assert told.json()["detail"].replace("'t'", "") == unknown.json()["detail"].replace("'nowhere'", "")
    assert office.app.waits(thread_id="t")[0].status == "open"


def _is_done(world: World) -> None:
    world.answer(world.ask("question"), 1)
    world.settle()


def _is_queued(world: World) -> None:
    world.app.start("question", {}, thread_id="t", owner="")


def _has_failed(world: World) -> None:
    world.app.start("broken", {}, thread_id="t", owner="")
    world.settle()


def _is_cancelled(world: World) -> None:
    world.ask("question")
    world.app.cancel("t")


@pytest.mark.seed("test_durable_runs.py::test_resume_endpoint_skips_non_waiting_run")
@pytest.mark.requirement("Z0-25", "Z0-26", "Z1-08")
@pytest.mark.parametrize(
    ("prepare", "status"),
    [
        (_is_done, "already_completed"),
        (_is_queued, "queued"),
        (_has_failed, "failed"),
        (_is_cancelled, "cancelled"),
    ],
)
def test_thread_that_is_not_paused_is_refused_with_how_it_truly_stands(world: World, prepare, status):
    prepare(world)

    told = world.client.post("/threads/t/resume", json={"value": 1})

    assert told.status_code == 400
    assert told.json()["error"] == "Thread is not paused"
    assert told.json()["status"] == status
    assert "Nothing was written" in told.json()["detail"]


def test_question_may_be_named_as_a_wait_or_as_an_interrupt(world: World):
    wait_id = world.ask("question")

    unknown = world.client.post("/threads/t/resume", json={"value": 1, "wait_id": "no-such-wait"})
    named = world.client.post("/threads/t/resume", json={"value": 1, "interrupt_id": wait_id})

    assert unknown.status_code == 404
    assert named.json()["status"] == "resumed"


def test_question_of_another_thread_is_not_answered_through_this_one(world: World):
    world.ask("question", "t")
    other = world.ask("question", "other")

    told = world.client.post("/threads/t/resume", json={"value": 1, "wait_id": other})

    assert told.status_code == 404
    assert world.app.wait(other).status == "open"


def test_nothing_at_all_is_no_answer(world: World):
    world.ask("question")

    told = world.client.post("/threads/t/resume", json={})
    null = world.client.post("/threads/t/resume", json={"value": None})

    assert told.status_code == 422
    assert null.json()["status"] == "resumed"


def test_misspelt_key_is_refused_and_answers_nothing(world: World):
    world.ask("question")

    told = world.client.post("/threads/t/resume", json={"approved": True})

    assert told.status_code == 422
    assert world.app.waits(thread_id="t")[0].status == "open"


def test_same_key_is_told_the_same_also_when_the_thread_is_done_since(world: World):
    wait_id = world.ask("question")
    headers = {"idempotency-key": "k"}
    world.client.post("/threads/t/resume", json={"value": 1}, headers=headers)
    world.settle()

    again = world.client.post("/threads/t/resume", json={"value": 1}, headers=headers)
    otherwise = world.client.post("/threads/t/resume", json={"value": 1}, headers={"idempotency-key": "other"})

    assert (again.status_code, again.json()["status"], again.json()["wait_id"]) == (200, "already_resolved", wait_id)
    assert otherwise.status_code == 400


@pytest.mark.requirement("Z0-25")
def test_whoever_waits_gets_the_values_when_the_thread_rests_again(store):
    app = Bide(store, graphs())
    with app.worker(poll=0.05), TestClient(create_app(app, Settings(worker=False))) as client:
        app.start("question", {"given": 1}, thread_id="t", owner="")
        list(app.follow("t", until="rest"))

        told = client.post("/threads/t/resume?wait=true", json={"value": 7})

    assert told.json()["status"] == "resumed"
    assert told.json()["result"]["status"] == "done"
    assert told.json()["result"]["values"] == {"given": 1, "answer": 7}


def test_whoever_waits_longer_than_it_takes_time_is_told_that_it_goes_on(world: World):
    world.ask("question")

    told = world.client.post("/threads/t/resume?wait=true&timeout=0", json={"value": 7})

    assert told.json()["status"] == "resumed"
    assert told.json()["result"]["status"] == "queued"
