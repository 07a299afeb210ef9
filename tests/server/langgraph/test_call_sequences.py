"""What the chats and inboxes that others have built on this protocol send, call after call, and what they rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from bide import Bide, MemorySaver
from bide.server import Settings, create_app
from tests.server.langgraph.agents import all_agents
from tests.server.langgraph.gates import ARRIVED, GATES, LONG, road
from tests.server.running import running_server

Parts = list[tuple[str, Any]]
STREAMED = {
    "stream_mode": ["values", "messages-tuple", "custom"],
    "stream_subgraphs": True,
    "stream_resumable": True,
    "on_disconnect": "continue",
}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """A client that knows nothing of the protocol."""
    app = Bide(MemorySaver(), [*all_agents(), road()])
    with (
        app.worker(poll=0.05),
        running_server(create_app(app, Settings(heartbeat=0.2))) as url,
        httpx.Client(base_url=url, timeout=LONG) as client,
    ):
        yield client


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"type": "human", "content": text, "id": uuid4().hex}]}


def frames(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Read server-sent events as browsers do."""
    event, data = "", ""
    for line in lines:
        if line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data = line[5:].strip()
        elif not line and event:
            yield event, json.loads(data)
            event, data = "", ""


def streamed(http: httpx.Client, method: str, path: str, **more: Any) -> tuple[httpx.Response, Parts]:
    with http.stream(method, path, **more) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return response, list(frames(response.iter_lines()))


def new_thread(http: httpx.Client) -> str:
    return str(http.post("/threads", json={}).json()["thread_id"])


def values(parts: Parts) -> list[Any]:
    return [data for event, data in parts if event == "values"]


# ── Agent Chat UI ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_chat_ui_talks_and_lists_its_threads(http: httpx.Client) -> None:
    assert http.get("/info").is_success
    thread = new_thread(http)

    body = {"assistant_id": "talk", "input": {**said("hi"), "context": {"url": "/"}}, **STREAMED}
    response, parts = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=body)

    run = parts[0][1]["run_id"]
    assert parts[0][0] == "metadata"
    assert response.headers["content-location"] == f"/threads/{thread}/runs/{run}"
    assert response.headers["location"] == f"/threads/{thread}/runs/{run}/stream"
    assert values(parts)[-1]["messages"][-1]["content"] == "You said: hi"
    assert {"ai"} == {chunk["type"] for event, (chunk, _) in ((e, d) for e, d in parts if e == "messages")}
    history = http.post(f"/threads/{thread}/history", json={"limit": 10}).json()
    assert history[0]["values"] == values(parts)[-1]
    for key, value in (("graph_id", "talk"), ("assistant_id", history[0]["metadata"]["assistant_id"])):
        found = http.post("/threads/search", json={"metadata": {key: value}, "limit": 100}).json()
        assert thread in [one["thread_id"] for one in found]


def test_chat_ui_names_the_newest_checkpoint_with_everything_it_says(http: httpx.Client) -> None:
    thread = new_thread(http)
    place: Any = None

    for number in (1, 2):
        body = {"assistant_id": "talk", "input": said(f"hi {number}"), "checkpoint": place, **STREAMED}
        _, parts = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=body)
        place = http.post(f"/threads/{thread}/history", json={"limit": 10}).json()[0]["checkpoint"]
        assert len(values(parts)[-1]["messages"]) == 2 * number


def test_chat_ui_regenerates_an_answer_and_edits_what_was_said_first(http: httpx.Client) -> None:
    thread = new_thread(http)
    streamed(
        http, "POST", f"/threads/{thread}/runs/stream", json={"assistant_id": "talk", "input": said("hi"), **STREAMED}
    )
    history = http.post(f"/threads/{thread}/history", json={"limit": 10}).json()
    answer = next(one for one in reversed(history) if len(one["values"].get("messages", ())) == 2)
    asked = next(one for one in reversed(history) if len(one["values"].get("messages", ())) == 1)

    again = {"assistant_id": "talk", "checkpoint": answer["parent_checkpoint"], **STREAMED}
    _, regenerated = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=again)
    edited = {"assistant_id": "talk", "input": said("ho"), "checkpoint": asked["parent_checkpoint"], **STREAMED}
    _, anew = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=edited)

    assert [one["content"] for one in values(regenerated)[-1]["messages"]] == ["hi", "You said: hi"]
    assert [one["content"] for one in values(anew)[-1]["messages"]] == ["ho", "You said: ho"]
    branches = http.post(f"/threads/{thread}/history", json={"limit": 100}).json()
    parents = [(one["parent_checkpoint"] or {}).get("checkpoint_id") for one in branches]
    assert parents.count(asked["parent_checkpoint"]["checkpoint_id"]) == 2
    assert parents.count(answer["parent_checkpoint"]["checkpoint_id"]) == 2


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ({"resume": {"decisions": [{"type": "approve"}]}}, {"decisions": [{"type": "approve"}]}),
        (
            {"resume": {"decisions": [{"type": "reject", "message": "no"}]}},
            {"decisions": [{"type": "reject", "message": "no"}]},
        ),
        ({"goto": "__end__"}, None),
    ],
)
def test_chat_ui_decides_what_the_agent_proposes(http: httpx.Client, command: Any, outcome: Any) -> None:
    thread = new_thread(http)
    body = {"assistant_id": "proposing", "input": said("go"), **STREAMED}

    _, parts = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=body)
    head = http.post(f"/threads/{thread}/history", json={"limit": 10}).json()[0]
    (question,) = values(parts)[-1]["__interrupt__"]
    decided = {"assistant_id": "proposing", "input": {}, "command": command, **STREAMED}
    streamed(http, "POST", f"/threads/{thread}/runs/stream", json=decided)

    assert question["value"]["action_requests"][0]["name"] == "send_mail"
    assert head["tasks"][0]["interrupts"][0]["id"] == question["id"]
    shown = http.get(f"/threads/{thread}").json()
    assert (shown["status"], shown["values"].get("outcome")) == ("idle", outcome)


# ── useStream, when a page is loaded again ─────────────────────────────────────────────────────────────────────────


def test_page_that_is_loaded_again_joins_its_run_and_may_stop_it(http: httpx.Client) -> None:
    thread = new_thread(http)
    body = {"assistant_id": "road", "input": {"gate": thread}, "stream_mode": ["values", "updates"]}
    with http.stream("POST", f"/threads/{thread}/runs/stream", json={**body, "stream_resumable": True}) as response:
        run = response.headers["content-location"].rpartition("/")[2]
        before = next(frames(response.iter_lines()))
    assert ARRIVED[thread].wait(LONG)

    query = {"stream_mode": json.dumps(["values", "updates"]), "cancel_on_disconnect": "0"}
    path = f"/threads/{thread}/runs/{run}/stream"
    with http.stream("GET", path, params=query, headers={"Last-Event-ID": "-1"}) as again:
        told = frames(again.iter_lines())
        first = next(told)
        stopped = http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "0", "action": "interrupt"})
        rest = list(told)
    GATES[thread].set()

    assert first == before
    assert (stopped.status_code, stopped.content) == (202, b"")
    assert rest[-1] == ("end", {"run_id": run, "status": "interrupted"})
    assert http.get(f"/threads/{thread}/runs/{run}").json()["status"] == "interrupted"


def test_stream_that_is_quiet_gives_a_sign_of_life(http: httpx.Client) -> None:
    thread = new_thread(http)
    body = {"assistant_id": "road", "input": {"gate": thread}}

    with http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as response:
        beats = 0
        for line in response.iter_lines():
            beats += line == ": heartbeat"
            if beats == 3:
                break
    GATES[thread].set()

    assert (response.headers["cache-control"], response.headers["x-accel-buffering"]) == ("no-store", "no")


# ── Agent Inbox ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "response",
    [
        {"type": "accept", "args": None},
        {"type": "edit", "args": {"action": "send_mail", "args": {"to": "bo"}}},
        {"type": "response", "args": "Write to Bo instead."},
        {"type": "ignore", "args": None},
    ],
    ids=lambda response: response["type"],
)
def test_agent_inbox_answers(http: httpx.Client, response: dict[str, Any]) -> None:
    http.get("/info").raise_for_status()
    thread = new_thread(http)
    http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "requesting", "input": said("go")})

    wanted = {"status": "interrupted", "limit": 10, "offset": 0, "metadata": {"graph_id": "requesting"}}
    found = http.post("/threads/search", json=wanted).json()
    shown = next(one for one in found if one["thread_id"] == thread)
    ((question,),) = shown["interrupts"].values()
    state = http.get(f"/threads/{thread}/state").json()
    body = {"assistant_id": "requesting", "command": {"resume": [response]}, "stream_mode": "events"}
    if response["type"] == "ignore":
        run = http.post(f"/threads/{thread}/runs", json={**body, "stream_mode": "values"}).json()
        http.get(f"/threads/{thread}/runs/{run['run_id']}/join")
        nodes = {"request"}
    else:
        _, parts = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=body)
        nodes = {data["metadata"].get("langgraph_node") for event, data in parts if event == "events"} - {None}

    assert question["value"][0]["action_request"] == {"action": "send_mail", "args": {"to": "ada"}}
    assert state["tasks"][-1]["interrupts"][-1]["id"] == question["id"]
    assert nodes == {"request"}
    after = http.get(f"/threads/{thread}").json()
    assert (after["status"], after["values"]["outcome"]) == ("idle", [response])


def test_agent_inbox_marks_a_thread_as_resolved(http: httpx.Client) -> None:
    thread = new_thread(http)
    http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "requesting", "input": said("go")})

    resolved = http.post(f"/threads/{thread}/state", json={"values": None, "as_node": "__end__"})

    assert resolved.json()["checkpoint"]["thread_id"] == thread
    shown = http.get(f"/threads/{thread}").json()
    assert (shown["status"], shown["interrupts"]) == ("idle", {})
    wanted = {"status": "interrupted", "limit": 100, "metadata": {"graph_id": "requesting"}}
    assert thread not in [one["thread_id"] for one in http.post("/threads/search", json=wanted).json()]


def test_agent_inbox_is_told_in_its_own_words_what_is_wrong(http: httpx.Client) -> None:
    wrong = http.post(f"/threads/{new_thread(http)}/runs", json={"assistant_id": "nobody", "input": {}})

    assert "Invalid assistant ID" in wrong.json()["detail"]


# ── @langchain/react ───────────────────────────────────────────────────────────────────────────────────────────────


def test_react_starts_hears_and_answers_through_the_thread_protocol(http: httpx.Client) -> None:
    thread = str(uuid4())
    commands, events = f"/threads/{thread}/commands", f"/threads/{thread}/stream/events"
    assert http.get(f"/threads/{thread}/state").status_code == 404
    assert http.post(f"/threads/{thread}/history", json={"limit": 10}).status_code == 404

    content = {"channels": ["values", "messages", "tools"], "depth": 1}
    watcher = {"channels": ["lifecycle", "input"]}
    with http.stream("POST", events, json=content) as pump, http.stream("POST", events, json=watcher) as watch:
        assert (pump.status_code, watch.status_code) == (200, 200)
        heard = frames(watch.iter_lines())
        params = {"assistant_id": "proposing", "input": said("go"), "multitaskStrategy": "reject"}
        started = http.post(commands, json={"id": 1, "method": "run.start", "params": params}).json()
        asked = next(event for _, event in heard if event["method"] == "input.requested")
        question = asked["params"]["data"]
        answer = {"interrupt_id": question["interrupt_id"], "namespace": [], "response": {"decisions": []}}
        batch = {"id": 2, "method": "input.respond", "params": {"responses": [answer]}}
        answered = http.post(commands, json=batch).json()
        over = next(event for _, event in heard if event["params"]["data"].get("event") == "completed")
        told = next(e for _, e in frames(pump.iter_lines()) if "outcome" in e["params"]["data"])

    assert (started["type"], started["id"]) == ("success", 1)
    assert question["payload"] == question["value"]
    assert answered["type"] == "success"
    assert over["seq"] > asked["seq"]
    assert told["params"]["data"]["outcome"] == {"decisions": []}
    late = http.post(commands, json={"id": 3, "method": "input.respond", "params": answer}).json()
    assert (late["type"], late["error"]) == ("error", "no_such_interrupt")
    with http.stream("POST", events, json={**watcher, "since": asked["seq"]}) as again:
        numbers = [event["seq"] for _, (_, event) in zip(range(2), frames(again.iter_lines()), strict=False)]
    assert min(numbers) > asked["seq"]


def test_react_stops_a_run(http: httpx.Client) -> None:
    thread = str(uuid4())
    params = {"assistant_id": "road", "input": {"gate": thread}}
    started = http.post(f"/threads/{thread}/commands", json={"id": 1, "method": "run.start", "params": params}).json()
    assert ARRIVED[thread].wait(LONG)

    run = started["result"]["run_id"]
    stopped = http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1", "action": "interrupt"})

    assert (stopped.status_code, stopped.json()) == (200, {})
    GATES[thread].set()


# ── RemoteGraph ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_remote_graph_makes_its_thread_and_reads_the_newest_checkpoint_without_an_id(http: httpx.Client) -> None:
    thread = str(uuid4())
    body = {
        "assistant_id": "talk",
        "input": said("hi"),
        "stream_mode": ["values", "updates"],
        "if_not_exists": "create",
    }

    _, parts = streamed(http, "POST", f"/threads/{thread}/runs/stream", json=body)
    response, alone = streamed(http, "POST", "/runs/stream", json=body)
    at = http.post(f"/threads/{thread}/state/checkpoint", json={"checkpoint": {"thread_id": thread}}).json()
    drawn = http.get("/assistants/talk/graph").json()

    assert at["values"] == values(parts)[-1]
    assert len(values(alone)[-1]["messages"]) == 2
    assert response.headers["content-location"] == f"/runs/{alone[0][1]['run_id']}"
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "reply", "__end__"]


# ── What all of them rely on ───────────────────────────────────────────────────────────────────────────────────────


def test_json_is_read_also_where_it_is_called_plain_text(http: httpx.Client) -> None:
    body = json.dumps({"metadata": {"from": "a browser"}})

    for headers in ({"content-type": "text/plain;charset=UTF-8"}, {}):
        made = http.post("/threads", content=body, headers=headers)
        assert made.json()["metadata"] == {"from": "a browser"}
    patched = http.patch(
        f"/threads/{made.json()['thread_id']}", content='{"metadata": {"n": 1}}', headers={"content-type": "text/plain"}
    )
    assert patched.json()["metadata"] == {"from": "a browser", "n": 1}
    assert http.post("/threads", content="{", headers={"content-type": "text/plain"}).status_code == 422


def test_answers_without_a_body_say_so_by_their_status(http: httpx.Client) -> None:
    thread = new_thread(http)
    run = http.post(f"/threads/{thread}/runs", json={"assistant_id": "talk", "input": said("hi")}).json()["run_id"]
    http.get(f"/threads/{thread}/runs/{run}/join")

    minimal = http.patch(f"/threads/{thread}", json={"metadata": {}}, headers={"Prefer": "return=minimal"})
    answers = [minimal, http.delete(f"/threads/{thread}/runs/{run}"), http.delete(f"/threads/{thread}")]

    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 3


@pytest.mark.parametrize(
    "query",
    ["stream_mode=values&stream_mode=updates", 'stream_mode=["values","updates"]', "stream_mode=values,updates"],
)
def test_lists_in_addresses_are_read_in_every_spelling(http: httpx.Client, query: str) -> None:
    thread = new_thread(http)
    run = http.post(f"/threads/{thread}/runs", json={"assistant_id": "talk", "input": said("hi")}).json()["run_id"]
    http.get(f"/threads/{thread}/runs/{run}/join")

    _, parts = streamed(http, "GET", f"/threads/{thread}/runs/{run}/stream?{query}")

    assert len(values(parts)) == 2
    assert streamed(http, "GET", f"/threads/{thread}/runs/{run}/stream?stream_mode=")[1] == parts


def test_unknown_fields_are_passed_over(http: httpx.Client) -> None:
    body = {"assistant_id": "talk", "input": said("hi"), "langsmith_tracer": {}, "checkpoint_during": True, "new": 1}

    assert http.post("/runs/wait", json=body).json()["messages"][-1]["content"] == "You said: hi"


def test_searches_say_how_much_there_is(http: httpx.Client) -> None:
    team = uuid4().hex
    for _ in range(3):
        http.post("/threads", json={"metadata": {"team": team}})

    page = http.post("/threads/search", json={"metadata": {"team": team}, "limit": 2})

    assert (page.headers["x-pagination-total"], page.headers["x-pagination-next"]) == ("3", "2")


def test_errors_have_a_detail_and_the_id_of_the_request(http: httpx.Client) -> None:
    refused = http.get(f"/threads/{uuid4()}")

    assert refused.status_code == 404
    assert refused.json()["detail"].startswith("There is no thread")
    assert refused.headers["x-request-id"]
