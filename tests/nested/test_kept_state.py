"""`compile(checkpointer=True)`: a graph inside another that goes on where its last call left it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Send, StateGraph, Store, interrupt
from bide.errors import InvalidUpdateError
from tests.drivers import Driver
from tests.threads import one_node, thread


class Call(TypedDict, total=False):
    call: int
    seen: int


class Memory(TypedDict, total=False):
    call: int
    seen: int
    own: int


class In(TypedDict, total=False):
    call: int


class Out(TypedDict, total=False):
    seen: int


def counter(driver: Driver) -> CompiledGraph:
    """A graph that counts its calls in a key of its own, and asks at call 9."""

    def count(state: Memory) -> dict[str, Any]:
        if state["call"] == 9:
            interrupt("Count this one?")
        own = state.get("own", 0) + 1
        return {"own": own, "seen": own}

    builder = StateGraph(Memory, input_schema=In, output_schema=Out).add_node("count", driver.node(count))
    return builder.add_edge(START, "count").compile(checkpointer=True)


def counts(driver: Driver, store: Store, depth: int = 1) -> CompiledGraph:
    graph = counter(driver)
    for level in range(1, depth + 1):
        builder = StateGraph(Call).add_node("team", graph).add_edge(START, "team")
        graph = builder.compile(checkpointer=store if level == depth else None)
    return graph


INSIDE = {"configurable": {"thread_id": "t", "checkpoint_ns": "team"}}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_state_goes_on_from_one_call_to_the_next_at_any_depth(driver: Driver, store: Store, depth: int):
    """Also inside a graph that begins anew each time, as in LangGraph."""
    graph = counts(driver, store, depth)

    seen = [driver.invoke(graph, {"call": call}, thread())["seen"] for call in (1, 2, 3)]

    assert seen == [1, 2, 3]


def test_state_goes_on_in_a_new_process_after_a_question(driver: Driver, tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    for call in (1, 2):
        with Store.open(url) as store:
            driver.invoke(counts(driver, store), {"call": call}, thread())
    with Store.open(url) as store:
        assert driver.invoke(counts(driver, store), {"call": 9}, thread()).is_interrupted

    with Store.open(url) as store:
        assert driver.invoke(counts(driver, store), Command(resume="yes"), thread())["seen"] == 3
    with Store.open(url) as store:
        assert driver.invoke(counts(driver, store), {"call": 4}, thread())["seen"] == 4


def test_every_thread_has_its_own(driver: Driver, store: Store):
    graph = counts(driver, store)
    driver.invoke(graph, {"call": 1}, thread("one"))

    assert driver.invoke(graph, {"call": 1}, thread("two"))["seen"] == 1


def test_fork_of_the_outer_thread_forks_the_state_inside(driver: Driver, store: Store):
    graph = counts(driver, store)
    for call in (1, 2, 3):
        driver.invoke(graph, {"call": call}, thread())
    history = driver.call(graph, "get_state_history", thread())
    second = next(past for past in history if past.next and past.values["call"] == 2)

    forked = driver.invoke(graph, None, second.config)
    after = driver.invoke(graph, {"call": 4}, thread())

    assert forked["seen"] == 2
    assert after["seen"] == 3


def test_call_that_is_left_at_a_question_leaves_the_state_as_it_was(driver: Driver, store: Store):
    graph = counts(driver, store)
    driver.invoke(graph, {"call": 1}, thread())
    driver.invoke(graph, {"call": 9}, thread())

    result = driver.invoke(graph, {"call": 2}, thread(), on_paused="restart")

    assert result["seen"] == 2


def test_two_calls_in_one_step_are_refused(driver: Driver, store: Store):
    builder = StateGraph(Call).add_node("team", counter(driver))
    builder.add_conditional_edges(START, lambda state: [Send("team", {"call": 1}), Send("team", {"call": 2})])

    with pytest.raises(InvalidUpdateError, match="one step"):
        driver.invoke(builder.compile(checkpointer=store), {"call": 0}, thread())


def test_state_inside_is_shown_under_its_name(driver: Driver, store: Store):
    graph = counts(driver, store)
    for call in (1, 2):
        driver.invoke(graph, {"call": call}, thread())

    inside = driver.call(graph, "get_state", INSIDE)
    history = driver.call(graph, "get_state_history", INSIDE)

    assert inside.values == {"call": 2, "own": 2, "seen": 2}
    assert [past.values.get("own") for past in history] == [2, 1, 1, None]


@pytest.mark.parametrize("as_node", [None, "count"])
def test_edit_of_the_state_inside_counts_at_the_next_call_and_leaves_the_outer_state_alone(
    driver: Driver, store: Store, as_node: str | None
):
    """As in LangGraph."""
    graph = counts(driver, store)
    driver.invoke(graph, {"call": 1}, thread())
    outer = driver.call(graph, "get_state", thread())

    driver.call(graph, "update_state", INSIDE, {"own": 40}, as_node=as_node)

    assert driver.call(graph, "get_state", INSIDE).values["own"] == 40
    assert driver.call(graph, "get_state", thread()) == outer
    assert driver.invoke(graph, {"call": 2}, thread())["seen"] == 41


def test_graph_called_in_a_node_keeps_its_state_too(driver: Driver, store: Store):
    inner = counter(driver)

    def node(state: Call) -> dict[str, Any]:
        return {"seen": inner.invoke({"call": state["call"]})["seen"]}

    async def anode(state: Call) -> dict[str, Any]:
        return {"seen": (await inner.ainvoke({"call": state["call"]}))["seen"]}

    graph = one_node(Call, node if driver.name == "sync" else anode, checkpointer=store)
    seen = [driver.invoke(graph, {"call": call}, thread())["seen"] for call in (1, 2)]
    driver.invoke(graph, {"call": 9}, thread())

    assert seen == [1, 2]
    assert driver.invoke(graph, Command(resume="yes"), thread())["seen"] == 3
