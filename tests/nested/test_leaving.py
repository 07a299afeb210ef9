"""A run that is left in the middle of graphs inside graphs: what was finished there is not done again."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from bide import Store
from tests.drivers import AsyncDriver, Driver
from tests.nested.world import State, World, nested
from tests.threads import in_a_row, let_tasks_end, side_by_side, thread

DURABILITIES = ["sync", "async"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_reader_that_leaves_inside_a_subgraph_loses_no_finished_step_of_it(store: Store, durability: str):
    world = World(Driver())
    nodes = {name: world.says(name) for name in "abcd"}
    graph = nested(in_a_row(State, nodes), 2, checkpointer=store, durability=durability)
    stream = graph.stream({}, thread(), subgraphs=True)
    told = [next(stream)[1] for _ in range(2)]
    stream.close()
    let_tasks_end()
    begun = set(world.take_runs())

    result = graph.invoke(None, thread())

    assert told == [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]
    assert result["log"] == ["a", "b", "c", "d"]
    assert not {"a", "b"} & set(world.take_runs())
    assert {"a", "b"} <= begun


@pytest.mark.parametrize("durability", DURABILITIES)
def test_cancelled_call_keeps_what_siblings_inside_had_finished(store: Store, durability: str):
    world = World(AsyncDriver())
    is_stuck = asyncio.Event()

    async def stick(state: State) -> dict[str, Any]:
        world.run("stuck")
        if is_stuck.is_set():
            return {"log": ["stuck"]}
        await recorded(store, {"1.node|1.a", "1.node|1.b"})
        is_stuck.set()
        await asyncio.Event().wait()
        return {}

    branches = {
        "a": in_a_row(State, {"a": world.says("a")}),
        "b": in_a_row(State, {"b1": world.says("b1"), "b2": world.says("b2")}),
        "c": in_a_row(State, {"stuck": stick}),
    }
    graph = nested(side_by_side(State, branches), 1, checkpointer=store, durability=durability)

    async def cancel() -> None:
        call = asyncio.create_task(graph.ainvoke({}, thread()))
        await is_stuck.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    world.take_runs()

    result = asyncio.run(graph.ainvoke(None, thread()))

    assert result["log"] == ["a", "b1", "b2", "stuck"]
    assert world.take_runs() == ["stuck"]


async def recorded(store: Store, tasks: set[str]) -> None:
    """Wait until the results of these tasks are in the journal."""
    while not tasks <= {row[0] for row in journal_of(store) if row[2] == "result"}:  # noqa: ASYNC110 — the store
        await asyncio.sleep(0)  # tells nobody when it is written


def journal_of(store: Store) -> list[Any]:
    return store.database.read(lambda tx: tx.all("read_journal", {"thread_id": "t"}))


def test_failure_of_a_branch_keeps_what_the_graph_in_another_branch_had_finished(driver: Driver, store: Store):
    world = World(Driver())
    has_worked, is_broken = Event(), [True]

    def fail(state: State) -> dict[str, Any]:
        world.run("bad")
        has_worked.wait(10)
        if is_broken:
            is_broken.clear()
            raise ValueError("bad is broken")
        return {"log": ["bad"]}

    def work(state: State) -> dict[str, Any]:
        world.run("work")
        has_worked.set()
        return {"log": ["work"]}

    good = in_a_row(State, {"first": world.says("first"), "work": work})
    graph = nested(side_by_side(State, {"bad": fail, "good": good}), 2, checkpointer=store)
    with pytest.raises(ValueError, match="bad is broken"):
        driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["bad", "first", "work"]
    assert sorted(world.runs) == ["bad", "bad", "first", "work"]
