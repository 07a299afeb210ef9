"""`replay_check`: which waiting threads would break with the code as it is now, told before anybody answers them."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from bide import START, CompiledGraph, StateGraph, interrupt, step, task
from tests.threads import one_node, thread


class State(TypedDict, total=False):
    price: int
    answer: str


def charge(price: int, ledger: list[int]) -> int:
    ledger.append(price)
    return price


def original(ledger: list[int]) -> Any:
    def node(state: State) -> Any:
        step(lambda: charge(state["price"], ledger), key="charge")
        return {"answer": interrupt("Ship it?")}

    return node


def graph_of(node: Any, store: Any, depth: int) -> CompiledGraph:
    if depth == 0:
        return one_node(State, node, checkpointer=store)
    inner = graph_of(node, None, depth - 1)
    return StateGraph(State).add_node("team", inner).add_edge(START, "team").compile(store)


@pytest.fixture(params=[0, 2], ids=["outermost", "two graphs deep"])
def depth(request: pytest.FixtureRequest) -> int:
    return request.param


def paused(store: Any, depth: int, ledger: list[int]) -> None:
    graph_of(original(ledger), store, depth).invoke({"price": 5}, thread())


def test_same_code_passes_and_makes_no_step(store, depth):
    ledger: list[int] = []
    paused(store, depth, ledger)

    reports = graph_of(original(ledger), store, depth).replay_check()

    assert [(report.node, report.breaks) for report in reports] == [("node", False)]
    assert ledger == [5]


def test_new_step_after_the_recorded_ones_passes_and_is_not_made(store, depth):
    ledger: list[int] = []
    paused(store, depth, ledger)

    def node(state: State) -> Any:
        step(lambda: charge(state["price"], ledger), key="charge")
        step(lambda: charge(99, ledger), key="another")
        return {"answer": interrupt("Ship it?")}

    [report] = graph_of(node, store, depth).replay_check()

    assert not report.breaks
    assert "a step that it has not made yet" in report.reason
    assert ledger == [5]


def without_the_step(state: State) -> Any:
    return {"answer": interrupt("Ship it?")}


def with_another_question(state: State) -> Any:
    step(lambda: None, key="charge")
    return {"answer": interrupt("Ship it today?")}


def without_the_question(state: State) -> Any:
    step(lambda: None, key="charge")
    return {"answer": "yes"}


def with_a_bug(state: State) -> Any:
    raise KeyError("prize")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (without_the_step, "without making step 'charge'"),
        (with_another_question, "where it had asked 'Ship it?'"),
        (without_the_question, "finishes without asking"),
        (with_a_bug, "KeyError"),
    ],
)
def test_change_that_would_break_a_thread_is_told_with_its_reason(store, depth, node, reason):
    paused(store, depth, [])

    # A lambda has the name of the node's own function in it, so the steps here count as the recorded one.
    reports = graph_of(node, store, depth).replay_check()

    assert [report.breaks for report in reports] == [True]
    assert reason in reports[0].reason or "is not the step that was recorded" in reports[0].reason
    assert reports[0].thread_id == "t"


def test_node_that_is_gone_is_told(store):
    paused(store, 0, [])
    builder = StateGraph(State).add_node("renamed", original([])).add_edge(START, "renamed")

    [report] = builder.compile(store).replay_check()

    assert report.breaks
    assert "no longer has" in report.reason


def test_async_nodes_and_tasks_are_replayed_too(store):
    @task
    async def price(item: str) -> int:
        return len(item)

    async def node(state: State) -> Any:
        return {"price": await price("pen"), "answer": interrupt("Ship it?")}

    import asyncio

    graph = one_node(State, node, checkpointer=store)
    asyncio.run(graph.ainvoke({"price": 1}, thread()))

    reports = asyncio.run(graph.areplay_check())

    assert [(report.breaks, report.reason) for report in reports] == [(False, "asks 'Ship it?' again")]


def test_only_threads_that_wait_are_checked_unless_they_are_named(store):
    graph = one_node(State, without_the_question, checkpointer=store)
    graph.invoke({"price": 1}, thread("done"))
    one_node(State, original([]), checkpointer=store).invoke({"price": 1}, thread("waits"))

    assert [report.thread_id for report in graph.replay_check()] == ["waits"]
    assert graph.replay_check(["done"]) == []
