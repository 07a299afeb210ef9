"""Many who answer at the same moment, over a real server: one of them is the first."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from bide import Bide, Store
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.settings import AuthSettings, LimitSettings
from tests.server.native.world import graphs
from tests.server.running import running_server
from tests.stores import opened_store

CROWD = 16


@pytest.fixture(params=("file", "postgres"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


class Crowd:
    """Several people, each with a key of their own, who all act at once."""

    def __init__(self, app: Bide, url: str) -> None:
        self.app, self.url = app, url
        self.keys = [create_key(app.store, f"person {number}", "")[0] for number in range(CROWD)]

    def ask(self, graph: str) -> str:
        self.app.start(graph, {}, thread_id="t", owner="")
        list(self.app.follow("t", until="rest"))
        return self.app.waits(thread_id="t")[0].id

    def all_at_once(self, path: str, bodies: list[Any], keys: list[str] | None = None) -> list[httpx.Response]:
        gate = threading.Barrier(CROWD)

        def one(number: int) -> httpx.Response:
            with httpx.Client(headers={"x-api-key": (keys or self.keys)[number]}, timeout=30) as client:
                client.get(f"{self.url}/ok")  # connected, before anybody begins
                gate.wait(30)
                return client.post(f"{self.url}{path}", json=bodies[number])

        with ThreadPoolExecutor(CROWD) as pool:
            return list(pool.map(one, range(CROWD)))


@pytest.fixture
def crowd(store: Store) -> Iterator[Crowd]:
    settings = Settings(auth=AuthSettings("keys"), limits=LimitSettings(rate=0), worker=False)
    app = Bide(store, graphs())
    with app.worker(poll=0.05), running_server(create_app(app, settings)) as url:
        yield Crowd(app, url)


@pytest.mark.requirement("Z1-08")
def test_of_many_who_answer_at_once_one_is_the_first_and_all_others_are_told_who(crowd: Crowd):
    wait_id = crowd.ask("question")

    told = crowd.all_at_once(f"/waits/{wait_id}/answer", [{"value": number} for number in range(CROWD)])

    assert Counter(one.status_code for one in told) == {200: 1, 409: CROWD - 1}
    (first,) = [number for number, one in enumerate(told) if one.status_code == 200]
    by = told[first].json()["resolution"]["by"]
    assert {one.json()["resolution"]["by"] for one in told} == {by}
    list(crowd.app.follow("t"))
    assert crowd.app.get("t").values["answer"] == first
    assert sum(event.kind == "wait.answered" for event in crowd.app.store.events("t")) == 1


@pytest.mark.requirement("Z1-08")
def test_one_who_sends_the_same_many_times_at_once_is_told_the_same_and_it_counts_once(crowd: Crowd):
    wait_id = crowd.ask("pay")
    body = {"value": "approve", "idempotency_key": "k"}

    told = crowd.all_at_once(f"/waits/{wait_id}/answer", [body] * CROWD, crowd.keys[:1] * CROWD)

    assert {one.status_code for one in told} == {200}
    assert Counter(one.json()["status"] for one in told) == {"resumed": 1, "already_resolved": CROWD - 1}
    assert len({str(one.json()["resolution"]) for one in told}) == 1


@pytest.mark.requirement("Z1-08")
def test_many_who_resume_a_thread_at_once_are_each_told_the_truth(crowd: Crowd):
    crowd.ask("question")

    told = crowd.all_at_once("/threads/t/resume", [{"value": number} for number in range(CROWD)])

    kinds = Counter(one.status_code for one in told)
    assert kinds[200] == 1
    assert kinds[200] + kinds[409] + kinds[400] == CROWD, "late, or it is not paused any more"
    list(crowd.app.follow("t"))
    (first,) = [number for number, one in enumerate(told) if one.status_code == 200]
    assert crowd.app.get("t").values["answer"] == first


def test_many_who_begin_the_same_conversation_at_once_begin_it_once(crowd: Crowd):
    body = {"graph": "question", "input": {"given": 1}}

    told = crowd.all_at_once("/conversations/t", [body] * CROWD)

    starts = [event for event in crowd.app.store.events("t") if event.kind == "run.ready"]
    assert len(starts) == 1
    assert Counter(one.status_code for one in told)[500] == 0
    assert {one.status_code for one in told} <= {200, 202, 409}
