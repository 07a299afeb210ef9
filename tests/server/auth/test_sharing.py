"""Callers who share an owner: filters keep them apart also where LangGraph has no routes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import Auth
from starlette.testclient import TestClient

from bide import Bide
from bide.server import create_app
from bide.store import Store
from bide.store.notes import note_thread
from tests.server.auth.doors import application
from tests.server.auth.test_custom import custom, simple_auth

ADA, BOB = {"Authorization": "Bearer ada"}, {"Authorization": "Bearer bob"}


def filtering_auth() -> Auth:
    """Each sees the threads that carry their name; the chief sees all."""
    auth = simple_auth()

    @auth.on.threads
    async def own(ctx: Auth.types.AuthContext, value: Any) -> Any:
        return None if ctx.user.identity == "chief" else {"owner": ctx.user.identity}

    return auth


@pytest.fixture
def app(store: Store) -> Bide:
    """A thread of Ada's that waits."""
    app = application(store)
    app.start("asking", {}, thread_id="adas")
    note_thread(store, "", "adas", {"owner": "ada"})
    app.run_ready()
    return app


@pytest.fixture
def client(app: Bide) -> Iterator[TestClient]:
    with TestClient(create_app(app, custom(filtering_auth())), follow_redirects=False) as opened:
        yield opened


def places(app: Bide) -> list[tuple[str, str]]:
    wait_id = app.waits()[0].id
    return [
        ("GET", f"/waits/{wait_id}"),
        ("POST", f"/waits/{wait_id}/answer"),
        ("GET", f"/waits/{wait_id}/explain"),
        ("POST", f"/waits/{wait_id}/cancel"),
        ("GET", f"/inbox/waits/{wait_id}"),
        ("GET", "/threads/adas/timeline"),
        ("GET", "/inbox/threads/adas"),
        ("POST", "/inbox/threads/adas/cancel"),
        ("POST", "/threads/adas/resume"),
        ("POST", "/threads/adas/cancel"),
        ("GET", "/conversations/adas"),
    ]


def test_thread_of_another_is_not_there_wherever_it_is_asked_for(app: Bide, client: TestClient):
    found = {(verb, path): client.request(verb, path, headers=BOB, json={}).status_code for verb, path in places(app)}

    assert set(found.values()) == {404}, found
    assert len(app.waits()) == 1


def test_own_thread_is_there(app: Bide, client: TestClient):
    wait_id = app.waits()[0].id

    found = [client.get(path, headers=ADA).status_code for path in (f"/waits/{wait_id}", "/threads/adas/timeline")]

    assert found == [200, 200]


@pytest.mark.parametrize("path", ["/waits", "/threads", "/", "/inbox/threads", "/events", "/deliveries", "/schedules"])
def test_list_that_leaves_nobody_out_is_only_for_those_without_a_filter(client: TestClient, path):
    refused = client.get(path, headers=ADA)

    assert refused.status_code == 403
    assert "`owner`" in refused.json()["detail"]


def test_who_has_no_filter_sees_all(client: TestClient):
    found = client.get("/waits", headers={"Authorization": "Bearer chief"})

    assert found.status_code == 200
    assert "adas" in found.text
