"""Metrics say what the process does and how the store is doing, and cost the database next to nothing."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from bide import Bide, Store
from bide.errors import StoreUnavailableError
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.observe import metrics as observed
from bide.server.settings import AuthSettings
from bide.store.database import queries
from bide.store.pulse import read_pulse
from tests.runtime.world import StillClock, graph

LABELS = ("route", "method", "status", "error", "outcome")
QUERIES = [
    *("count_live_runs", "count_running", "count_queued", "count_stuck", "count_ready", "count_ready_limited"),
    *("count_pending_deliveries", "count_outbox", "count_open_waits"),
]


def samples(client: TestClient) -> dict[tuple[str, ...], float]:
    """What is scraped: names with the values of their labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_runs_and_waits_are_counted_by_how_they_stand(client: TestClient, app: Bide) -> None:
    for number in range(3):
        app.start("asks", {"given": 1}, thread_id=f"waiting-{number}")
    app.start("asks", {"given": "fail"}, thread_id="failed")
    app.run_ready(most=10)
    app.start("asks", {"given": 1}, thread_id="ready")
    app.start("asks", {"given": 1}, thread_id="limited", limit=("some", 1))
    app.start("asks", {"given": 1}, thread_id="later", delay="1h")

    found = samples(client)

    runs = {
        status: found["bide_runs", status] for status in ("waiting", "failed", "ready", "queued", "running", "dead")
    }
    assert runs == {"waiting": 3, "failed": 1, "ready": 2, "queued": 1, "running": 0, "dead": 0}
    assert found["bide_open_waits",] == 3
    assert found["bide_ready_runs",] == 2
    assert found["bide_store_up",] == 1
    assert found["bide_stream_followers",] == 0
    assert found["bide_outbox_messages", "open"] == 0
    assert found["bide_timer_lateness_seconds",] == 0


def test_lateness_and_age_tell_how_far_behind_one_is() -> None:
    clock = StillClock()
    with Store.open(":memory:", clock=clock) as store:
        app = Bide(store, [graph(lambda state: {}, "does")])
        app.start("does", {"given": 1}, thread_id="ready")
        app.start("does", {"given": 1}, thread_id="due", delay="1m")
        clock.pass_by(minutes=3)
        with TestClient(create_app(app, Settings())) as client:
            found = samples(client)

    assert found["bide_ready_age_seconds",] == 180
    assert found["bide_timer_lateness_seconds",] == 120


def test_requests_are_counted_by_their_route_and_never_by_their_address(client: TestClient, api: FastAPI) -> None:
    api.add_api_route("/x/w/{token}", lambda token: {"token": token})
    client.get("/x/w/a-secret")
    client.get("/x/w/another")
    client.get("/no/such/place")
    client.request("PROPFIND", "/health")

    found = samples(client)

    assert found["bide_http_requests_total", "/x/w/{token}", "GET", "200"] == 2
    assert found["bide_http_requests_total", "(none)", "GET", "404"] == 1
    assert found["bide_http_requests_total", "/health", "other", "405"] == 1
    assert found["bide_http_request_duration_seconds_count", "/x/w/{token}", "GET"] == 2
    assert "a-secret" not in client.get("/metrics").text


def test_failure_of_a_route_is_counted_as_one(client: TestClient, api: FastAPI) -> None:
    def fail() -> None:
        raise StoreUnavailableError("away")

    def break_() -> None:
        raise RuntimeError("broken")

    api.add_api_route("/fails", fail)
    api.add_api_route("/breaks", break_)
    codes = [client.get(path).status_code for path in ("/fails", "/breaks")]

    found = samples(client)

    assert codes == [503, 500]
    assert found["bide_http_requests_total", "/fails", "GET", "503"] == 1
    assert found["bide_http_requests_total", "/breaks", "GET", "500"] == 1
    assert found["bide_store_errors_total", "StoreUnavailableError"] == 1


def test_worker_of_the_process_is_told_of(client: TestClient, api: FastAPI, app: Bide) -> None:
    assert ("bide_worker_up",) not in samples(client)
    worker = api.state.bide.worker = app.worker(concurrency=3)
    app.start("asks", {"given": 1}, thread_id="one")

    with worker:
        list(app.follow("one", until="rest"))
    found = samples(client)

    assert found["bide_runs_driven_total", "waiting"] == 1
    assert (found["bide_worker_up",], found["bide_worker_busy",], found["bide_worker_concurrency",]) == (0, 0, 3)


def test_scraping_again_and_again_asks_the_database_once(
    client: TestClient, app: Bide, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(observed, "read_pulse", lambda store: looks.append(1) or read_pulse(store))

    for _ in range(5):
        samples(client)
    monkeypatch.setattr(observed, "elapsed", lambda: 10.0**9)
    samples(client)

    assert len(looks) == 2


def test_what_took_long_to_count_is_kept_for_longer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(observed, "elapsed", lambda: now[0])
    looks: list[float] = []

    def slow(store: Store) -> Any:
        now[0] += 2.0
        looks.append(now[0])
        return read_pulse(store)

    monkeypatch.setattr(observed, "read_pulse", slow)
    for _ in range(3):
        samples(client)
        now[0] += 60.0

    assert len(looks) == 2


def test_store_that_is_away_is_told_and_the_rest_is_there(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(store: Store) -> Any:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(observed, "read_pulse", away)
    client.get("/health")

    found = samples(client)

    assert found["bide_store_up",] == 0
    assert ("bide_open_waits",) not in found
    assert found["bide_http_requests_total", "/health", "GET", "200"] == 1


def test_counts_of_everybody_are_for_those_who_may_do_everything(app: Bide) -> None:
    reader, _ = create_key(app.store, "ada", scopes=["read"])
    admin, _ = create_key(app.store, "prometheus", scopes=["admin"])

    with TestClient(create_app(app, Settings(auth=AuthSettings("keys")))) as client:
        keys = [{}, {"x-api-key": reader}, {"authorization": f"Bearer {admin}"}]
        codes = [client.get("/metrics", headers=headers).status_code for headers in keys]

    assert codes == [401, 403, 200]


def test_each_server_has_metrics_of_its_own(app: Bide) -> None:
    with TestClient(create_app(app)) as one, TestClient(create_app(app)) as other:
        one.get("/health")

        assert samples(one)["bide_http_requests_total", "/health", "GET", "200"] == 1
        assert ("bide_http_requests_total", "/health", "GET", "200") not in samples(other)


# ── What it costs ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("query", QUERIES)
def test_sqlite_finds_what_it_counts_by_an_index(tmp_path: Any, query: str) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:

        def explain(tx: Any) -> list[str]:
            return [row[-1] for row in tx.connection.execute("EXPLAIN QUERY PLAN " + tx.sql[query], {"now": 0})]

        plan = store.database.read(explain)

    tables = [line for line in plan if line.startswith(("SCAN", "SEARCH")) and "CONSTANT ROW" not in line]
    assert tables
    assert all("INDEX" in line for line in tables), plan


def test_postgres_reads_no_table_from_end_to_end(postgres_database: str) -> None:
    Store.open(postgres_database).close()
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO runs (thread_id, run_id, status, epoch, created_at, updated_at, lane, owner, rank, crashes) "
            "SELECT 't' || n, 'r', CASE WHEN n % 1000 = 0 THEN 'waiting' ELSE 'done' END, 1, n, n, '', '', 0, 0 "
            "FROM generate_series(1, 30000) n"
        )
        connection.execute(
            "INSERT INTO outbox (message_id, owner, kind, status, attempts, next_at, created_at, body) "
            "SELECT 'm' || n, '', 'k', CASE WHEN n % 1000 = 0 THEN 'open' ELSE 'sent' END, 1, n, n, '' "
            "FROM generate_series(1, 30000) n"
        )
        connection.execute(
            "INSERT INTO deliveries (delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, "
            "received_at, body) SELECT 'd' || n, '', 's', 'e' || n, 'k', 'n', '', 0, 0, n, '' "
            "FROM generate_series(1, 30000) n"
        )
        connection.execute(
            "INSERT INTO waits (wait_id, thread_id, owner, run_id, task_id, node, key, kind, status, consumed, digest, "
            "question, answered_at, created_at) "
            "SELECT 'w' || n, 't', '', 'r', 'k', 'n', '', 'call', 'answered', 1, '', '', n, n "
            "FROM generate_series(1, 30000) n"
        )
        connection.execute("VACUUM ANALYZE")
        plans = {
            query: "\n".join(
                row[0] for row in connection.execute("EXPLAIN " + queries()[query].replace(":now", "0")).fetchall()
            )
            for query in QUERIES
        }

    assert {query: plan for query, plan in plans.items() if "Seq Scan" in plan} == {}
