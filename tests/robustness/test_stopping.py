"""Runs that stop before their end: drained, cancelled, or too long."""

from __future__ import annotations

import asyncio
from threading import Event, Thread

import pytest

from bide import Command, RunControl, Send, StateGraph, get_runtime, interrupt
from bide.errors import GraphDrained, GraphRecursionError
from bide.types import START
from tests.robustness.states import Flaky, State, lone
from tests.threads import in_a_row, let_tasks_end, thread

# ── Drained ────────────────────────────────────────────────────────────────────────────────────────────────────────


def three_steps(driver, store, calls, at="b", control=None):
    """Three nodes in a row; the one called `at` asks for the run to stop."""

    def node_called(name):
        def node(state):
            calls.append(name)
            if name == at:
                (control or get_runtime().control).request_drain("the machine is going down")
            return {"log": [name]}

        return driver.node(node)

    return in_a_row(State, {name: node_called(name) for name in ("a", "b", "c")}, checkpointer=store)


def test_node_may_ask_its_run_to_stop_before_the_next_step(driver, store):
    calls = []
    graph = three_steps(driver, store, calls)

    with pytest.raises(GraphDrained, match="going down") as raised:
        driver.invoke(graph, {}, thread(), control=RunControl())
    status, state = store.threads()[0].status, driver.call(graph, "get_state", thread())

    assert "before c" in str(raised.value)
    assert status == "ready"
    assert (state.next, state.values) == (("c",), {"log": ["a", "b"]})


def test_drained_thread_goes_on_where_it_stopped(driver, store):
    calls = []
    graph = three_steps(driver, store, calls)
    with pytest.raises(GraphDrained):
        driver.invoke(graph, {}, thread(), control=RunControl())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["a", "b", "c"]
    assert calls == ["a", "b", "c"]


def test_another_thread_may_ask_a_run_to_stop(driver, store):
    inside, control = Event(), RunControl()

    def node(state):
        inside.set()
        asker.join(30)
        return {"log": ["first"]}

    def ask():
        assert inside.wait(30)
        control.request_drain()

    asker = Thread(target=ask)
    asker.start()
    second = Flaky()
    nodes = {"first": driver.node(node), "second": driver.node(lambda state: {"log": [second("second")]})}
    graph = in_a_row(State, nodes, checkpointer=store)

    with pytest.raises(GraphDrained):
        driver.invoke(graph, {}, thread(), control=control)

    assert second.calls == 0
    assert driver.invoke(graph, None, thread())["log"] == ["first", "second"]


def test_stream_tells_everything_that_happened_before_the_run_was_drained(driver, store):
    graph, told = three_steps(driver, store, []), []

    def read():
        for part in graph.stream({}, thread(), control=RunControl()):
            told.append(part)

    async def aread():
        async for part in graph.astream({}, thread(), control=RunControl()):
            told.append(part)

    with pytest.raises(GraphDrained):
        read() if driver.name == "sync" else asyncio.run(aread())

    assert told == [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]


def test_run_that_ends_before_it_could_be_drained_is_done(driver, store):
    graph = three_steps(driver, store, [], at="c")

    assert driver.invoke(graph, {}, thread(), control=RunControl())["log"] == ["a", "b", "c"]


def test_graph_inside_a_node_is_drained_between_its_own_steps(driver, store):
    calls = []
    control = RunControl()
    inner = three_steps(driver, None, calls, control=control)
    graph = lone(inner, {"checkpointer": store})

    with pytest.raises(GraphDrained):
        driver.invoke(graph, {}, thread(), control=control)
    status = store.threads()[0].status
    result = driver.invoke(graph, None, thread())

    assert status == "ready"
    assert result["log"] == ["a", "b", "c"]
    assert calls == ["a", "b", "c"]


def test_question_beside_a_drained_graph_stays_open(driver, store):
    control = RunControl()
    builder = StateGraph(State)
    builder.add_node("ask", driver.node(lambda state: {"log": [interrupt("go?")]})).add_edge(START, "ask")
    builder.add_node("inner", three_steps(driver, None, [], control=control)).add_edge(START, "inner")
    graph = builder.compile(checkpointer=store)
    with pytest.raises(GraphDrained):
        driver.invoke(graph, {}, thread(max_concurrency=1), control=control)

    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert result["log"] == ["yes", "a", "b", "c"]


def test_graph_without_a_store_says_that_nothing_was_saved(driver):
    graph = three_steps(driver, None, [])

    with pytest.raises(GraphDrained, match="Nothing was saved"):
        driver.invoke(graph, {}, control=RunControl())


# ── Cancelled ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cancelled_run_keeps_what_its_finished_tasks_returned(store):
    runs = []

    async def main():
        halted = asyncio.Event()

        async def node(arg):
            runs.append(arg["name"])
            if arg["name"] == 2 and runs.count(2) == 1:
                halted.set()
                await asyncio.Event().wait()
            return {"log": [arg["name"]]}

        builder = StateGraph(State).add_node("node", node)
        builder.add_conditional_edges(START, lambda state: [Send("node", {"name": number}) for number in range(4)])
        graph = builder.compile(checkpointer=store)
        call = asyncio.ensure_future(graph.ainvoke({}, thread(max_concurrency=2)))
        await halted.wait()
        while len(graph.get_state(thread()).next) > 1:
            await asyncio.wait([call], timeout=0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        status = store.threads()[0].status
        return status, await graph.ainvoke(None, thread())

    status, result = asyncio.run(main())

    assert status == "cancelled"
    assert result["log"] == [0, 1, 2, 3]
    assert sorted(runs) == [0, 1, 2, 2, 3]


def test_cancelled_plain_node_keeps_its_thread_until_it_ends(store):
    inside, release = Event(), Event()

    def node(state):
        inside.set()
        assert release.wait(30)
        return {"value": "late"}

    graph = lone(node, {"checkpointer": store})

    async def main():
        call = asyncio.ensure_future(graph.ainvoke({"name": "x"}, thread()))
        await asyncio.to_thread(inside.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    while_it_runs = store.threads()[0].status
    release.set()
    let_tasks_end()

    assert while_it_runs == "running"
    assert store.threads()[0].status == "cancelled"
    assert "value" not in graph.get_state(thread()).values


# ── Too long ───────────────────────────────────────────────────────────────────────────────────────────────────────


def endless(driver, store):
    builder = StateGraph(State).add_node("node", driver.node(lambda state: {"log": [len(state["log"])]}))
    return builder.add_edge(START, "node").add_edge("node", "node").compile(checkpointer=store)


def test_every_call_may_take_the_same_number_of_steps(driver, store):
    graph = endless(driver, store)
    lengths = []

    for given in ({}, None, None):
        with pytest.raises(GraphRecursionError, match="3 steps"):
            driver.invoke(graph, given, thread(recursion_limit=3))
        lengths.append(len(driver.call(graph, "get_state", thread()).values["log"]))

    assert lengths == [3, 6, 9]


def test_run_that_needs_just_as_many_steps_as_it_may_take_ends_well(driver, store):
    nodes = {name: driver.node(lambda state, name=name: {"log": [name]}) for name in ("a", "b", "c")}
    graph = in_a_row(State, nodes, checkpointer=store)

    assert driver.invoke(graph, {}, thread(recursion_limit=3))["log"] == ["a", "b", "c"]


def test_answer_may_be_followed_by_as_many_steps_as_a_start(driver, store):
    def node(state):
        if len(state["log"]) == 1:
            interrupt("on?")
        return {"log": [len(state["log"])]}

    builder = StateGraph(State).add_node("node", driver.node(node)).add_edge(START, "node").add_edge("node", "node")
    graph = builder.compile(checkpointer=store)
    driver.invoke(graph, {}, thread(recursion_limit=3))

    with pytest.raises(GraphRecursionError):
        driver.invoke(graph, Command(resume="yes"), thread(recursion_limit=3))

    assert driver.call(graph, "get_state", thread()).values["log"] == [0, 1, 2, 3]
