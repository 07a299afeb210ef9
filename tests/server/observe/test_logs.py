"""Each thing that happened is one line, which says what it is about and never holds a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from bide import Bide, Store
from bide.server import Settings, create_app
from bide.server.observe.logs import LOGGERS, blotted, write_logs
from tests.runtime.world import graph

KEY = "bide_0123456789abcdef_" + "ab" * 32
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged as JSON; the loggers are put back afterwards."""
    names = (*LOGGERS, "uvicorn.access")
    found = [logging.getLogger(name) for name in names]
    before = [(one.handlers, one.propagate, one.level, one.disabled) for one in found]
    stream = io.StringIO()
    write_logs("info", as_json=True, to=stream)
    yield stream
    for logger, (handlers, propagate, level, disabled) in zip(found, before, strict=True):
        logger.handlers, logger.propagate, logger.disabled = handlers, propagate, disabled
        logger.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_request_is_one_line_with_its_route_status_and_duration(
    client: TestClient, api: FastAPI, written: io.StringIO
) -> None:
    api.add_api_route("/threads/{thread_id}/x/{token}", lambda thread_id, token: {})

    client.get("/threads/t1/x/a-token?key=another", headers={"authorization": f"Bearer {KEY}"})

    (line,) = [line for line in lines(written) if line["logger"] == "bide.access"]
    assert line["level"] == "info"
    assert line["route"] == "/threads/{thread_id}/x/{token}"
    assert (line["method"], line["status"], line["thread_id"]) == ("GET", 200, "t1")
    assert line["duration_ms"] >= 0
    assert line["time"].endswith("+00:00")
    assert not [word for word in ("a-token", "another", KEY) if word in written.getvalue()]


def test_signs_of_life_are_not_logged_unless_they_fail(client: TestClient, api: FastAPI, written: io.StringIO) -> None:
    client.get("/health")
    client.get("/ready")
    assert lines(written) == []

    api.state.bide.stopping.set()
    client.get("/ready")

    assert [(line["route"], line["status"]) for line in lines(written)] == [("/ready", 503)]


def test_line_that_a_route_writes_names_its_request(client: TestClient, api: FastAPI, written: io.StringIO) -> None:
    def route(run_id: str) -> dict[str, str]:
        logging.getLogger("bide.server").warning("something")
        return {}

    api.add_api_route("/runs/{run_id}/x", route)

    client.get("/runs/r7/x")

    (line,) = [line for line in lines(written) if line["message"] == "something"]
    assert (line["run_id"], line["route"]) == ("r7", "/runs/{run_id}/x")


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_line_that_a_node_writes_names_its_thread_and_run(store: Store, written: io.StringIO) -> None:
    def node(state: dict[str, Any]) -> dict[str, Any]:
        logging.getLogger("bide.mine").info("inside")
        return {"answer": 1}

    app = Bide(store, [graph(node, "works")])
    with app.worker():
        run = app.start("works", {"given": 1}, thread_id="t1")
        list(app.follow("t1"))

    (line,) = [line for line in lines(written) if line["message"] == "inside"]
    assert (line["thread_id"], line["run_id"], line["graph"]) == ("t1", run.run_id, "works")
    assert any(line["logger"] == "bide.worker" and line.get("thread_id") == "t1" for line in lines(written))


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_failure_is_one_line_too(app: Bide, written: io.StringIO) -> None:
    api = create_app(app, Settings())

    def break_(token: str) -> None:
        raise RuntimeError(f"broken {JWT}")

    api.add_api_route("/x/w/{token}", break_)
    with TestClient(api, raise_server_exceptions=False) as client:
        assert client.get("/x/w/a-token").status_code == 500

    told = [line for line in lines(written) if "RuntimeError" in line.get("error", "")]
    assert told
    assert JWT not in written.getvalue()
    assert "a-token" not in written.getvalue()


def test_text_for_people_says_the_same_in_short(written: io.StringIO) -> None:
    stream = io.StringIO()
    write_logs("info", as_json=False, to=stream)

    logging.getLogger("bide.server").warning("something", extra={"about": {"thread_id": "t1"}})

    at, level, *rest = stream.getvalue().split()
    assert (len(at), level, rest) == (8, "warning", ["something", "thread=t1"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"key {KEY} is bad", "key … is bad"),
        (f"Authorization: Bearer {JWT}", "Authorization: Bearer …"),
        (f"token {JWT}", "token …"),
        ("x-api-key: abcdef", "x-api-key: …"),
        ("https://x.org/?token=abc&n=1", "https://x.org/?token=…&n=1"),
        ("postgresql://bide:hunter2@db/bide", "postgresql://…@db/bide"),
        ("GET /w/abc.def failed.", "GET /w/… failed."),
        ("thread 01a1e5c4-8085-7000-a4dd-966eb6142f8f waits", "thread 01a1e5c4-8085-7000-a4dd-966eb6142f8f waits"),
    ],
)
def test_what_looks_like_a_secret_is_blotted_out(text: str, left: str) -> None:
    assert blotted(text) == left
