"""A server says whether it lives, and whether requests should be sent to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from bide import Bide, Store
from bide.server import Settings, create_app
from tests.runtime.world import graph


def test_server_that_is_well_is_ready(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}

    answer = client.get("/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {"stopping": "ok", "store": "ok", "schema": "ok"}}


def test_server_that_is_about_to_stop_takes_no_more_requests(client: TestClient, api: FastAPI) -> None:
    api.state.bide.stopping.set()

    answer = client.get("/ready")

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["checks"]["stopping"] == "the server is stopping"
    assert client.get("/health").status_code == 200


def test_worker_counts_once_it_claims(client: TestClient, api: FastAPI, app: Bide) -> None:
    worker = api.state.bide.worker = app.worker()
    before = client.get("/ready")

    with worker:
        worker._working.wait(30)
        during = client.get("/ready")
    after = client.get("/ready")

    assert (before.status_code, during.status_code, after.status_code) == (503, 200, 503)
    assert during.json()["checks"]["worker"] == "ok"
    assert after.json()["checks"]["worker"] == "the worker does not claim"


def test_store_that_is_gone_is_told_without_its_name(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'bide.db'}")
    with TestClient(create_app(Bide(store, [graph(lambda state: {}, "does")]), Settings())) as client:
        store.database.close()

        answer = client.get("/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["store"].endswith("Error")
    assert str(tmp_path) not in answer.text


def test_schema_that_was_put_back_is_noticed(client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = store.version
    monkeypatch.setattr(store, "version", found + 1)

    answer = client.get("/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["schema"] == f"the schema is {found}, and this server needs {found + 1}"
