"""What a key is good for, at every route that the server has: without one nothing, with one to look no change."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from bide.server.auth.keys import create_key
from bide.server.caller import ADMIN, READ, RESOLVE, RUN
from tests.server.door.houses import SOCKET, House, house, routes

PUBLIC = {
    *(("GET", path) for path in ("/health", "/ok", "/ready", "/login", "/static/{name}", "/w/{token}")),
    *(("POST", path) for path in ("/hooks/{name}", "/login", "/logout", "/w/{token}")),
    ("HEAD", "/w/{token}"),
    ("OPTIONS", "/w/{token}"),
}
"""Where nobody is asked who they are: signs of life, the door itself, and what brings a proof of its own."""
LOOKS = {
    *(("POST", f"/{what}/{how}") for what in ("assistants", "threads", "runs/crons") for how in ("search", "count")),
    ("POST", "/assistants/{assistant_id}/versions"),
    ("POST", "/threads/{thread_id}/history"),
    ("POST", "/threads/{thread_id}/state/checkpoint"),
    ("POST", "/threads/{thread_id}/stream/events"),
    ("POST", "/store/items/search"),
    ("POST", "/store/namespaces"),
    ("POST", "/inbox/deliveries/try"),
}
"""What changes nothing, though it is a POST."""
FOR_ADMINS = {
    *(("GET", path) for path in ("/audit", "/keys", "/metrics", "/outbox", "/outbox/{message_id}", "/webhooks")),
    ("POST", "/keys"),
    ("DELETE", "/keys/{key_id}"),
    ("POST", "/outbox/{message_id}/retry"),
    ("POST", "/threads/prune"),
}
HTTP = [way for way in routes() if way[0] != SOCKET]
CHANGES = [way for way in HTTP if way[0] not in ("GET", "HEAD", "OPTIONS") and way not in PUBLIC | LOOKS]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("scopes"), "keys") as opened:
        yield opened


def client_with(home: House, *scopes: str) -> TestClient:
    headers = {"x-api-key": create_key(home.app.store, "somebody", "acme", scopes)[0]} if scopes else {}
    return TestClient(home.ours.app, headers=headers, follow_redirects=False)


def address(home: House, path: str) -> str:
    return home.things.path(path, what="cancel")


@pytest.mark.parametrize(("method", "path"), [way for way in HTTP if way not in PUBLIC])
def test_nobody_comes_in_without_a_key(home: House, method: str, path: str) -> None:
    before = home.dump()

    answers = [
        TestClient(home.ours.app, headers=headers, follow_redirects=False).request(method, address(home, path))
        for headers in ({}, {"x-api-key": "bide_0123456789abcdef_" + "0" * 64}, {"Authorization": "Basic YTpi"})
    ]

    assert [answer.status_code for answer in answers] == [401] * 3
    assert all("www-authenticate" in answer.headers for answer in answers)
    assert before == home.dump()


def test_public_routes_are_those_that_are_named_and_no_others(home: House) -> None:
    stranger = client_with(home)

    opened = {way for way in HTTP if stranger.request(way[0], address(home, way[1])).status_code != 401}

    assert opened <= PUBLIC
    assert PUBLIC - opened <= {("POST", "/login")}, "there a wrong key is what 401 says"


def test_no_socket_opens_without_a_key(home: House) -> None:
    (path,) = (path for method, path in routes() if method == SOCKET)

    with pytest.raises(WebSocketDisconnect) as refused, client_with(home).websocket_connect(address(home, path)):
        pass

    assert refused.value.code == 1008


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_key_to_look_changes_nothing(home: House, method: str, path: str) -> None:
    before = home.dump()

    answer = client_with(home, READ).request(method, address(home, path), json={})

    assert answer.status_code == 403, answer.text
    assert re.search(r"scope &#39;|scope '", answer.text)
    assert before == home.dump()


@pytest.mark.parametrize(("method", "path"), sorted(FOR_ADMINS))
def test_what_is_for_admins_is_for_nobody_else(home: House, method: str, path: str) -> None:
    answer = client_with(home, READ, RUN, RESOLVE).request(method, address(home, path), json={})

    assert answer.status_code == 403
    assert "'admin'" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/threads/acme-pay/runs", {"assistant_id": "pay", "command": {"resume": "approve"}}),
        ("POST", "/threads/acme-pay/runs/wait", {"assistant_id": "pay", "command": {"resume": "approve"}}),
        ("POST", "/threads/acme-pay/runs/stream", {"assistant_id": "pay", "command": {"resume": "approve"}}),
        ("POST", "/conversations/acme-pay", {"input": "approve"}),
        ("POST", "/deliveries", {"name": "paid", "payload": {"order": 7}}),
    ],
)
def test_whoever_may_start_may_not_answer(home: House, method: str, path: str, body: object) -> None:
    before = home.dump()

    answer = client_with(home, READ, RUN).request(method, path, json=body)

    assert answer.status_code == 403
    assert before == home.dump()


def test_command_that_answers_needs_the_scope_for_it(home: House) -> None:
    params = {"interrupt_id": home.things.ids["wait_id"], "response": "approve"}
    command = {"id": 1, "method": "input.respond", "params": params}
    before = home.dump()

    told = client_with(home, READ, RUN).post("/threads/acme-pay/commands", json=command).json()
    with client_with(home, READ, RUN).websocket_connect("/threads/acme-pay/stream/events") as socket:
        socket.send_json(command)
        by_socket = socket.receive_json()

    assert told["error"] == by_socket["error"] == "permission_denied"
    assert before == home.dump()


def test_socket_of_a_key_to_look_takes_no_commands(home: House) -> None:
    start = {"id": 1, "method": "run.start", "params": {"assistant_id": "quick", "input": {}}}
    before = home.dump()

    with client_with(home, READ).websocket_connect("/threads/acme-quick/stream/events") as socket:
        socket.send_json(start)
        told = socket.receive_json()

    assert told["type"] == "error"
    assert "'run'" in told["message"]
    assert before == home.dump()


def test_key_without_admin_makes_no_other_key(home: House) -> None:
    made = client_with(home, READ, RUN, RESOLVE).post("/keys", json={"name": "more", "scopes": [ADMIN]})

    assert made.status_code == 403


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_method_is_the_one_of_the_request(home: House, header: str) -> None:
    before = home.dump()

    answer = client_with(home, READ).get("/threads/acme-pay", headers={header: "DELETE"}, params={"_method": "DELETE"})

    assert answer.status_code == 200
    assert before == home.dump()
