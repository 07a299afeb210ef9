"""Open pages hear at once that something has changed, and that somebody is still there otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from bide import Bide, MemorySaver, Store
from bide.server import Settings, create_app
from tests.server.pages.desk import graphs
from tests.server.running import running_server


@pytest.fixture
def store() -> Iterator[Store]:
    with MemorySaver() as opened:
        yield opened


@pytest.fixture
def app(store: Store) -> Bide:
    return Bide(store, graphs())


@pytest.fixture
def url(app: Bide) -> Iterator[str]:
    with running_server(create_app(app, Settings(heartbeat=0.1, worker=False))) as running:
        yield running


@contextmanager
def listening(address: str) -> Iterator[Iterator[str]]:
    with httpx.Client(timeout=30) as client, client.stream("GET", address) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        yield stream.iter_lines()


def heard(lines: Iterator[str]) -> dict[str, object]:
    """The next word about a change."""
    told: dict[str, object] = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
    return told


def ask(app: Bide, thread_id: str) -> None:
    app.start("pay", {}, thread_id=thread_id)
    while app.run_ready():
        pass


def test_page_hears_how_many_wait_as_soon_as_that_changes(app: Bide, url: str):
    with listening(f"{url}/inbox/live") as lines:
        assert heard(lines) == {"waiting": "0"}
        ask(app, "a")

        counts = iter(lambda: heard(lines)["waiting"], "1")

        assert set(counts) <= {"0"}  # accepted, started: each is a change, until it waits


def test_page_of_a_thread_hears_of_that_thread(app: Bide, url: str):
    ask(app, "a")
    with listening(f"{url}/inbox/live?thread=a") as lines:
        assert heard(lines) == {"waiting": "1"}

        app.wake(app.waits(thread_id="a")[0].id, "approve")

        assert heard(lines) == {"waiting": "0"}


def test_quiet_stream_shows_that_somebody_is_there(url: str):
    with listening(f"{url}/inbox/live") as lines:
        heard(lines)

        assert next(line for line in lines if line) == ": still here"


def test_stream_of_a_thread_that_is_not_there_is_refused(url: str):
    assert httpx.get(f"{url}/inbox/live?thread=none").status_code == 404


def test_stream_ends_when_the_server_is_told_to_stop(app: Bide):
    api = create_app(app, Settings(worker=False))
    with running_server(api) as running, listening(f"{running}/inbox/live") as lines:
        heard(lines)

        api.state.bide.stopping.set()

        assert [line for line in lines if line.startswith("data:")] == []
