"""Streams: what happens, told while it happens, in every mode and with both drivers."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, GraphInterrupt, Send, StateGraph, Store, interrupt
from bide.errors import InvalidUpdateError
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def alogging(name: str) -> Any:
    async def node(state: Log) -> Log:
        return {"log": [name]}

    return node


async def collected(parts: AsyncIterator[Any]) -> list[Any]:
    return [part async for part in parts]


def read(parts: Iterator[Any], tell: Callable[[Any], None]) -> None:
    """Read a stream part by part, so that what came before an error is known."""
    for part in parts:
        tell(part)


def asking(store: Store) -> CompiledGraph:
    """`a`, and then `b`, which asks, beside `c`, which does not."""
    builder = StateGraph(Log).add_node("a", logging("a")).add_edge(START, "a")
    builder.add_node("b", lambda state: {"log": [interrupt("b?")]}).add_node("c", lambda state: None)
    return builder.add_edge("a", "b").add_edge("a", "c").compile(store)


def types_in(parts: list[dict[str, Any]]) -> list[str]:
    return [part["type"] for part in parts]


# ── Modes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

A_AND_B = {
    "values": [{"log": []}, {"log": ["a"]}, {"log": ["a", "b"]}],
    "updates": [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}],
    "custom": [],
    "tasks": [
        {"id": "1.a", "name": "a", "input": {"log": []}, "triggers": [START]},
        {"id": "1.a", "name": "a", "error": None, "result": {"log": ["a"]}, "interrupts": []},
        {"id": "2.b", "name": "b", "input": {"log": ["a"]}, "triggers": ["a"]},
        {"id": "2.b", "name": "b", "error": None, "result": {"log": ["b"]}, "interrupts": []},
    ],
}


@pytest.mark.parametrize("mode", A_AND_B)
def test_stream_tells_a_run_in_each_mode(mode: Any):
    graph = in_a_row(Log, {"a": logging("a"), "b": logging("b")})

    assert list(graph.stream({"log": []}, stream_mode=mode)) == A_AND_B[mode]


@pytest.mark.parametrize("mode", A_AND_B)
async def test_stream_tells_the_same_with_asyncio(mode: Any):
    graph = in_a_row(Log, {"a": alogging("a"), "b": logging("b")})

    assert await collected(graph.astream({"log": []}, stream_mode=mode)) == A_AND_B[mode]


def test_checkpoints_are_told_with_the_config_that_leads_back_to_them(store: Store):
    graph = in_a_row(Log, {"a": logging("a"), "b": logging("b")}, checkpointer=store)

    told = list(graph.stream({"log": []}, thread(), stream_mode="checkpoints"))

    assert [(part["values"], part["next"], part["metadata"]["step"]) for part in told] == [
        ({"log": []}, ["a"], 0),
        ({"log": ["a"]}, ["b"], 1),
        ({"log": ["a", "b"]}, [], 2),
    ]
    assert [part["parent_config"] for part in told] == [None, told[0]["config"], told[1]["config"]]
    assert [graph.get_state(part["config"]).values for part in told] == [part["values"] for part in told]


def test_debug_tells_checkpoints_and_tasks_with_their_time(store: Store):
    graph = one_node(Log, logging("a"), checkpointer=store)

    told = list(graph.stream({"log": []}, thread(), stream_mode="debug"))

    assert types_in(told) == ["checkpoint", "task", "task_result", "checkpoint"]
    assert [part["step"] for part in told] == [0, 1, 1, 1]
    assert all(part["timestamp"].endswith("+00:00") for part in told)


def test_several_modes_are_told_together_each_part_with_its_mode():
    graph = one_node(Log, logging("a"))

    assert list(graph.stream({"log": []}, stream_mode=["values", "updates"])) == [
        ("values", {"log": []}),
        ("updates", {"node": {"log": ["a"]}}),
        ("values", {"log": ["a"]}),
    ]


def test_list_of_one_mode_still_names_the_mode():
    assert list(one_node(Log, logging("a")).stream({"log": []}, stream_mode=["updates"])) == [
        ("updates", {"node": {"log": ["a"]}})
    ]


def test_no_mode_tells_nothing_and_the_graph_runs_all_the_same(store: Store):
    graph = one_node(Log, logging("a"), checkpointer=store)

    assert list(graph.stream({"log": []}, thread(), stream_mode=[])) == []
    assert graph.get_state(thread()).values == {"log": ["a"]}


def test_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(InvalidUpdateError, match=r"'colours'.*values, updates"):
        list(one_node(Log, logging("a")).stream({"log": []}, stream_mode="colours"))


def test_call_with_a_mode_returns_the_parts_of_the_stream():
    assert one_node(Log, logging("a")).invoke({"log": []}, stream_mode="updates") == [{"node": {"log": ["a"]}}]


async def test_async_call_with_a_mode_returns_the_parts_of_the_stream():
    found = await one_node(Log, alogging("a")).ainvoke({"log": []}, stream_mode="values")

    assert found == [{"log": []}, {"log": ["a"]}]


def test_node_that_writes_nothing_is_told_as_none():
    assert list(one_node(Log, lambda state: None).stream({"log": []})) == [{"node": None}]


def test_key_written_several_times_by_one_node_is_told_as_a_list():
    graph = one_node(Log, lambda state: [{"log": ["1"]}, {"log": ["2"]}])

    assert list(graph.stream({"log": []})) == [{"node": {"log": [["1"], ["2"]]}}]


@pytest.mark.parametrize("arg", [{"item": 1}, {}, 0, None, "text"])
def test_task_is_told_with_what_was_sent_to_it(arg: Any):
    builder = StateGraph(Log).add_node("node", lambda state: None)
    builder.add_conditional_edges(START, lambda state: [Send("node", arg)])

    started = next(iter(builder.compile().stream({"log": ["in"]}, stream_mode="tasks")))

    assert started["input"] == arg


# ── Pauses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pause_ends_the_updates_with_every_open_question(store: Store):
    graph = asking(store)

    told = list(graph.stream({"log": []}, thread()))

    assert told[0] == {"a": {"log": ["a"]}}
    assert told[1] == {"c": None}
    assert told[2:] == [{"__interrupt__": graph.get_state(thread()).interrupts}]


def test_pause_ends_the_values_with_the_state_and_the_question(store: Store):
    graph = asking(store)

    told = list(graph.stream({"log": []}, thread(), stream_mode="values"))

    assert told[-1] == {"log": ["a"], "__interrupt__": graph.get_state(thread()).interrupts}


def test_pause_is_told_in_tasks_checkpoints_and_debug(store: Store):
    graph = asking(store)

    told = list(graph.stream({"log": []}, thread(), stream_mode=["tasks", "checkpoints", "debug"]))

    shown = graph.get_state(thread()).interrupts[0]
    ended = [part for mode, part in told if mode == "tasks" and part["name"] == "b" and "result" in part]
    last = [part for mode, part in told if mode == "checkpoints"][-1]
    assert [question["id"] for question in ended[0]["interrupts"]] == [shown.id]
    assert [task["name"] for task in last["tasks"] if task["interrupts"]] == ["b"]
    assert last["config"] == graph.get_state(thread()).config
    assert told[-1][0] == "debug"


@pytest.mark.parametrize(
    ("mode", "parts"),
    [
        ("values", [{"log": ["a"]}, {"log": ["a", "yes"]}]),
        ("updates", [{"b": {"log": ["yes"]}}]),
    ],
)
def test_resumed_stream_tells_only_what_is_new(store: Store, mode: Any, parts: list[Any]):
    graph = asking(store)
    graph.invoke({"log": []}, thread())

    assert list(graph.stream(Command(resume="yes"), thread(), stream_mode=mode)) == parts


def test_stream_of_a_thread_that_waits_tells_the_question_again_and_runs_nothing(store: Store):
    graph = asking(store)
    first = list(graph.stream({"log": []}, thread()))[-1]

    assert list(graph.stream(None, thread())) == [first]


@pytest.mark.parametrize(
    ("mode", "last"), [("updates", {"__interrupt__": ()}), ("values", {"log": ["a"], "__interrupt__": ()})]
)
def test_declared_pause_ends_the_stream_with_an_interrupt_part_without_a_question(store: Store, mode: Any, last: Any):
    graph = in_a_row(Log, {"a": logging("a"), "b": logging("b")}, checkpointer=store, interrupt_before=["b"])

    assert list(graph.stream({"log": []}, thread(), stream_mode=mode))[-1] == last


async def test_pause_ends_an_async_stream_the_same_way(store: Store):
    async def ask(state: Log) -> Log:
        return {"log": [interrupt("?")]}

    graph = one_node(Log, ask, checkpointer=store)
    told = await collected(graph.astream({"log": []}, thread()))
    seen = await graph.aget_state(thread())
    resumed = await collected(graph.astream(Command(resume="yes"), thread()))

    assert told == [{"__interrupt__": seen.interrupts}]
    assert resumed == [{"node": {"log": ["yes"]}}]


def test_pause_as_an_exception_comes_after_the_parts(store: Store):
    told: list[Any] = []

    with pytest.raises(GraphInterrupt, match=r"b\?"):
        read(asking(store).stream({"log": []}, thread(), raise_on_interrupt=True), told.append)

    assert told[0] == {"a": {"log": ["a"]}}
    assert "__interrupt__" in told[-1]


# ── Events for those who read types ────────────────────────────────────────────────────────────────────────────────


def test_events_end_with_the_state_or_with_the_pause(store: Store):
    graph = asking(store)

    until_pause = list(graph.events({"log": []}, thread()))
    until_end = list(graph.events(Command(resume="yes"), thread()))

    assert types_in(until_pause) == ["update", "update", "interrupt"]
    assert until_pause[-1]["node"] == "b"
    assert until_pause[-1]["state"] == {"log": ["a"]}
    assert until_pause[-1]["interrupts"][0].value == "b?"
    assert until_end[-1] == {"type": "final", "state": {"log": ["a", "yes"]}}


# ── Errors ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def broken(state: Log) -> None:
    raise OSError("no connection")


def test_parts_before_an_error_are_told_and_then_it_is_raised():
    told: list[Any] = []

    with pytest.raises(OSError, match="no connection"):
        read(in_a_row(Log, {"a": logging("a"), "b": broken}).stream({"log": []}), told.append)

    assert told == [{"a": {"log": ["a"]}}]


def test_failed_task_is_told_with_its_error():
    told: list[Any] = []

    with pytest.raises(OSError, match="no connection"):
        read(one_node(Log, broken).stream({"log": []}, stream_mode="tasks"), told.append)

    assert told[-1]["error"] == "OSError('no connection')"


def test_updates_of_finished_siblings_are_told_beside_a_failure():
    told: list[Any] = []
    graph = side_by_side(Log, {"a": logging("a"), "b": broken})

    with pytest.raises(OSError, match="no connection"):
        read(graph.stream({"log": []}, {"max_concurrency": 1}), told.append)

    assert told == [{"a": {"log": ["a"]}}]
