"""What belongs to another owner does not exist: every route of the native API, with foreign ids."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bide.server import native
from tests.server.native.world import Office

BODIES: dict[str, Any] = {
    "/waits/{wait_id}/answer": {"value": "approve"},
    "/waits/{wait_id}/resolve": {"value": "approve"},
    "/waits/{wait_id}/extend": {"timeout": "1h"},
    "/waits/{wait_id}/reassign": {"assignees": ["mallory"]},
    "/waits/{wait_id}/snooze": {"duration": "1h"},
    "/threads/{thread_id}/resume": {"value": "approve"},
    "/conversations/{conversation_id}": {"graph": "pay", "input": "approve"},
}
MAKES_ITS_OWN = {("PUT", "/schedules/{name}")}
"""Whoever puts a schedule under a name that another owner uses as well makes one of their own."""
BEGINS = {("POST", "/conversations/{conversation_id}")}
ROUTES = sorted(
    (method, route.path)
    for part in native.PARTS
    for route in part.router.routes
    for method in route.methods  # type: ignore[attr-defined]
    if "{" in route.path and (method, route.path) not in MAKES_ITS_OWN  # type: ignore[attr-defined]
)


def test_there_are_routes():
    assert len(ROUTES) > 20


@pytest.mark.seed("test_jarvis_runs.py::other tenant is 404")
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_foreign_id_is_as_one_that_was_never_there(office: Office, method: str, path: str):
    wait_id = office.ask("pay", "t", owner="acme")
    delivery = office.ada.post("/deliveries", json={"name": "paid"}).json()["id"]
    office.ada.put("/schedules/daily", json={"graph": "pay", "cron": "0 9 * * *"})
    ours = {"wait_id": wait_id, "thread_id": "t", "conversation_id": "t", "delivery_id": delivery, "name": "daily"}
    events = [event.kind for event in office.store.events("t")]

    (name,) = re.findall(r"{(\w+)}", path)
    body = BODIES.get(path)

    told = office.mallory.request(method, path.format(**ours), json=body)
    nowhere = office.mallory.request(method, path.format(**{name: "no-such-thing"}), json=body)

    assert told.status_code == 404, told.text
    if (method, path) not in BEGINS:
        assert nowhere.status_code == 404
        assert told.json()["detail"].replace(repr(ours[name]), "") == nowhere.json()["detail"].replace(
            repr("no-such-thing"), ""
        )
    assert [event.kind for event in office.store.events("t")] == events
    assert office.app.wait(wait_id).status == "open"
    assert office.ada.get("/schedules/daily").json()["is_paused"] is False
