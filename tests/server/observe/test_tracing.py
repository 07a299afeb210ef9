"""A trace ends where a thread comes to rest; what goes on later is linked to what made it go on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bide import Bide, Store, spawn
from bide.server import Settings, create_app
from tests.runtime.world import graph

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Where the spans of this process go: a process has one provider, as long as it lives."""
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    trace.set_tracer_provider(provider)
    return found


@pytest.fixture(autouse=True)
def fresh(exporter: InMemorySpanExporter) -> None:
    exporter.clear()


@pytest.fixture
def traced(app: Bide) -> Iterator[TestClient]:
    """A server whose routes start and answer, and whose worker drives when it is asked to."""
    api = create_app(app, Settings(tracing=True))

    def start(thread_id: str) -> dict[str, str]:
        return {"run_id": app.start("asks", {"given": 1}, thread_id=thread_id).run_id}

    def answer(thread_id: str) -> dict[str, bool]:
        (wait,) = app.waits(thread_id=thread_id)
        return {"is_new": app.wake(wait.id, 5).is_new}

    def break_() -> None:
        raise RuntimeError("broken")

    api.add_api_route("/t/{thread_id}", start, methods=["POST"])
    api.add_api_route("/t/{thread_id}/answer", answer, methods=["POST"])
    api.add_api_route("/breaks", break_)
    with TestClient(api, raise_server_exceptions=False) as client:
        yield client


def drive(app: Bide, client: TestClient) -> None:
    """Let a worker drive what is ready."""
    worker = app.worker()
    worker.around = client.app.state.tracing.drives_of(app.store)  # type: ignore[attr-defined]
    with worker:
        for thread in app.list():
            list(app.follow(thread.thread_id, until="rest"))


def spans(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def linked(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def test_request_is_a_span_of_the_callers_trace(traced: TestClient, exporter: InMemorySpanExporter) -> None:
    traced.post("/t/t1", headers={"traceparent": CALLER})

    (span,) = spans(exporter, "POST /t/{thread_id}")
    assert f"{span.context.trace_id:032x}" == CALLER.split("-")[1]
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == CALLER.split("-")[2]
    assert span.kind is trace.SpanKind.SERVER
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/t/{thread_id}",
        "http.response.status_code": 200,
        "bide.thread_id": "t1",
        **{key: value for key, value in (span.attributes or {}).items() if key in ("bide.request_id", "bide.caller")},
    }


def test_drives_are_traces_of_their_own_linked_to_what_made_the_thread_ready(
    traced: TestClient, app: Bide, exporter: InMemorySpanExporter
) -> None:
    traced.post("/t/t1")
    drive(app, traced)
    traced.post("/t/t1/answer")
    drive(app, traced)

    (start,), (answer,) = spans(exporter, "POST /t/{thread_id}"), spans(exporter, "POST /t/{thread_id}/answer")
    first, second = spans(exporter, "run asks")
    assert [first.parent, second.parent] == [None, None]
    assert len({span.context.trace_id for span in (start, answer, first, second)}) == 4
    assert (linked(first), linked(second)) == ([start.context.span_id], [answer.context.span_id])
    outcomes = [(span.attributes or {})["bide.outcome"] for span in (first, second)]
    assert outcomes == ["waiting", "done"]


def test_failures_are_marked(traced: TestClient, app: Bide, exporter: InMemorySpanExporter) -> None:
    traced.get("/breaks")
    app.start("asks", {"given": "fail"}, thread_id="t1")
    drive(app, traced)

    (request,), (run,) = spans(exporter, "GET /breaks"), spans(exporter, "run asks")
    assert [request.status.is_ok, run.status.is_ok] == [False, False]
    assert [event.name for event in run.events] == ["exception"]
    assert linked(run) == []


@pytest.mark.parametrize("store", ["file"], indirect=True)
def test_children_are_linked_to_the_run_that_spawned_them(store: Store, exporter: InMemorySpanExporter) -> None:
    def parent(state: dict[str, Any]) -> dict[str, Any]:
        for number in range(3):
            spawn("child", {"given": number}, key=str(number))
        return {}

    app = Bide(store, [graph(parent, "parent"), graph(lambda state: {}, "child")])
    with TestClient(create_app(app, Settings(tracing=True))) as client:
        app.start("parent", {"given": 1}, thread_id="p")
        drive(app, client)
        drive(app, client)

    (above,) = spans(exporter, "run parent")
    below = spans(exporter, "run child")
    assert len(below) == 3
    assert [linked(span) for span in below] == [[above.context.span_id]] * 3


@pytest.mark.parametrize("store", ["file"], indirect=True)
def test_lines_of_many_who_start_at_once_name_each_its_own_trace(
    traced: TestClient, app: Bide, exporter: InMemorySpanExporter
) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: traced.post(f"/t/t{number}"), range(24)))
    drive(app, traced)

    starts = {(span.attributes or {})["bide.thread_id"]: span for span in spans(exporter, "POST /t/{thread_id}")}
    runs = {(span.attributes or {})["bide.thread_id"]: span for span in spans(exporter, "run asks")}
    assert len(starts) == len(runs) == 24
    assert {name: linked(run) for name, run in runs.items()} == {
        name: [start.context.span_id] for name, start in starts.items()
    }


def test_nothing_is_traced_unless_it_is_asked_for(app: Bide, exporter: InMemorySpanExporter) -> None:
    with TestClient(create_app(app, Settings())) as client:
        client.get("/health")

    assert exporter.get_finished_spans() == ()
