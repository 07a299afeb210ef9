"""Answers that come with a run need the scope for answering, and every attempt is in the audit log."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from fastapi.testclient import TestClient

from bide import START, Bide, StateGraph, interrupt, wait_for
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.settings import AuthSettings
from bide.waits import approval


class State(TypedDict, total=False):
    answer: Any


def ask(state: State) -> dict[str, Any]:
    return {"answer": interrupt("go?", response_schema={"type": "string"})}


@pytest.fixture
def app():
    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(name="asking")
    with Bide(":memory:", [graph]) as app:
        yield app


@pytest.fixture
def client(app):
    with TestClient(create_app(app, Settings(auth=AuthSettings(mode="keys")))) as client:
        yield client


def key(app: Bide, *scopes: str) -> dict[str, str]:
    return {"x-api-key": create_key(app.store, "test", owner="ada", scopes=scopes)[0]}


def paused(app: Bide, client: TestClient, headers: dict[str, str]) -> str:
    thread_id: str = client.post("/threads", json={}, headers=headers).json()["thread_id"]
    client.post(f"/threads/{thread_id}/runs", json={"assistant_id": "asking", "input": {}}, headers=headers)
    app.run_ready()
    return thread_id


def resume(client: TestClient, thread_id: str, value: Any, headers: dict[str, str]) -> int:
    body = {"assistant_id": "asking", "command": {"resume": value}}
    return client.post(f"/threads/{thread_id}/runs", json=body, headers=headers).status_code


def test_a_key_that_may_only_run_cannot_answer(app, client):
    thread_id = paused(app, client, key(app, "read", "run"))

    refused = resume(client, thread_id, "yes", key(app, "read", "run"))

    assert refused == 403
    assert app.get(thread_id).status == "waiting"


def test_every_attempt_to_answer_is_in_the_audit_log(app, client):
    headers = key(app, "run", "resolve")
    thread_id = paused(app, client, headers)

    came = [resume(client, thread_id, value, headers) for value in (7, "yes", "again")]

    assert came == [422, 200, 409]
    outcomes = [entry.outcome for entry in app.store.audit_entries("ada", thread_id=thread_id)]
    assert sorted(outcomes) == ["refused", "refused", "resumed"]


@pytest.mark.parametrize(
    "resume",
    [
        {"decisions": [{"type": "reject", "message": "too dear"}]},
        [{"type": "response", "args": "too dear"}],
        [{"interruptId": "{id}", "status": "resolved", "payload": {"decision": "reject", "reason": "too dear"}}],
    ],
)
def test_words_with_which_an_inbox_says_no_reach_the_node(resume: Any):
    def pay(state: State) -> dict[str, Any]:
        reply = wait_for(approval("Pay?"))
        return {"answer": [reply.value, reply.comment]}

    graph = StateGraph(State).add_node(pay).add_edge(START, "pay").compile(name="paying")
    with Bide(":memory:", [graph]) as app, TestClient(create_app(app, Settings(worker=False))) as client:
        app.start("paying", {}, thread_id="t")
        app.run_ready()
        for envelope in resume if isinstance(resume, list) else ():
            if "interruptId" in envelope:
                envelope["interruptId"] = app.waits()[0].id

        body = {"assistant_id": "paying", "command": {"resume": resume}}
        assert client.post("/threads/t/runs", json=body).status_code == 200
        app.run_ready()

        assert app.get("t").values == {"answer": ["reject", "too dear"]}
