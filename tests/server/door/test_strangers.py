"""A browser that is signed in, and pages of strangers that have it send something: at no route that changes anything is
it done without the token of our own page, nor for a page of another site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from bide.server.auth.keys import create_key
from bide.server.auth.sessions import COOKIE
from bide.server.caller import SCOPES
from tests.server.door.houses import SOCKET, House, house, routes
from tests.server.door.test_scopes import PUBLIC

OWN, STRANGE = {"origin": "http://testserver"}, {"origin": "https://evil.example"}
UNSAFE = [way for way in routes() if way[0] not in ("GET", "HEAD", "OPTIONS", SOCKET)]
CHANGES = [way for way in UNSAFE if way not in PUBLIC]
FORMS = [path for method, path in CHANGES if path.startswith("/inbox/")]


class Desk(NamedTuple):
    """Somebody who is signed in, and what their pages and those of another session know."""

    home: House
    browser: TestClient
    token: str
    foreign: str

    def send(self, method: str, path: str, token: str, body: str = "{}", **headers: str) -> int:
        said = {"content-type": "application/json", **({"x-csrf-token": token} if token else {}), **headers}
        place = self.home.things.path(path, what="cancel")
        return self.browser.request(method, place, content=body, headers=said).status_code


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with house(tmp_path_factory.mktemp("strangers"), "keys") as home:
        key = create_key(home.app.store, "ada's browser", "acme", SCOPES)[0]
        browser, other = (TestClient(home.ours.app, follow_redirects=False) for _ in range(2))
        token, foreign = (one.post("/login", json={"key": key}).json()["csrf"] for one in (browser, other))
        assert token != foreign
        yield Desk(home, browser, token, foreign)


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_page_of_a_stranger_changes_nothing(desk: Desk, method: str, path: str):
    before = desk.home.dump()

    refused = {
        "no token": desk.send(method, path, "", **OWN),
        "no token, no word of where from": desk.send(method, path, ""),
        "token of another session": desk.send(method, path, desk.foreign, **OWN),
        "another origin": desk.send(method, path, desk.token, **STRANGE),
        "no origin at all": desk.send(method, path, desk.token, origin="null"),
        "another site": desk.send(method, path, desk.token, **{"sec-fetch-site": "cross-site"}),
        "a neighbour": desk.send(method, path, desk.token, **{"sec-fetch-site": "same-site"}),
    }

    assert refused == dict.fromkeys(refused, 403)
    assert before == desk.home.dump()


@pytest.mark.parametrize("path", FORMS)
def test_form_on_the_page_of_a_stranger_changes_nothing(desk: Desk, path: str):
    before = desk.home.dump()
    place = desk.home.things.path(path, what="cancel")

    fields = [{}, {"csrf": ""}, {"csrf": desk.foreign}, {"csrf": [desk.token, desk.token]}]
    answers = [desk.browser.post(place, data=one, headers=OWN).status_code for one in fields]
    answers.append(desk.browser.post(place, data={"csrf": desk.token}, headers=STRANGE).status_code)

    assert answers == [403] * 5
    assert before == desk.home.dump()


def test_routes_that_ask_for_no_token_bring_a_proof_of_their_own_or_change_only_who_is_signed_in(desk: Desk):
    assert {way for way in UNSAFE if way in PUBLIC} == {
        ("POST", "/hooks/{name}"),
        ("POST", "/w/{token}"),
        ("POST", "/login"),
        ("POST", "/logout"),
    }
    for path in ("/login", "/logout"):
        assert desk.send("POST", path, "", **STRANGE) == 403
        assert desk.send("POST", path, "", **{"sec-fetch-site": "cross-site"}) == 403


def test_socket_opens_for_our_own_page_and_for_no_other(desk: Desk):
    (path,) = (path for method, path in routes() if method == SOCKET)
    place = desk.home.things.path(path)
    cookie = {"cookie": f"{COOKIE}={desk.browser.cookies[COOKIE]}"}
    with desk.browser.websocket_connect(place, headers={**cookie, **OWN}) as socket:
        socket.send_json({"id": 1, "method": "agent.getTree"})
        assert socket.receive_json()["id"] == 1

    for strange in (STRANGE, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        with (
            pytest.raises(WebSocketDisconnect) as refused,
            desk.browser.websocket_connect(place, headers={**cookie, **strange}),
        ):
            pass
        assert refused.value.code == 1008


def test_door_is_open_at_every_route_for_our_own_page(desk: Desk):
    """The last here: what needs no body is done. What needs one is refused behind the door, and not by it."""
    headers = {**OWN, "sec-fetch-site": "same-origin"}

    answers = {way: desk.send(*way, desk.token, "{", **headers) for way in CHANGES}
    forms = {
        path: desk.browser.post(desk.home.things.path(path, what="cancel"), data={"csrf": desk.token}, headers=headers)
        for path in FORMS
    }

    assert {way: status for way, status in answers.items() if status in (401, 403) or status >= 500} == {}
    assert {path: one.text for path, one in forms.items() if one.status_code in (401, 403)} == {}
