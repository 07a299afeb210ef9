"""What fails inside a graph inside a graph: finished work is kept, effects happen once, and policies count."""

from __future__ import annotations

import asyncio
from collections import Counter
from threading import Event
from time import monotonic
from typing import Any

import pytest

from bide import END, START, GraphDrained, RetryPolicy, RunControl, StateGraph, Store
from bide.engine.context import running_task
from bide.errors import GraphError, GraphRecursionError, NodeTimeoutError
from tests.drivers import Driver
from tests.nested.world import State, World, answer, innermost, nested, values_of
from tests.threads import in_a_row, one_node, side_by_side, thread

DURABILITIES = ["sync", "async", "exit"]
AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3)


def a_retried(inner: Any, **options: Any) -> Any:
    """A graph with one node that is tried again."""
    builder = StateGraph(State).add_node("node", inner, retry_policy=AT_ONCE).add_edge(START, "node")
    return builder.compile(**options)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_finished_nodes_inside_do_not_run_again_after_a_failure(
    driver: Driver, store: Store, world: World, depth: int, durability: str
):
    nodes = {"a": world.says("a"), "b": world.fails_once("b"), "c": world.says("c")}
    graph = nested(in_a_row(State, nodes), depth, checkpointer=store, durability=durability)
    with pytest.raises(ValueError, match="b is broken"):
        driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["a", "b", "c"]
    assert world.take_runs() == ["a", "b", "b", "c"]
    assert not world.repeated


@pytest.mark.parametrize("durability", DURABILITIES)
def test_finished_sibling_inside_does_not_run_again_after_a_failure(
    driver: Driver, store: Store, world: World, durability: str
):
    has_finished = Event()

    def finish(state: State) -> dict[str, Any]:
        world.run("good")
        has_finished.set()
        return {"log": ["good"]}

    def wait(state: State) -> dict[str, Any]:
        has_finished.wait(10)
        return bad(state)

    bad = World(Driver()).fails_once("bad")
    inner = side_by_side(State, {"bad": wait, "good": finish})
    graph = nested(inner, 2, checkpointer=store, durability=durability)
    with pytest.raises(ValueError, match="bad is broken"):
        driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["bad", "good"]
    assert world.take_runs() == ["good"]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_question_and_failure_in_one_step_are_both_kept_and_going_on_tries_what_failed(
    driver: Driver, store: Store, world: World, depth: int
):
    """At every depth as at none: `invoke(None)` runs what failed, and the question stays open."""
    inner = {"ask": world.asks("ask"), "bad": world.fails_once("bad")}
    graph = side_by_side(State, inner, checkpointer=store if depth == 0 else None)
    graph = nested(graph, depth, checkpointer=store) if depth else graph
    with pytest.raises(ValueError, match="bad is broken"):
        driver.invoke(graph, {}, thread())
    asked = driver.call(graph, "get_state", thread()).interrupts
    world.runs = ["bad"]

    again = driver.invoke(graph, None, thread())
    ran = world.take_runs()
    result = driver.invoke(graph, answer(*asked), thread())

    assert values_of(asked) == ["ask?"]
    assert again.interrupts == asked
    assert ran == ["bad", "bad"]
    assert result["log"] == ["ASK?", "bad"]


def test_error_inside_is_shown_where_it_happened(driver: Driver, store: Store, world: World):
    graph = nested(in_a_row(State, {"a": world.says("a"), "b": world.fails_once("b")}), 2, checkpointer=store)
    with pytest.raises(ValueError, match="b is broken"):
        driver.invoke(graph, {}, thread())

    snapshot = innermost(driver.call(graph, "get_state", thread(), subgraphs=True))

    assert [(task.name, task.error) for task in snapshot.tasks] == [("b", "ValueError: b is broken")]
    assert snapshot.values["log"] == ["a"]


# ── Policies of a node that is a graph ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("durability", DURABILITIES)
def test_retry_of_a_subgraph_that_failed_in_its_first_step(driver: Driver, store: Store, world: World, durability: str):
    inner = one_node(State, world.fails_once("a", ConnectionError))
    graph = a_retried(inner, checkpointer=store, durability=durability)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["a"]
    assert not world.repeated


@pytest.mark.parametrize("durability", DURABILITIES)
def test_retry_of_a_subgraph_goes_on_where_it_failed_and_makes_no_step_twice(
    driver: Driver, store: Store, world: World, durability: str
):
    inner = in_a_row(State, {"a": world.says("a"), "b": world.fails_once("b", ConnectionError), "c": world.says("c")})
    graph = a_retried(inner, checkpointer=store, durability=durability)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["a", "b", "c"]
    assert world.take_runs() == ["a", "b", "b", "c"]
    assert not world.repeated


def test_retry_of_a_node_that_calls_a_graph_goes_on_where_it_failed(driver: Driver, store: Store, world: World):
    inner = in_a_row(State, {"a": world.says("a"), "b": world.fails_once("b", ConnectionError)})
    graph = a_retried(world.calls("call", inner), checkpointer=store)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["a", "b"]
    assert world.take_runs() == ["a", "b", "b", "call", "call"]
    assert not world.repeated


def test_retry_beside_a_question_inside_asks_it_once(driver: Driver, store: Store, world: World):
    inner = side_by_side(State, {"ask": world.asks("ask"), "bad": world.fails_once("bad", ConnectionError)})
    graph = a_retried(world.calls("call", inner), checkpointer=store)

    asked = driver.invoke(graph, {}, thread()).interrupts
    result = driver.invoke(graph, answer(*asked), thread())

    assert values_of(asked) == ["ask?"]
    assert result["log"] == ["ASK?", "bad"]
    assert not world.repeated


def test_timeout_of_a_node_that_is_a_graph_counts_or_is_refused(driver: Driver, store: Store):
    """What must not happen is that it is taken and then ignored."""
    is_over = Event()

    def wait(state: State) -> None:
        is_over.wait(1)

    async def await_(state: State) -> None:
        await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=1)

    inner = one_node(State, wait if driver.name == "sync" else await_)

    def try_it() -> None:
        builder = StateGraph(State).add_node("node", inner, timeout=0.05).add_edge(START, "node")
        driver.invoke(builder.compile(checkpointer=store), {}, thread())

    with pytest.raises((NodeTimeoutError, GraphError)):
        try_it()
    is_over.set()


def test_error_handler_of_a_node_that_is_a_graph_is_told(driver: Driver, store: Store, world: World):
    def handle(state: State, error: Any) -> dict[str, Any]:
        return {"log": [f"{error.node}: {error.error}"]}

    inner = in_a_row(State, {"a": world.says("a"), "b": world.fails_once("b")})
    builder = StateGraph(State).add_node("node", inner, error_handler=driver.node(handle)).add_edge(START, "node")

    result = driver.invoke(builder.compile(checkpointer=store), {}, thread())

    assert result["log"] == ["node: b is broken"]


# ── Stopping ───────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_until_a_sibling_has_failed() -> None:
    """Return when the graph around the running task knows that one of its tasks has failed."""
    task, until = running_task(), monotonic() + 10
    assert task is not None
    while not task.run.crew.is_failing:
        assert monotonic() < until, "nothing has failed"


def test_node_that_guards_an_inner_call_is_not_given_our_own_signal_to_stop(driver: Driver, store: Store):
    """A failure beside it stops the graph inside; that is no error of that graph, which its caller might excuse."""
    sync, runs = World(Driver()), Counter[str]()
    has_begun = Event()

    def bad(state: State) -> None:
        runs["bad"] += 1
        if runs["bad"] == 1:
            has_begun.wait(10)
            raise ValueError("bad is broken")

    def first(state: State) -> None:
        runs["first"] += 1
        if runs["bad"] < 2:
            has_begun.set()
            wait_until_a_sibling_has_failed()

    builder = StateGraph(State).add_node("first", first).add_edge(START, "first")
    for name in "xy":
        builder.add_node(name, sync.says(name)).add_edge("first", name)
    inner = builder.compile()

    def guarded(state: State) -> dict[str, Any]:
        try:
            return {"log": inner.invoke({})["log"]}
        except Exception as problem:  # noqa: BLE001 — this is what the test is about
            return {"log": [f"excused {problem!r}"]}

    graph = side_by_side(State, {"a": guarded, "bad": bad}, checkpointer=store)
    with pytest.raises(ValueError, match="bad is broken"):
        driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["x", "y"]
    assert runs == {"bad": 2, "first": 1}


def looping(world: World, control: RunControl, rounds: int) -> Any:
    """A graph that counts to `rounds`, and asks to be stopped at the third round."""

    def count(state: State) -> dict[str, Any]:
        world.run("count")
        if world.runs.count("count") == 3:
            control.request_drain("new release")
        return {"number": state["number"] + 1}

    builder = StateGraph(State).add_node("count", world.driver.node(count)).add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["number"] < rounds else END)
    return builder.compile()


def test_node_that_guards_an_inner_call_is_not_given_the_drain_as_an_error_of_that_call(
    driver: Driver, store: Store, world: World
):
    control = RunControl()
    inner = looping(world, control, 6)

    def node(state: State) -> dict[str, Any]:
        try:
            return {"log": [inner.invoke({"number": 0})["number"]]}
        except Exception as problem:  # noqa: BLE001 — this is what the test is about
            return {"log": [f"excused {problem!r}"]}

    async def anode(state: State) -> dict[str, Any]:
        try:
            return {"log": [(await inner.ainvoke({"number": 0}))["number"]]}
        except Exception as problem:  # noqa: BLE001 — as above
            return {"log": [f"excused {problem!r}"]}

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)
    with pytest.raises(GraphDrained):
        driver.invoke(graph, {}, thread(), control=control)

    assert driver.invoke(graph, None, thread())["log"] == [6]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_drain_stops_a_loop_two_levels_down_and_going_on_finishes_it(
    driver: Driver, store: Store, world: World, durability: str
):
    control = RunControl()
    graph = nested(looping(world, control, 6), 2, checkpointer=store, durability=durability)
    with pytest.raises(GraphDrained):
        driver.invoke(graph, {"number": 0}, thread(), control=control)
    snapshot = driver.call(graph, "get_state", thread(), subgraphs=True)

    result = driver.invoke(graph, None, thread())

    assert [task.error for task in snapshot.tasks] == [None]
    assert [task.error for task in snapshot.tasks[0].state.tasks] == [None]
    assert innermost(snapshot).values["number"] == 3
    assert result["number"] == 6
    assert len(world.runs) == 6


def test_recursion_limit_counts_inside_and_going_on_finishes(driver: Driver, store: Store, world: World):
    graph = nested(looping(world, RunControl(), 6), 2, checkpointer=store)
    with pytest.raises(GraphRecursionError):
        driver.invoke(graph, {"number": 0}, thread(recursion_limit=4))

    result = driver.invoke(graph, None, thread())

    assert result["number"] == 6
    assert len(world.runs) == 6
