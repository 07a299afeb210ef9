"""A graph that the code of a node calls: in gather, in threads, as a stream, with options; all of it one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier
from typing import Any

from bide import Command, GraphOutput, Store
from bide.errors import BideError, GraphRecursionError
from tests.drivers import AsyncDriver, Driver
from tests.nested.world import State, World, answer, values_of
from tests.threads import in_a_row, one_node, side_by_side, thread

ASYNC = AsyncDriver()


def logs(results: Any) -> dict[str, Any]:
    return {"log": [said for result in results for said in result["log"]]}


# ── Several at once ────────────────────────────────────────────────────────────────────────────────────────────────


def test_graphs_called_in_gather_all_ask_at_once(store: Store):
    world = World(ASYNC)
    graphs = [world.asker(name) for name in "abc"]

    async def node(state: State) -> dict[str, Any]:
        return logs(await asyncio.gather(*(graph.ainvoke({}) for graph in graphs)))

    graph = one_node(State, node, checkpointer=store)
    asked = ASYNC.invoke(graph, {}, thread()).interrupts
    result = ASYNC.invoke(graph, answer(*asked), thread())

    assert values_of(asked) == ["a?", "b?", "c?"]
    assert result["log"] == ["a1", "A?", "a2", "b1", "B?", "b2", "c1", "C?", "c2"]
    assert not world.repeated


def test_node_that_gathers_does_not_end_before_all_graphs_that_it_called(store: Store):
    """The first asks while the second is at work: the pause must wait for it, or its work is done twice or lost."""
    world = World(ASYNC)
    worked: list[str] = []
    has_asked = asyncio.Event()

    async def slow(state: State) -> dict[str, Any]:
        await has_asked.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        worked.append("slow")
        return {"log": ["slow"]}

    async def ask(state: State) -> dict[str, Any]:
        has_asked.set()
        return await world.asks("ask")(state)

    asking, working = one_node(State, ask), in_a_row(State, {"slow": slow, "next": world.asks("next")})

    async def node(state: State) -> dict[str, Any]:
        return logs(await asyncio.gather(asking.ainvoke({}), working.ainvoke({})))

    graph = one_node(State, node, checkpointer=store)
    asked = ASYNC.invoke(graph, {}, thread()).interrupts
    result = ASYNC.invoke(graph, answer(*asked), thread())

    assert values_of(asked) == ["ask?", "next?"]
    assert worked == ["slow"]
    assert result["log"] == ["ASK?", "slow", "NEXT?"]


def in_a_pool(graphs: list[Any]) -> Callable[[State], dict[str, Any]]:
    """A node that calls graphs in threads of its own, each with the context of the node."""

    def node(state: State) -> dict[str, Any]:
        with ThreadPoolExecutor(len(graphs)) as pool:
            futures = [pool.submit(copy_context().run, graph.invoke, {}) for graph in graphs]
        return logs(future.result() for future in futures)

    return node


def test_graphs_called_in_threads_all_ask_at_once(driver: Driver, store: Store, world: World):
    sync = World(Driver())
    graph = one_node(State, in_a_pool([sync.asker(name) for name in "abc"]), checkpointer=store)
    asked = driver.invoke(graph, {}, thread()).interrupts

    result = driver.invoke(graph, answer(*asked), thread())

    assert sorted(values_of(asked)) == ["a?", "b?", "c?"]
    assert result["log"] == ["a1", "A?", "a2", "b1", "B?", "b2", "c1", "C?", "c2"]
    assert not sync.repeated


def test_graphs_that_end_in_threads_at_the_same_moment_lose_none_of_their_questions(store: Store):
    meeting = Barrier(4)
    sync = World(Driver())

    def meet(state: State) -> None:
        meeting.wait(10)

    graphs = [side_by_side(State, {"meet": meet, f"q{index}": sync.asks(f"q{index}")}) for index in range(4)]
    graph = one_node(State, in_a_pool(graphs), checkpointer=store)

    asked = graph.invoke({}, thread()).interrupts

    assert sorted(values_of(asked)) == ["q0?", "q1?", "q2?", "q3?"]


def test_graph_called_in_a_loop_of_code_asks_in_each_round(driver: Driver, store: Store, world: World):
    graph = one_node(State, world.calls("loop", *[world.asker("a")] * 3), checkpointer=store)
    result = driver.invoke(graph, {}, thread())
    ids = set()

    for round_ in ("1", "2", "3"):
        ids.add(result.interrupts[0].id)
        result = driver.invoke(graph, Command(resume=round_), thread())

    assert result["log"] == ["a1", "1", "a2", "a1", "2", "a2", "a1", "3", "a2"]
    assert len(ids) == 3
    assert world.runs.count("a1") == 3


# ── Other ways to call ─────────────────────────────────────────────────────────────────────────────────────────────


def test_graph_that_a_node_streams_is_part_of_the_thread_as_one_that_it_invokes(
    driver: Driver, store: Store, world: World
):
    inner = world.asker("a")

    def node(state: State) -> dict[str, Any]:
        return {"log": [part for part in inner.stream({}, stream_mode="updates")]}

    async def anode(state: State) -> dict[str, Any]:
        return {"log": [part async for part in inner.astream({}, stream_mode="updates")]}

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)
    asked = driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, answer(*asked.interrupts), thread())

    assert values_of(asked.interrupts) == ["a?"]
    assert result["log"][-2:] == [{"a": {"log": ["A?"]}}, {"a2": {"log": ["a2"]}}]
    assert world.runs.count("a1") == 1


def told_by(driver: Driver, store: Store, inner: Any, *args: Any, **options: Any) -> Any:
    """Call a graph in a node, and return what the node got: a result, or an error."""
    got: list[Any] = []

    def node(state: State) -> None:
        try:
            got.append(inner.invoke({"number": 0}, *args, **options))
        except BideError as problem:
            got.append(problem)

    async def anode(state: State) -> None:
        try:
            got.append(await inner.ainvoke({"number": 0}, *args, **options))
        except BideError as problem:
            got.append(problem)

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)
    driver.invoke(graph, {}, thread())
    return got[-1]


def counting(driver: Driver) -> Any:
    node = driver.node(lambda state: {"number": state["number"] + 1})
    return in_a_row(State, {"a": node, "b": node, "c": node})


def test_recursion_limit_of_an_inner_call_counts(driver: Driver, store: Store):
    told = told_by(driver, store, counting(driver), {"recursion_limit": 2})

    assert isinstance(told, GraphRecursionError)


def test_misspelt_option_of_an_inner_call_is_refused(driver: Driver, store: Store):
    told = told_by(driver, store, counting(driver), interupt_before=["b"])

    assert isinstance(told, BideError)
    assert "interrupt_before" in str(told)


def test_version_and_output_keys_of_an_inner_call_count(driver: Driver, store: Store):
    whole = told_by(driver, store, counting(driver), version="v2")
    one = told_by(driver, store, counting(driver), output_keys="number")

    assert isinstance(whole, GraphOutput)
    assert whole.value["number"] == 3
    assert one == 3


def test_pause_that_an_inner_call_asks_for_holds_the_thread(driver: Driver, store: Store, world: World):
    inner = in_a_row(State, {"a": world.says("a"), "b": world.says("b")})

    def node(state: State) -> dict[str, Any]:
        return {"log": inner.invoke({}, interrupt_before=["b"])["log"]}

    async def anode(state: State) -> dict[str, Any]:
        return {"log": (await inner.ainvoke({}, interrupt_before=["b"]))["log"]}

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)

    held = driver.invoke(graph, {}, thread())
    ran = world.take_runs()
    result = driver.invoke(graph, None, thread())

    assert held.is_interrupted
    assert ran == ["a"]
    assert result["log"] == ["a", "b"]


def test_call_that_names_another_thread_is_a_thread_of_its_own(driver: Driver, store: Store, world: World):
    inner = one_node(State, world.says("a"), checkpointer=store)

    def node(state: State) -> dict[str, Any]:
        return {"log": inner.invoke({}, thread("other"))["log"]}

    async def anode(state: State) -> dict[str, Any]:
        return {"log": (await inner.ainvoke({}, thread("other")))["log"]}

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)
    driver.invoke(graph, {}, thread())

    assert driver.call(inner, "get_state", thread("other")).values["log"] == ["a"]


def test_context_and_config_of_an_inner_call_count_inside(driver: Driver, store: Store):
    seen: list[Any] = []

    def look(state: State, config: Any, runtime: Any) -> None:
        seen.append((config["configurable"].get("user"), config.get("tags"), runtime.context))

    inner = one_node(State, look)

    def node(state: State) -> None:
        inner.invoke({"number": 1}, {"configurable": {"user": "inner"}, "tags": ["in"]}, context="own")
        inner.with_config({"configurable": {"user": "bound"}}).invoke({"number": 1})

    async def anode(state: State) -> None:
        await inner.ainvoke({"number": 1}, {"configurable": {"user": "inner"}, "tags": ["in"]}, context="own")
        await inner.with_config({"configurable": {"user": "bound"}}).ainvoke({"number": 1})

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)
    config = {**thread(), "tags": ["out"]}
    config["configurable"] = {**config["configurable"], "user": "outer"}
    driver.invoke(graph, {"number": 0}, config, context="outer")

    assert seen == [("inner", ["out", "in"], "own"), ("bound", ["out"], "outer")]


async def test_stream_of_an_inner_graph_that_is_held_and_not_read_on_keeps_nobody_waiting(store: Store, world: World):
    inner = world.asker("a")
    held: list[Any] = []

    async def node(state: State) -> dict[str, Any]:
        held.append(inner.astream({}, stream_mode="updates"))
        await anext(held[0])
        return {"log": ["left"]}

    result = await one_node(State, node, checkpointer=store).ainvoke({}, thread())

    assert result["log"] == ["left"]
