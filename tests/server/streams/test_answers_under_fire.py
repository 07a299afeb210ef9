"""A server dies by SIGKILL at every point of an answer's transactions, whichever way it comes: it counts once, or not
at all, and whoever was told that it counts can rely on it."""

from __future__ import annotations

import hmac
import json
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from bide import Bide, Store
from tests.server.streams.processes import Nursery, Served
from tests.server.streams.reading import CLIENT
from tests.server.streams.scenes import SECRET, all_graphs

pytestmark = pytest.mark.slow

Giving = Callable[[str, str, str], httpx.Response]
"""Gives an answer: where, for which thread, to which wait."""


class Way(NamedTuple):
    """A way by which an answer comes."""

    give: Giving
    graph: str
    value: str
    """What the graph is given."""
    is_new: str
    """What is said to whoever gives it first …"""
    was_there: str
    """… and to whoever gives it again."""


def by_wait(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    return CLIENT.post(f"{url}/waits/{wait_id}/answer", json={"value": "yes"}, headers={"idempotency-key": "k"})


def by_resume(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    said = {"value": "yes", "idempotency_key": "k"}
    return CLIENT.post(f"{url}/threads/{thread_id}/resume", json=said)


def by_run(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    said = {"assistant_id": "asking", "command": {"resume": {wait_id: "yes"}}}
    return CLIENT.post(f"{url}/threads/{thread_id}/runs", json=said)


def by_command(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    said = {"id": 1, "method": "input.respond", "params": {"interrupt_id": wait_id, "response": "yes"}}
    return CLIENT.post(f"{url}/threads/{thread_id}/commands", json=said)


def by_link(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    """The link was made before: it is what a person has in a mail."""
    return CLIENT.post(f"{url}{LINKS[wait_id]}", data={"action": "approve"})


def by_hook(url: str, thread_id: str, wait_id: str) -> httpx.Response:
    body = json.dumps({"order": thread_id}).encode()
    signed = hmac.new(SECRET.encode(), body, sha256).hexdigest()
    named = {"x-github-delivery": f"d-{thread_id}", "x-hub-signature-256": f"sha256={signed}"}
    return CLIENT.post(f"{url}/hooks/paid", content=body, headers={**named, "content-type": "application/json"})


LINKS: dict[str, str] = {}
WAYS = {
    "a wait": Way(by_wait, "asking", "yes", '"status":"resumed"', '"status":"already_resolved"'),
    "resume": Way(by_resume, "asking", "yes", '"status":"resumed"', '"status":"already_resolved"'),
    "a run": Way(by_run, "asking", "yes", '"status":"pending"', '"error":"AlreadyAnsweredError"'),
    "a command": Way(by_command, "asking", "yes", '"type":"success"', '"error":"no_such_interrupt"'),
    "a link": Way(by_link, "deciding", "approve", "Thank you: it goes on.", "Already settled"),
    "a webhook": Way(by_hook, "hearing", "{thread_id}", '"status":"delivered"', '"status":"duplicate"'),
}


class Fire:
    """A database with threads that wait, a server that stays, and others that die."""

    def __init__(self, nursery: Nursery, database: str, folder: Path) -> None:
        self.nursery = nursery
        self.database = database
        self.folder = folder
        self.trace = folder / "trace.txt"

    def thread(self, app: Bide, server: Served, graph: str, thread_id: str) -> str:
        """Let a thread wait; return the id of its wait."""
        folder = self.folder / thread_id
        folder.mkdir()
        app.start(graph, {"goal": thread_id, "folder": str(folder)}, thread_id=thread_id)
        self.settle(app)
        wait_id = app.waits(thread_id=thread_id)[0].id
        if graph == "deciding":
            made = CLIENT.post(f"{server.url}/waits/{wait_id}/links", json={})
            assert made.status_code == 201, made.text
            LINKS[wait_id] = httpx.URL(made.json()["url"]).path
        return wait_id

    @staticmethod
    def settle(app: Bide) -> None:
        while app.tend().is_something or app.run_ready(most=10):
            pass

    def points(self, app: Bide, stays: Served, way: Way) -> list[str]:
        """Give an answer in peace, and return what its transactions have passed: each statement, and each commit.

        Reading is left out, and what the server does meanwhile for others.
        """
        wait_id = self.thread(app, stays, way.graph, "in-peace")
        server = self.nursery.server(self.database, worker=False, trace=str(self.trace))
        CLIENT.get(f"{server.url}/ok")
        before = len(self.trace.read_text().split())
        assert way.is_new in way.give(server.url, "in-peace", wait_id).text
        self.nursery.kill(server.pid)
        self.settle(app)
        passed = self.trace.read_text().split()[before:]
        return [line for line in passed if not line.startswith(("outbox:", "read:", "group:"))]

    def dies(self, way: Way, thread_id: str, wait_id: str, point: str) -> None:
        """Give an answer to a server that dies at a point, before it can say anything."""
        server = self.nursery.server(self.database, worker=False, point=point)
        with pytest.raises(httpx.TransportError):
            way.give(server.url, thread_id, wait_id)
        assert self.nursery.ended(server.pid) == -signal.SIGKILL, point

    def dies_when_it_has_told(self, way: Way, thread_id: str, wait_id: str) -> None:
        """Give an answer to a server that dies as soon as it has said that it counts."""
        server = self.nursery.server(self.database, worker=False)
        told = way.give(server.url, thread_id, wait_id)
        self.nursery.kill(server.pid)
        assert way.is_new in told.text

    def answered(self, thread_id: str) -> list[str]:
        lines = (self.folder / thread_id / "ledger.txt").read_text(encoding="utf-8").split("\n")
        return [line for line in lines if line.startswith("answered")]


@pytest.fixture
def fire(nursery: Nursery, database: str, tmp_path: Path) -> Fire:
    return Fire(nursery, database, tmp_path)


@pytest.mark.requirement("Z1-07")
@pytest.mark.parametrize("name", WAYS)
def test_answer_counts_once_wherever_the_server_dies(fire: Fire, name: str):
    way = WAYS[name]
    with Store.open(fire.database) as store:
        app = Bide(store, all_graphs())
        stays = fire.nursery.server(fire.database, worker=False)
        points = fire.points(app, stays, way)
        assert {"begun", "written", "committed"} < {point.split(":")[1].split("@")[0] for point in points}
        durable = next(number for number, point in enumerate(points) if ":committed" in point)

        for number, point in enumerate([*points, "told"]):
            thread_id = f"t-{number}"
            wait_id = fire.thread(app, stays, way.graph, thread_id)
            if point == "told":
                fire.dies_when_it_has_told(way, thread_id, wait_id)
            else:
                fire.dies(way, thread_id, wait_id, point)

            again = way.give(stays.url, thread_id, wait_id)  # by a client that has heard nothing, or does not know
            fire.settle(app)

            assert (way.was_there if number >= durable else way.is_new) in again.text, point
            assert fire.answered(thread_id) == [f"answered {way.value.format(thread_id=thread_id)}"], point
            assert app.get(thread_id).status == "done"
            happened = [event.kind for event in store.events(thread_id)]
            assert (happened.count("wait.answered"), happened.count("run.done")) == (1, 1), point
        fire.nursery.kill(stays.pid)
        assert store.verify().is_sound
