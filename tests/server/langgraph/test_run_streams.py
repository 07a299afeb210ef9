"""Streams of runs as LangGraph's SDK reads them: every mode, graphs inside, and joining late or again."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError

from tests.server.conftest import Running
from tests.server.langgraph.gates import ARRIVED, GATES, LONG

SEA = {"goal": "sea"}
HELLO = {"messages": [{"role": "user", "content": "hi", "id": "h-1"}]}
VALUES = [
    {"goal": "sea", "steps": []},
    {"goal": "sea", "steps": ["first"]},
    {"goal": "sea", "steps": ["first", "second"]},
    {"goal": "sea", "steps": ["first", "second", "third"]},
]
UPDATES = [{name: {"steps": [name]}} for name in ("first", "second", "third")]


def new_thread(sdk: Any) -> str:
    return str(sdk.threads.create()["thread_id"])


def told(sdk: Any, graph: str, given: Any, **said: Any) -> list[Any]:
    """Stream a run on a thread of its own, without how it begins and ends."""
    first, *parts, last = sdk.runs.stream(new_thread(sdk), graph, input=given, **said)
    assert (first.event, first.data["attempt"]) == ("metadata", 1)
    assert last.event == "end"
    assert last.data["run_id"] == first.data["run_id"]
    return parts


def data(parts: list[Any], event: str) -> list[Any]:
    return [part.data for part in parts if part.event == event]


# ── Modes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_values_and_updates_are_told_in_the_order_in_which_they_come_to_be(sdk: Any) -> None:
    assert data(told(sdk, "steps", SEA), "values") == VALUES
    assert data(told(sdk, "steps", SEA, stream_mode="updates"), "updates") == UPDATES

    both = told(sdk, "steps", SEA, stream_mode=["values", "updates"])

    assert [part.event for part in both] == ["values", *["updates", "values"] * 3]
    assert (data(both, "values"), data(both, "updates")) == (VALUES, UPDATES)


def test_every_part_has_an_id_and_the_client_hears_of_its_run(sdk: Any) -> None:
    thread, created = new_thread(sdk), []

    parts = list(sdk.runs.stream(thread, "steps", input=SEA, feedback_keys=["a"], on_run_created=created.append))

    assert len({part.id for part in parts}) == len(parts)
    assert None not in {part.id for part in parts}
    assert created == [{"run_id": parts[0].data["run_id"], "thread_id": thread}]
    assert parts[-1].data == {"run_id": parts[0].data["run_id"], "status": "success"}


def test_what_nodes_write_is_told_as_it_is(sdk: Any) -> None:
    assert data(told(sdk, "writing", SEA, stream_mode="custom"), "custom") == [{"progress": 1}, "half"]


def test_tasks_are_told_when_they_begin_and_end(sdk: Any) -> None:
    begun, ended = data(told(sdk, "steps", SEA, stream_mode="tasks"), "tasks")[:2]

    assert (begun["name"], begun["input"]) == ("first", {"goal": "sea", "steps": []})
    assert {key: ended[key] for key in ("id", "name", "error", "result", "interrupts")} == {
        "id": begun["id"],
        "name": "first",
        "error": None,
        "result": {"steps": ["first"]},
        "interrupts": [],
    }
    failed = data(told(sdk, "failing", SEA, stream_mode="tasks"), "tasks")[-1]
    assert failed["error"] == {"error": "ValueError", "message": "no way"}


def test_checkpoints_are_told_with_where_they_stand(sdk: Any) -> None:
    checkpoints = data(told(sdk, "steps", SEA, stream_mode="checkpoints"), "checkpoints")

    assert [one["values"] for one in checkpoints] == VALUES
    assert [one["next"] for one in checkpoints] == [["first"], ["second"], ["third"], []]
    for older, newer in itertools.pairwise(checkpoints):
        assert newer["parent_config"]["configurable"] == older["config"]["configurable"]


def test_debug_tells_checkpoints_and_tasks_with_their_steps(sdk: Any) -> None:
    debug = data(told(sdk, "steps", SEA, stream_mode="debug"), "debug")

    assert [(one["step"], one["type"]) for one in debug] == [
        (0, "checkpoint"),
        *[(step, kind) for step in (1, 2, 3) for kind in ("task", "task_result", "checkpoint")],
    ]


def test_events_tell_the_graph_its_nodes_and_its_models(sdk: Any) -> None:
    events = data(told(sdk, "chat", HELLO, stream_mode="events"), "events")

    kinds = [one["event"] for one in events]
    assert kinds[:3] == ["on_chain_start", "on_chain_start", "on_chat_model_start"]
    assert kinds[-4:] == ["on_chat_model_end", "on_chain_stream", "on_chain_end", "on_chain_end"]
    assert [events[0]["name"], events[1]["name"], events[-1]["name"]] == ["chat", "say", "chat"]
    assert events[1]["metadata"]["langgraph_node"] == "say"
    assert (events[1]["tags"], events[1]["metadata"]["langgraph_step"]) == (["graph:step:1"], 1)
    words = [one["data"]["chunk"]["content"] for one in events if one["event"] == "on_chat_model_stream"]
    assert "".join(words) == events[-4]["data"]["output"]["content"] == "Hello there friend"
    assert events[-1]["data"]["output"]["messages"][-1]["content"] == "Hello there friend"
    assert [one["run_id"] for one in events if one["name"] == "say"] == [events[1]["run_id"]] * 3


def test_messages_are_told_word_by_word_and_as_they_grow(sdk: Any) -> None:
    tuples = data(told(sdk, "chat", HELLO, stream_mode="messages-tuple"), "messages")
    growing = told(sdk, "chat", HELLO, stream_mode="messages")

    assert [chunk["content"] for chunk, _ in tuples] == ["Hello", " ", "there", " ", "friend"]
    assert {(chunk["id"], chunk["type"]) for chunk, _ in tuples} == {("ai-1", "AIMessageChunk")}
    assert {where["langgraph_node"] for _, where in tuples} == {"say"}
    assert tuples[0][1]["graph_id"] == "chat"
    assert growing[0].event == "messages/metadata"
    assert data(growing, "messages/partial")[-1][0]["content"] == "Hello there friend"


def test_tools_are_told_when_they_are_called_and_when_they_answer(sdk: Any) -> None:
    tools = data(told(sdk, "tooling", HELLO, stream_mode="tools"), "tools")

    assert [(one["event"], one["toolCallId"], one["name"]) for one in tools] == [
        ("on_tool_start", "call-1", "pay"),
        ("on_tool_end", "call-1", "pay"),
    ]
    assert (tools[0]["input"], tools[1]["output"]) == ({"amount": 5}, "paid")


def test_error_is_told_and_is_the_end(sdk: Any) -> None:
    parts = list(sdk.runs.stream(new_thread(sdk), "failing", input=SEA))

    assert [part.event for part in parts][-2:] == ["error", "end"]
    assert parts[-2].data == {"error": "ValueError", "message": "no way"}
    assert parts[-1].data["status"] == "error"


def test_unknown_mode_is_refused(sdk: Any) -> None:
    with pytest.raises(UnprocessableEntityError, match="no stream mode 'nonsense'"):
        list(sdk.runs.stream(new_thread(sdk), "steps", input=SEA, stream_mode="nonsense"))


def test_second_version_of_the_parts_is_made_of_the_same_stream(sdk: Any) -> None:
    parts = list(sdk.runs.stream(new_thread(sdk), "steps", input=SEA, stream_mode=["values"], version="v2"))

    assert [part["data"] for part in parts if part["type"] == "values"] == VALUES


# ── Pauses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pause_is_told_with_the_question_and_the_answer_goes_on(sdk: Any) -> None:
    thread, modes = new_thread(sdk), ["values", "updates"]

    asked = list(sdk.runs.stream(thread, "asking", input=SEA, stream_mode=modes))
    answered = list(sdk.runs.stream(thread, "asking", command={"resume": "north"}, stream_mode=modes))

    names = [part.event for part in asked]
    assert names == ["metadata", "values", "updates", "values", "updates", "values", "end"]
    (question,) = asked[-3].data["__interrupt__"]
    assert question["value"] == {"question": "Where?", "goal": "sea"}
    assert asked[-2].data == {"goal": "sea", "steps": ["first"], "__interrupt__": [question]}
    assert asked[-1].data["status"] == "success"
    names = [part.event for part in answered]
    assert names == ["metadata", "values", "updates", "values", "updates", "values", "end"]
    assert answered[1].data == {"goal": "sea", "steps": ["first"]}
    assert answered[2].data == {"ask": {"steps": ["asked"], "answer": "north"}}


def test_pause_that_nobody_asked_for_is_told_without_a_question(sdk: Any) -> None:
    parts = told(sdk, "steps", SEA, stream_mode=["values", "updates"], interrupt_before=["second"])

    assert [(part.event, part.data) for part in parts[-2:]] == [
        ("values", VALUES[1]),
        ("updates", {"__interrupt__": []}),
    ]


# ── Graphs inside ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_graphs_inside_are_told_only_when_asked_for(sdk: Any) -> None:
    outside = told(sdk, "nested", SEA, stream_mode=["updates", "values"])
    inside = told(sdk, "nested", SEA, stream_mode=["updates", "values"], stream_subgraphs=True)

    assert {part.event for part in outside} == {"updates", "values"}
    (name,) = {part.event for part in inside if part.event.startswith("updates|")}
    assert name.startswith("updates|inner:")
    assert data(inside, name)[0].keys() == {"__interrupt__"}


def test_answer_is_heard_inside(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "nested", input=SEA)

    parts = list(
        sdk.runs.stream(thread, "nested", command={"resume": "north"}, stream_mode="updates", stream_subgraphs=True)
    )

    names = [part.event.partition(":")[0] for part in parts]
    assert names == ["metadata", "updates|inner", "updates|inner", "updates", "updates", "end"]
    assert [next(iter(part.data)) for part in parts[1:-1]] == ["ask", "second", "inner", "third"]


# ── Joining ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_that_is_over_is_told_again_in_the_modes_that_are_asked_for(sdk: Any) -> None:
    thread = new_thread(sdk)
    modes = ["values", "updates"]
    first = list(sdk.runs.stream(thread, "steps", input=SEA, stream_mode=modes))
    run = first[0].data["run_id"]

    def joined(**said: Any) -> list[Any]:
        return list(sdk.runs.join_stream(thread, run, **said))

    assert joined() == joined(stream_mode=modes) == joined(last_event_id="-1") == first
    for number, part in enumerate(first):
        assert joined(last_event_id=part.id) == (first[number + 1 :] or first[-1:])  # there is always an end
    assert [part.event for part in joined(stream_mode="values")] == ["metadata", *["values"] * 4, "end"]
    with pytest.raises(NotFoundError):
        list(sdk.runs.join_stream(thread, "nobody"))


def test_run_is_joined_while_it_runs(sdk: Any) -> None:
    thread = new_thread(sdk)
    run = sdk.runs.create(thread, "road", input={"gate": thread}, stream_mode=["updates", "values"])["run_id"]
    assert ARRIVED[thread].wait(LONG)

    stream = sdk.runs.join_stream(thread, run, stream_mode="updates", cancel_on_disconnect=False)
    before = [next(stream).event, next(stream).data]
    GATES[thread].set()

    assert before == ["metadata", {"set_out": {"steps": ["set out"]}}]
    assert [part.event for part in stream] == ["updates", "end"]


def test_run_that_is_joined_may_be_cancelled_when_its_reader_leaves(sdk: Any) -> None:
    thread = new_thread(sdk)
    run = sdk.runs.create(thread, "road", input={"gate": thread}, stream_mode="updates")["run_id"]
    assert ARRIVED[thread].wait(LONG)

    stream = sdk.runs.join_stream(thread, run, cancel_on_disconnect=True)
    next(stream)
    stream.close()

    assert sdk.runs.join(thread, run)["steps"] == ["set out"]
    assert sdk.runs.get(thread, run)["status"] == "interrupted"
    GATES[thread].set()


def test_all_runs_of_a_thread_are_told_in_one_stream(sdk: Any, twins: Running) -> None:
    thread = new_thread(sdk)
    runs = []
    for _ in range(2):
        runs.append(sdk.runs.create(thread, "steps", input=SEA, stream_mode="updates")["run_id"])
        sdk.runs.join(thread, runs[-1])

    stream = sdk.threads.join_stream(thread, last_event_id="-", stream_mode=["run_modes"])
    seen = []
    while len([one for one in seen if one.data.get("status") == "run_done"]) < 2:
        seen.append(next(stream))
    stream.close()

    assert [part.event for part in seen] == ["metadata", *["updates"] * 3, "metadata"] * 2
    assert [part.data["run_id"] for part in seen if part.data.get("status") == "run_done"] == runs


def test_run_without_a_thread_is_streamed_as_well(sdk: Any) -> None:
    parts = list(sdk.runs.stream(None, "steps", input=SEA, stream_mode="updates"))

    assert data(parts, "updates") == UPDATES
