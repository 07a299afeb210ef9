"""A supervisor and its workers over HTTP (Longhouse): from a message to its answer, with nothing mocked in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from bide import START, Bide, StateGraph, Store, get_stream_writer
from bide.server import Settings, create_app
from bide.server.settings import WebhookSettings
from tests.server.running import running_server, until
from tests.server.supervised import PATIENCE, Sent, Task, household, streaming

ALL = "stream_mode=run_modes&stream_mode=lifecycle"


class House:
    """A server with a worker, and whoever calls it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=PATIENCE)

    def ask(self, text: str, thread_id: str = "t", **more: Any) -> str:
        """Send a message of a person; return the id of the run that it starts."""
        body = {"assistant_id": "supervisor", "input": {"messages": [{"role": "user", "content": text}]}, **more}
        return str(self.post(f"/threads/{thread_id}/runs", {**body, "if_not_exists": "create"})["run_id"])

    def finish(self, task: str, result: str) -> dict[str, Any]:
        """Bring the fact that the workers with this task wait for."""
        return self.post("/deliveries", {"name": "found", "payload": {"task": task, "result": result}})

    def waiting(self, thread_id: str = "t") -> dict[str, Any]:
        """Return what a thread waits for, as soon as it does."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = self.get(f"/waits?thread_id={thread_id}")["waits"]
            return bool(found)

        until(is_there, f"{thread_id} waits")
        return found[0]

    def until_done(self, thread_id: str = "t") -> list[dict[str, Any]]:
        """Return the messages of a thread that has come to its end."""
        until(lambda: self.get(f"/threads/{thread_id}")["run_status"] == "done", f"{thread_id} is done")
        return list(self.get(f"/threads/{thread_id}/state")["values"]["messages"])

    def jobs(self, thread_id: str = "t") -> list[str]:
        """Return the ids of the worker threads of a thread."""
        return [child["thread_id"] for child in self.get(f"/threads/{thread_id}/children")["threads"]]

    def unheard(self, thread_id: str = "t") -> Counter[str]:
        """Count the calls about a thread that were tried, and that nobody has heard."""
        messages = self.get("/outbox?status=open")
        return Counter(one["kind"] for one in messages if one["thread_id"] == thread_id and one["attempts"])

    def get(self, path: str) -> Any:
        """Return what is there."""
        return self.client.get(path).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        """Send something; return what is told."""
        return self.client.post(path, json=body).raise_for_status().json()


@contextmanager
def served(store: Store, settings: Settings) -> Iterator[House]:
    app = Bide(store, household())
    with app.worker(poll=0.05), running_server(create_app(app, settings)) as url:
        house = House(url)
        with house.client:
            yield house


@pytest.fixture
def house(served_store: Store) -> Iterator[House]:
    with served(served_store, Settings(heartbeat=0.2)) as opened:
        yield opened


@pytest.mark.requirement("Z1-04", "Z1-20", "Z1-29")
def test_stream_tells_the_job_that_is_waited_for_stays_open_and_tells_that_it_goes_on(house: House):
    house.post("/threads", {"thread_id": "t"})
    with streaming(f"{house.url}/threads/t/stream?{ALL}", after="-") as stream:
        run_id = house.ask("count the logs")

        waiting = stream.until("values", says=lambda data: data.get("__interrupt__"))
        paused = stream.until("lifecycle", event="waiting")
        (asked,) = waiting.data["__interrupt__"]
        assert asked["value"] == {
            **asked["value"],
            "type": "worker_pending",
            "job_id": house.jobs()[0],
            "task": "count the logs",
            "message": "Working on: count the logs",
        }
        for _ in range(3):
            stream.until_beat()

        house.finish("count the logs", "42")
        resumed = stream.until("lifecycle", event="answered")
        done = stream.until("lifecycle", event="done")

    assert paused.data["run_id"] == resumed.data["run_id"] == done.data["run_id"] == run_id
    assert resumed.data["wait_id"] == asked["id"]


@pytest.mark.requirement("Z1-05")
def test_calls_with_the_same_text_are_jobs_of_their_own_and_none_is_submitted_twice(house: House):
    house.ask("count the logs\ncount the logs")
    house.waiting()
    before = house.jobs()

    told = house.finish("count the logs", "42")
    messages = house.until_done()

    assert len(before) == 2
    assert Counter(told["threads"]) == Counter(before) == Counter(house.jobs())
    results = [(one["tool_call_id"], one["content"]) for one in messages if one["type"] == "tool"]
    assert results == [("call-1", "count the logs: 42"), ("call-2", "count the logs: 42")]


@pytest.mark.requirement("Z1-06")
def test_nobody_who_is_told_of_the_resume_can_break_it(served_store: Store):
    """A follower leaves in the middle of the pause, and a receiver of webhooks is not there at all."""
    nowhere = WebhookSettings("http://127.0.0.1:9/gone", events=("wait.answered", "run.finished"), is_private=True)
    with served(served_store, Settings(heartbeat=0.2, webhooks=(nowhere,))) as house:
        house.post("/threads", {"thread_id": "t"})
        with streaming(f"{house.url}/threads/t/stream?{ALL}", after="-") as stream:
            house.ask("count the logs")
            left_at = stream.until("lifecycle", event="waiting")

        house.finish("count the logs", "42")
        messages = house.until_done()

        assert messages[-1]["content"] == "count the logs: 42"
        with streaming(f"{house.url}/threads/t/stream?{ALL}", after=left_at.id) as stream:
            stream.until("lifecycle", event="answered")
            stream.until("lifecycle", event="done")
        until(lambda: house.unheard() == {"wait.answered": 1, "run.finished": 1}, "both calls were tried in vain")


@pytest.mark.requirement("Z1-07", "Z1-25")
def test_message_is_answered_through_a_worker_that_truly_ends_and_truly_wakes_its_supervisor(house: House):
    run_id = house.ask("count the logs")
    waiting = house.waiting()
    paused = house.get("/threads/t")

    house.finish("count the logs", "42")
    messages = house.until_done()

    assert (paused["run_status"], waiting["kind"], waiting["run_id"]) == ("waiting", "child", run_id)
    assert [(one["type"], one["content"]) for one in messages] == [
        ("human", "count the logs"),
        ("ai", "I hand this to a worker."),
        ("tool", "count the logs: 42"),
        ("ai", "count the logs: 42"),
    ]
    (run,) = house.get("/threads/t/runs")
    assert (run["run_id"], run["run_status"]) == (run_id, "done")


@pytest.mark.requirement("Z1-09")
def test_each_message_of_an_assistant_has_an_id_of_its_own_and_a_later_one_replaces_none(house: House):
    body = {"stream_mode": ["values"], "metadata": {"request": "r-1"}}
    house.post("/threads", {"thread_id": "t"})
    with streaming(f"{house.url}/threads/t/stream?{ALL}", after="-") as stream:
        run_id = house.ask("count the logs", **body)
        paused = stream.until("values", says=lambda data: data.get("__interrupt__"))
        house.finish("count the logs", "42")
        last = stream.until("values", says=lambda data: data["messages"][-1]["content"] == "count the logs: 42")
    messages = house.until_done()

    assistant = [one for one in messages if one["type"] == "ai"]
    assert len({one["id"] for one in messages} | {run_id, "r-1"}) == len(messages) + 2
    assert [one["content"] for one in assistant] == ["I hand this to a worker.", "count the logs: 42"]
    assert paused.data["messages"] == messages[:2]
    assert [one["id"] for one in last.data["messages"]] == [one["id"] for one in messages][: len(last.data["messages"])]


def told_of_run(house: House, run_id: str, query: str = "", after: str = "") -> list[Sent]:
    """Read the stream of a run to its end."""
    with streaming(f"{house.url}/threads/t/runs/{run_id}/stream{query}", after) as stream:
        return list(stream.rest())


@pytest.mark.seed("test_resumable_stream.py::test_stream_with_last_event_id_header")
@pytest.mark.seed("test_stream_control.py::close marker honoured only after its event id is streamed")
@pytest.mark.seed("test_stream_control.py::fallback when absent")
def test_stream_of_a_run_that_is_over_goes_on_behind_the_last_event_and_ends_after_the_end_was_told(house: House):
    run_id = house.ask("count the logs")
    house.waiting()
    house.finish("count the logs", "42")
    house.until_done()

    whole = told_of_run(house, run_id)

    assert [sent.event for sent in whole].index("end") == len(whole) - 1
    for count, sent in enumerate(whole[:-1], 1):
        assert told_of_run(house, run_id, after=sent.id) == whole[count:]


@pytest.mark.seed("test_stream_control.py::keep_open cancels close")
def test_stream_of_a_thread_stays_open_when_a_run_has_ended_and_tells_the_next_one(house: House):
    told, started = [], []
    house.post("/threads", {"thread_id": "t"})
    with streaming(f"{house.url}/threads/t/stream?{ALL}", after="-") as stream:
        for result in ("42", "43"):
            started.append(house.ask(f"count the logs, {result}"))
            stream.until("lifecycle", event="waiting")
            house.finish(f"count the logs, {result}", result)
            told.append(stream.until("lifecycle", event="done").data["run_id"])
            stream.until_beat()

    assert told == started


@pytest.mark.seed("test_resumable_stream.py::test_stream_exclude_tokens")
def test_tokens_are_told_to_those_who_ask_for_them_and_not_to_others(house: House):
    run_id = house.ask("count the logs", stream_mode=["messages", "values"])
    house.waiting()
    house.finish("count the logs", "42")
    house.until_done()

    with_tokens = [sent.event for sent in told_of_run(house, run_id, "?stream_mode=messages&stream_mode=values")]
    without = [sent.event for sent in told_of_run(house, run_id, "?stream_mode=values")]

    assert any(name.startswith("messages/") for name in with_tokens)
    assert [name for name in with_tokens if not name.startswith("messages/")] == without


@pytest.mark.seed("test_event_store.py::datetimes")
@pytest.mark.seed("test_event_store.py::test_invalid_payload_raises_valueerror")
def test_times_are_told_as_text_and_what_has_no_form_as_json_does_not_break_its_run(served_store: Store):
    """There, a payload that is no JSON is refused. Here it is told by its name: telling never breaks a run."""

    class Odd:
        def __repr__(self) -> str:
            return "<something odd>"

    def tells(state: Task) -> Task:
        get_stream_writer()({"at": datetime(2026, 11, 18, 9, 30, tzinfo=UTC), "odd": Odd()})
        return {"summary": "told"}

    teller = StateGraph(Task).add_node(tells).add_edge(START, "tells").compile(name="teller")
    app = Bide(served_store, [teller])
    with app.worker(poll=0.05), running_server(create_app(app)) as url, House(url).client as client:
        body = {"assistant_id": "teller", "input": {}, "stream_mode": ["custom"], "if_not_exists": "create"}
        run_id = client.post("/threads/t/runs", json=body).json()["run_id"]
        until(lambda: client.get("/threads/t").json()["run_status"] == "done", "it is done")
        told = told_of_run(House(url), run_id)

    (custom,) = [sent.data for sent in told if sent.event == "custom"]
    assert custom == {"at": "2026-11-18T09:30:00+00:00", "odd": "<something odd>"}
