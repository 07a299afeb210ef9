"""A server dies by SIGKILL at every write of an answer, whichever way it comes: it counts once, or not at all, and
whoever was told that it counts can rely on it."""

from __future__ import annotations

import hmac
import json
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from bide import Bide, Store
from tests.server.streams.processes import Nursery, Served
from tests.server.streams.reading import CLIENT
from tests.server.streams.scenes import SECRET, all_graphs

pytestmark = pytest.mark.slow

Way = Callable[[str, str, str], httpx.Response]
"""Gives an answer: where, for which thread, to which wait."""


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
WAYS: dict[str, tuple[Way, str, str]] = {
    "a wait": (by_wait, "asking", "yes"),
    "resume": (by_resume, "asking", "yes"),
    "a run": (by_run, "asking", "yes"),
    "a command": (by_command, "asking", "yes"),
    "a link": (by_link, "deciding", "approve"),
    "a webhook": (by_hook, "hearing", "{thread_id}"),
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

    def points(self, app: Bide, stays: Served, way: Way, graph: str) -> list[str]:
        """Give an answer in peace, and return where each of its transactions is about to be durable, or is.

        What lies before is as good as the first of them: it is taken back. The store's own tests die there.
        """
        wait_id = self.thread(app, stays, graph, "in-peace")
        server = self.nursery.server(self.database, worker=False, trace=str(self.trace))
        CLIENT.get(f"{server.url}/ok")
        before = len(self.trace.read_text().split())
        assert way(server.url, "in-peace", wait_id).status_code < 300
        self.nursery.kill(server.pid)
        self.settle(app)
        passed = [line for line in self.trace.read_text().split()[before:] if not line.startswith("outbox:")]
        return [line for line in passed if line.partition("@")[0].endswith((":written", ":committed"))]

    def answered(self, thread_id: str) -> list[str]:
        lines = (self.folder / thread_id / "ledger.txt").read_text(encoding="utf-8").split("\n")
        return [line for line in lines if line.startswith("answered")]


@pytest.fixture
def fire(nursery: Nursery, database: str, tmp_path: Path) -> Fire:
    return Fire(nursery, database, tmp_path)


@pytest.mark.requirement("Z1-07")
@pytest.mark.parametrize("way", WAYS)
def test_answer_counts_once_wherever_the_server_dies(fire: Fire, way: str, request: Any):
    answer, graph, value = WAYS[way]
    with Store.open(fire.database) as store:
        app = Bide(store, all_graphs())
        stays = fire.nursery.server(fire.database, worker=False)
        points = fire.points(app, stays, answer, graph)
        assert any(point.split("@")[0].endswith(":committed") for point in points), points
        chosen = points if "file" in request.node.name else [one for one in points if ":committed" in one]

        for number, point in enumerate(chosen):
            thread_id = f"t-{number}"
            wait_id = fire.thread(app, stays, graph, thread_id)
            dies = fire.nursery.server(fire.database, worker=False, point=point)
            try:
                was_told = answer(dies.url, thread_id, wait_id).status_code < 300
            except httpx.TransportError:
                was_told = False
            if was_told:
                fire.nursery.kill(dies.pid)
            else:
                assert fire.nursery.ended(dies.pid) == -signal.SIGKILL, point

            if was_told:
                assert store.wait(wait_id).status == "answered", point
            answer(stays.url, thread_id, wait_id)  # by a client that has heard nothing, or does not know
            fire.settle(app)

            assert fire.answered(thread_id) == [f"answered {value.format(thread_id=thread_id)}"], point
            assert app.get(thread_id).status == "done"
            assert [event.kind for event in store.events(thread_id)].count("run.done") >= 1
        fire.nursery.kill(stays.pid)
        assert store.verify().is_sound
