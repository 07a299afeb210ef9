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
from tests.server.household import SECRET, settle

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


# What of theirs a stranger names where no id stands in the path, and what comes of it: no, or an answer without it.
NAMED: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {
    ("GET", "/"): [(200, {}), (200, {"params": {"wait": "{wait_id}", "said": "resumed"}})],
    ("GET", "/audit"): [(200, {"params": {"thread_id": "{thread_id}"}}), (200, {"params": {"subject": "{wait_id}"}})],
    ("GET", "/deliveries"): [(200, {}), (200, {"params": {"after": "{delivery_id}"}})],
    ("GET", "/events"): [(200, {"params": {"limit": 1000}})],
    ("GET", "/inbox/agents"): [(200, {})],
    ("GET", "/inbox/deliveries"): [(200, {}), (200, {"params": {"before": "{delivery_id}~"}})],
    ("GET", "/inbox/live"): [(404, {"params": {"thread": "{thread_id}"}})],
    ("GET", "/inbox/schedules"): [(200, {})],
    ("GET", "/inbox/threads"): [(200, {})],
    ("GET", "/keys"): [(200, {})],
    ("GET", "/outbox"): [(200, {}), (404, {"params": {"after": "{message_id}"}})],
    ("GET", "/schedules"): [(200, {})],
    ("GET", "/store/items"): [(200, {"params": {"namespace": "{prefix}", "key": "item"}})],
    ("GET", "/threads"): [(200, {}), (404, {"params": {"parent": "{thread_id}"}})],
    ("GET", "/waits"): [(200, {}), (200, {"params": {"thread_id": "{thread_id}"}})],
    ("GET", "/webhooks"): [(200, {})],
    ("DELETE", "/store/items"): [(204, {"json": {"namespace": ["{prefix}"], "key": "item"}})],
    ("POST", "/assistants/count"): [(200, {"json": {"name": SECRET}})],
    ("POST", "/assistants/search"): [(200, {"json": {"metadata": {"note": SECRET}}}), (200, {"json": {}})],
    ("POST", "/deliveries"): [(200, {"json": {"name": "paid", "payload": {"order": 7}}})],
    ("POST", "/inbox/deliveries/try"): [(200, {"data": {"name": "paid", "kind": "event", "payload": '{"order": 7}'}})],
    ("POST", "/runs"): [(404, {"json": {"assistant_id": "{assistant_id}"}})],
    ("POST", "/runs/batch"): [(404, {"json": [{"assistant_id": "{assistant_id}"}]})],
    ("POST", "/runs/cancel"): [
        (404, {"json": {"thread_id": "{thread_id}", "run_ids": ["{run_id}"]}}),
        (204, {"json": {"status": "all"}}),
    ],
    ("POST", "/runs/crons"): [(404, {"json": {"assistant_id": "{assistant_id}", "schedule": "0 9 * * *"}})],
    ("POST", "/runs/crons/count"): [(200, {"json": {}})],
    ("POST", "/runs/crons/search"): [(200, {"json": {}}), (200, {"json": {"thread_id": "{thread_id}"}})],
    ("POST", "/runs/stream"): [(404, {"json": {"assistant_id": "{assistant_id}"}})],
    ("POST", "/runs/wait"): [(404, {"json": {"assistant_id": "{assistant_id}"}})],
    ("POST", "/store/items/search"): [(200, {"json": {}}), (200, {"json": {"namespace_prefix": ["{prefix}"]}})],
    ("POST", "/store/namespaces"): [(200, {"json": {}})],
    # An id that is taken is taken: whoever wants to give it is told so, and nothing else.
    ("POST", "/assistants"): [(409, {"json": {"graph_id": "quick", "assistant_id": "{assistant_id}"}})],
    ("POST", "/threads"): [
        (409, {"json": {"thread_id": "{thread_id}"}}),
        (409, {"json": {"thread_id": "{thread_id}", "if_exists": "do_nothing"}}),
    ],
    ("POST", "/threads/count"): [(200, {"json": {"ids": ["{thread_id}"]}})],
    ("POST", "/threads/prune"): [(200, {"json": {"thread_ids": ["{thread_id}"]}})],
    ("POST", "/threads/search"): [(200, {"json": {"ids": ["{thread_id}"]}}), (200, {"json": {"limit": 1000}})],
    ("PUT", "/store/items"): [(204, {"json": {"namespace": ["{prefix}"], "key": "item", "value": {}}})],
}
NAMES_NOTHING = {
    *(("GET", path) for path in ("/docs", "/health", "/info", "/login", "/metrics", "/ok", "/openapi.json", "/ready")),
    *(("POST", path) for path in ("/keys", "/login", "/logout")),
}
"""What asks for nothing of anybody's."""


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


# ── Ids in queries, bodies and lists ───────────────────────────────────────────────────────────────────────────────


def test_every_route_without_an_id_in_its_path_is_listed() -> None:
    plain_routes = {way for way in routes() if "{" not in way[1] and way[0] != "HEAD"}

    assert plain_routes == set(NAMED) | NAMES_NOTHING


@pytest.mark.parametrize(
    ("method", "path", "status", "call"), [(*way, *one) for way, tries in NAMED.items() for one in tries]
)
def test_what_is_anothers_is_in_no_list_and_cannot_be_named(
    home: House, method: str, path: str, status: int, call: dict[str, Any]
) -> None:
    before = home.dump()

    answer = home.theirs.request(method, path, **filled(home, call))

    assert answer.status_code == status or (home.is_shared and answer.status_code in (403, 404)), answer.text
    said = unasked(home, answer, call)
    assert SECRET not in said
    assert not [name for name in home.things.ids.values() if name in said and name != "nowhere"]
    assert before <= home.dump(), "something of theirs has changed"


def filled(home: House, call: Any) -> Any:
    """Put the names of what is another's into what a stranger sends."""
    if isinstance(call, dict):
        return {key: filled(home, value) for key, value in call.items()}
    if isinstance(call, list):
        return [filled(home, one) for one in call]
    name = re.fullmatch(r"{(\w+)}(~?)", call) if isinstance(call, str) else None
    return call if name is None else home.things.ids[name[1]] + name[2]


def unasked(home: House, answer: Any, call: dict[str, Any]) -> str:
    """Return what was said beyond repeating the names that were sent."""
    text: str = answer.text
    for name in (value for value in home.things.ids.values() if value in str(filled(home, call))):
        text = text.replace(name, "…")
    return text


@pytest.mark.parametrize("call", [{"json": {}}, {"json": {"status": "interrupted"}}])
def test_counts_leave_out_what_is_anothers(home: House, call: dict[str, Any]) -> None:
    assert home.theirs.post("/threads/count", **call).json() == 0
    assert home.ours.post("/threads/count", **call).json() > 0


@pytest.mark.parametrize("what", ["pause", "resume", "delete"])
def test_schedule_of_another_is_not_changed_by_a_form(home: House, what: str) -> None:
    before = home.dump()

    answer = home.theirs.post(f"/inbox/schedules/{what}", data={"name": "acme-daily"})

    assert answer.status_code in (303, 403, 422)
    assert before <= home.dump()


def test_schedule_of_the_same_name_is_another_one(home: House) -> None:
    before = home.dump()
    plan = {"graph": "quick", "cron": "0 9 * * *"}

    made = home.theirs.put("/schedules/acme-daily", json=plan)
    foreign = home.theirs.put("/schedules/other", json={**plan, "thread_id": home.things.ids["thread_id"]})

    assert (made.status_code, foreign.status_code) == ((403, 403) if home.is_shared else (200, 404))
    assert before <= home.dump()


def test_thread_that_begins_while_a_stranger_listens_is_not_told(home: House) -> None:
    """A client may follow a thread before it exists; whose it becomes is asked then."""
    place, wanted = "/threads/later/stream/events", {"channels": ["values", "input", "lifecycle"]}
    with home.theirs.websocket_connect(place) as strange, home.ours.websocket_connect(place) as own:
        for socket in (strange, own):
            socket.send_json({"id": 1, "method": "subscription.subscribe", "params": wanted})
            assert socket.receive_json()["type"] == "success"
        home.ours.post("/threads", json={"thread_id": "later"})
        run = {"assistant_id": "question", "input": {"given": SECRET}}
        assert home.ours.post("/threads/later/runs", json=run).status_code == 200
        settle(home.app)
        while own.receive_json().get("method") != "input.requested":
            pass  # it hears everything, up to the question
        for number in (2, 3, 4):
            strange.send_json({"id": number, "method": "agent.getTree"})
            told = strange.receive_json()
            assert (told["id"], told["type"]) == (number, "error"), told

    home.ours.delete("/threads/later")


def test_stranger_who_cancels_everything_cancels_nothing_of_ours(home: House) -> None:
    run = home.ours.post("/threads/acme-quick/runs", json=RUN).json()

    answer = home.theirs.post("/runs/cancel", json={"status": "all"})
    pruned = home.theirs.post("/threads/prune", json={"thread_ids": list(home.things.thread_ids)})

    assert answer.status_code == 204
    assert pruned.status_code == 403 or pruned.json() == {"pruned_count": 0}
    assert home.ours.get(f"/threads/acme-quick/runs/{run['run_id']}").json()["status"] == "pending"
    settle(home.app)
