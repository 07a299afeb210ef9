"""Sockets come through the same door: no header, no stream; and no page of a stranger may open one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import WebSocket
from langgraph_sdk import Auth
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from bide.server import Settings
from bide.server.auth.keys import create_key
from bide.server.settings import AuthSettings, LimitSettings
from bide.store import Store
from tests.server.auth.doors import KEYS, door

PLACE = "/threads/t/stream/events"


@pytest.fixture
def client_of(store: Store) -> Iterator[Any]:
    """Makes clients of a server with a socket that says who came."""

    def made(settings: Settings) -> TestClient:
        api = door(store, settings)

        @api.websocket(PLACE)
        async def told(socket: WebSocket) -> None:
            await socket.accept()
            await socket.send_json(socket.scope["bide.caller"].owner)
            await socket.close()

        return TestClient(api)

    return made


def owner_at(client: TestClient, **headers: str) -> Any:
    with client.websocket_connect(PLACE, headers=headers) as socket:
        return socket.receive_json()


def refusal_at(client: TestClient, **headers: str) -> int:
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect(PLACE, headers=headers):
        pass
    return refused.value.code


def test_socket_opens_for_a_key_and_not_without(store: Store, client_of):
    key, _ = create_key(store, "one", "ada", ["read"])
    other, _ = create_key(store, "two", "ada", ["run"])
    client = client_of(KEYS)

    assert owner_at(client, **{"x-api-key": key}) == "ada"
    assert refusal_at(client) == 1008
    assert refusal_at(client, **{"x-api-key": other}) == 1008


def test_page_of_a_stranger_opens_no_socket_of_a_server_that_asks_nobody(client_of):
    client = client_of(Settings())

    assert owner_at(client) == ""
    assert owner_at(client, origin="http://testserver") == ""
    assert refusal_at(client, origin="https://evil.example") == 1008


def test_own_handler_sees_the_handshake_and_waits_for_no_body(client_of):
    auth, seen = Auth(), []

    @auth.authenticate
    async def who(body: Any, path: str, method: str) -> dict[str, str]:
        seen.append((body, path, method))
        return {"identity": "ada", "owner": "acme"}

    assert owner_at(client_of(Settings(auth=AuthSettings("custom", handler=auth)))) == "acme"
    assert seen == [({}, PLACE, "GET")]


def test_sockets_are_limited_as_streams_are(store: Store, client_of):
    key, _ = create_key(store, "one", "ada")
    client = client_of(replace(KEYS, limits=LimitSettings(rate=1, burst=1)))

    assert owner_at(client, **{"x-api-key": key}) == "ada"
    assert refusal_at(client, **{"x-api-key": key}) == 1008
