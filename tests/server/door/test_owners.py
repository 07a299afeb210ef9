"""What belongs to another owner does not exist: every route that the server has, with an id of somebody else's.

The routes are those of the server as it is put together. One that is added and says nothing here fails: one with an id
in its path until it is 404 for strangers, one without until it is listed with how it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from tests.server.door.houses import SOCKET, WAYS, House, house, routes
from tests.server.household import SECRET

RUN = {"assistant_id": "quick", "input": {}}
BODIES: dict[str, Any] = {
    "/assistants/{assistant_id}/latest": {"version": 1},
    "/conversations/{conversation_id}": {"graph": "pay", "input": "approve"},
    "/threads/{thread_id}/commands": {"id": 1, "method": "run.start", "params": RUN},
    "/threads/{thread_id}/resume": {"value": "approve"},
    "/threads/{thread_id}/runs": RUN,
    "/threads/{thread_id}/runs/crons": {"assistant_id": "quick", "schedule": "0 9 * * *"},
    "/threads/{thread_id}/runs/stream": RUN,
    "/threads/{thread_id}/runs/wait": RUN,
    "/waits/{wait_id}/answer": {"value": "approve"},
    "/waits/{wait_id}/extend": {"timeout": "1h"},
    "/waits/{wait_id}/reassign": {"assignees": ["mallory"]},
    "/waits/{wait_id}/resolve": {"value": "approve"},
    "/waits/{wait_id}/snooze": {"duration": "1h"},
}
FORMS: dict[str, dict[str, str]] = {
    "/inbox/waits/{wait_id}/answer": {"how": "decide", "decision": "approve"},
    "/inbox/waits/{wait_id}/change": {"what": "snooze", "to": "1h"},
    "/inbox/waits/{wait_id}/cancel": {},
    "/inbox/waits/{wait_id}/cancel-thread": {},
    "/inbox/threads/{thread_id:path}/{what}": {},
}
OF_NOBODY = {
    "/hooks/{name}": "a hook is the server's, and its calls are signed",
    "/static/{name}": "files of the pages",
    "/w/{token}": "whoever holds a link may use it",
    "/inbox/agents/{name}/start": "graphs are everybody's",
    "/inbox/schedules/{what}": "the name is in the form; see below",
}
MAKES = {("PUT", "/schedules/{name}"): "schedules of two owners may have one name"}
BEGIN = ("/conversations/{conversation_id}", "/threads/{thread_id}/commands", "/threads/{thread_id}/stream/events")
"""Where an id that is not there yet may be given by whoever comes first."""
WITH_IDS = [(method, path) for method, path in routes() if "{" in path and path not in OF_NOBODY]
TRIED = [way for way in WITH_IDS if way not in MAKES]


@pytest.fixture(scope="module", params=WAYS)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Nothing of it may change, so that one is enough for all routes."""
    with house(tmp_path_factory.mktemp("door"), request.param) as opened:
        yield opened


def test_there_are_routes() -> None:
    assert len(TRIED) > 70
    assert (SOCKET, "/threads/{thread_id}/stream/events") in TRIED


@pytest.mark.parametrize(("method", "path"), TRIED)
def test_foreign_id_is_as_one_that_was_never_there(home: House, method: str, path: str) -> None:
    before = home.dump()

    foreign = knock(home, method, path, {})

    allowed = (404, 403) if home.is_shared else (404,)
    assert foreign[0] in allowed, foreign
    assert SECRET not in foreign[1]
    if path not in BEGIN:
        nowhere = knock(home, method, path, {name: f"none-{name.replace('_', '-')}" for name in ids_in(path)})
        assert plain(home, foreign) == plain(home, nowhere)
    assert before <= home.dump(), "something of theirs has changed"


def ids_in(path: str) -> list[str]:
    return re.findall(r"{(\w+)", path)


def knock(home: House, method: str, path: str, others: dict[str, str]) -> tuple[int, str]:
    """Call a route as a stranger."""
    address = home.things.path(path, **{"what": "cancel", **others})
    if method == SOCKET:
        return knock_at_socket(home, address)
    if path in FORMS:
        answer = home.theirs.request(method, address, data=FORMS[path])
    else:
        body = {} if method in ("POST", "PATCH", "PUT") else None
        answer = home.theirs.request(method, address, json=BODIES.get(path, body))
    return answer.status_code, answer.text


def knock_at_socket(home: House, address: str) -> tuple[int, str]:
    try:
        with home.theirs.websocket_connect(address):
            return 101, ""
    except WebSocketDenialResponse as refused:
        return refused.status_code, refused.text
    except WebSocketDisconnect as closed:
        return closed.code - 4000, closed.reason


def plain(home: House, told: tuple[int, str]) -> tuple[int, str]:
    """Leave out of an answer which id it is about."""
    text = told[1]
    for name in home.things.ids.values():
        text = text.replace(name, "…")
    return told[0], re.sub(r"none-[a-z-]+", "…", text)
