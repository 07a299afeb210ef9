"""`GET /events` tells what happens in all threads of the caller: page by page, or live, from where one stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from bide import Bide
from bide.clock import SystemClock
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.caller import READ, RUN
from bide.server.context import Context
from bide.server.settings import AuthSettings
from tests.runtime.world import StillClock
from tests.server.outgoing.outside import PATIENCE, until

STREAM = {"accept": "text/event-stream"}


@pytest.fixture(autouse=True)
def real_time(clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass by itself."""
    monkeypatch.setattr(clock, "now", SystemClock().now)


def run(app: Bide, thread_id: str, owner: str = "") -> None:
    app.start("answers", {"given": 1}, thread_id=thread_id, owner=owner)
    app.run_ready()


@pytest.fixture
def client(app: Bide) -> Iterator[TestClient]:
    with TestClient(create_app(app, Settings())) as opened:
        yield opened


# ── Page by page ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_pages_join_to_everything_that_happened(app: Bide, client: TestClient) -> None:
    run(app, "a")
    run(app, "b")

    pages, since = [], None
    while not pages or pages[-1]["more"]:
        pages.append(client.get("/events", params={"limit": 2, **({"since": since} if since else {})}).json())
        since = pages[-1]["cursor"]

    found = [(event["thread_id"], event["kind"]) for page in pages for event in page["events"]]
    assert found == [(name, kind) for name in ("a", "b") for kind in ("run.ready", "run.started", "run.done")]
    assert client.get("/events", params={"since": since}).json() == {"events": [], "cursor": since, "more": False}


def test_now_is_a_place_to_begin(app: Bide, client: TestClient) -> None:
    run(app, "a")

    cursor = client.get("/events", params={"since": "now"}).json()["cursor"]
    run(app, "b")

    found = client.get("/events", params={"since": cursor}).json()["events"]
    assert {event["thread_id"] for event in found} == {"b"}
    assert found[0]["id"] > cursor or len(found[0]["id"]) > len(cursor)


@pytest.mark.parametrize("headers", [{}, STREAM], ids=["page", "stream"])
def test_cursor_that_nobody_was_told_is_refused_before_anything_is(client: TestClient, headers: dict[str, str]) -> None:
    for since in ("x", "1", "12-x", f"{10**15}-1"):
        refused = client.get("/events", params={"since": since}, headers=headers)

        assert refused.status_code == 422
        assert refused.json()["error"] == "UnknownCursorError"


def test_limit_that_cannot_be_meant_is_refused(client: TestClient) -> None:
    for limit in (0, -1, 1001, "x"):
        assert client.get("/events", params={"limit": limit}).status_code == 422


def test_callers_see_their_own_threads_alone(app: Bide) -> None:
    settings = Settings(auth=AuthSettings("keys"))
    keys = {owner: create_key(app.store, owner, owner, [READ])[0] for owner in ("ada", "bob")}
    blind = create_key(app.store, "blind", "ada", [RUN])[0]
    run(app, "hers", owner="ada")
    run(app, "his", owner="bob")

    with TestClient(create_app(app, settings)) as client:
        found = {
            owner: {event["thread_id"] for event in client.get("/events", headers={"x-api-key": key}).json()["events"]}
            for owner, key in keys.items()
        }
        refused = [client.get("/events").status_code, client.get("/events", headers={"x-api-key": blind}).status_code]

    assert found == {"ada": {"hers"}, "bob": {"his"}}
    assert refused == [401, 403]


# ── Live ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Served:
    """A server on loopback, in a thread of its own."""

    def __init__(self, app: Bide, settings: Settings) -> None:
        self.api = create_app(app, settings)
        config = uvicorn.Config(self.api, port=0, log_config=None, timeout_graceful_shutdown=20)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, "the server listens")
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    @property
    def context(self) -> Context:
        found: Context = self.api.state.bide
        return found

    def ask_to_stop(self) -> None:
        """Do what a signal does: open streams are told, and then the server waits for them."""
        if not self._server.should_exit:
            self._server.servers[0].get_loop().call_soon_threadsafe(self.context.stopping.set)
            self._server.should_exit = True

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@contextmanager
def serving(app: Bide, settings: Settings | None = None) -> Iterator[Served]:
    served = Served(app, settings or Settings(heartbeat=30.0))
    try:
        yield served
    finally:
        served.ask_to_stop()
        served.join()


@contextmanager
def streaming(served: Served, **request: Any) -> Iterator[Iterator[dict[str, str]]]:
    headers = {**STREAM, **request.pop("headers", {})}
    with httpx.stream("GET", f"{served.url}/events", headers=headers, timeout=PATIENCE, **request) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield frames(response.iter_lines())


def frames(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Read events, and comments as events without an id."""
    frame: dict[str, str] = {}
    for line in lines:
        if not line:
            yield frame
            frame = {}
        else:
            name, _, value = line.partition(": ")
            frame[name or "comment"] = value


def test_stream_tells_what_happens_from_now_on_with_ids(app: Bide) -> None:
    run(app, "before")
    with serving(app) as served, streaming(served) as stream:
        run(app, "a")

        told = [next(stream) for _ in range(3)]

        assert [one["event"] for one in told] == ["run.ready", "run.started", "run.done"]
        assert [json.loads(one["data"])["id"] for one in told] == [one["id"] for one in told]
        assert {json.loads(one["data"])["thread_id"] for one in told} == {"a"}


def test_stream_goes_on_behind_the_last_event_that_was_seen_also_on_another_server(app: Bide) -> None:
    with serving(app) as first, streaming(first) as stream:
        run(app, "a")
        seen = [next(stream) for _ in range(2)]
    run(app, "b")

    with serving(app) as second, streaming(second, headers={"last-event-id": seen[-1]["id"]}) as stream:
        rest = [next(stream) for _ in range(4)]

    found = [(json.loads(one["data"])["thread_id"], one["event"]) for one in (*seen, *rest)]
    assert found == [(name, kind) for name in ("a", "b") for kind in ("run.ready", "run.started", "run.done")]


@pytest.mark.parametrize("begin", [{"headers": {"last-event-id": "-1"}}, {"params": {"since": "0-0"}}])
def test_stream_can_begin_at_the_beginning(app: Bide, begin: dict[str, Any]) -> None:
    run(app, "a")

    with (
        serving(app) as served,
        streaming(
            served,
            **begin,
        ) as stream,
    ):
        assert next(stream)["event"] == "run.ready"


def test_quiet_stream_gives_signs_of_life(app: Bide) -> None:
    with serving(app, Settings(heartbeat=0.05)) as served, streaming(served) as stream:
        assert [next(stream) for _ in range(3)] == [{"comment": "heartbeat"}] * 3


def test_stream_ends_when_the_server_stops(app: Bide) -> None:
    with serving(app) as served, streaming(served) as stream:
        until(lambda: served.context.hub.followers == 1, "somebody follows")
        served.ask_to_stop()

        assert list(stream) == []
        served.join()


def test_stream_that_is_left_leaves_nothing_behind(app: Bide) -> None:
    with serving(app, Settings(heartbeat=0.05)) as served:
        with streaming(served) as stream:
            next(stream)
            assert served.context.hub.followers == 1

        until(lambda: served.context.hub.followers == 0, "nobody follows any more")
