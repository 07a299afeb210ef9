"""Complaints 47 to 50: runs that are cancelled, context that gets lost, steps that cost, and words that confuse.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from bide import (
    Command,
    CompiledGraph,
    MemorySaver,
    RunControl,
    Runtime,
    StateGraph,
    Store,
    get_config,
    get_stream_writer,
    interrupt,
)
from bide.errors import GraphDrained, ThreadPausedError
from bide.types import END, START
from tests.complaints.world import State, World, answer
from tests.threads import in_a_row, one_node, side_by_side, thread


@pytest.fixture
def world() -> World:
    return World()


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


# ── Cancelled runs ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(47)
async def test_cancelled_run_keeps_what_its_finished_siblings_found(store: Store, world: World):
    """There, this holds when the run is continued; new input drops what they found, without a word.

    A chat that is stopped while one tool still works is left with calls that have no results. Here the results stay,
    and new input is refused while there is something to lose.
    """
    is_stuck, may_go_on = asyncio.Event(), asyncio.Event()

    async def quick(state: State) -> dict[str, Any]:
        return {"log": [world.do("quick tool")]}

    async def slow(state: State) -> dict[str, Any]:
        if not may_go_on.is_set():
            is_stuck.set()
            await asyncio.Event().wait()
        return {"log": [world.do("slow tool")]}

    graph = side_by_side(State, {"quick": quick, "slow": slow}, checkpointer=store)
    parts = graph.astream({}, thread())
    assert await anext(parts) == {"quick": {"log": ["quick tool done"]}}
    rest = asyncio.ensure_future(anext(parts))
    await is_stuck.wait()
    rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rest

    with pytest.raises(ThreadPausedError):
        await graph.ainvoke({"log": ["Hello?"]}, thread())
    may_go_on.set()
    result = await graph.ainvoke(None, thread())

    assert result["log"] == ["quick tool done", "slow tool done"]
    assert world.effects == ["quick tool", "slow tool"]


@pytest.mark.complaint(47)
def test_run_that_is_asked_to_stop_stops_between_two_steps_and_goes_on_later(store: Store, world: World):
    """There, `RunControl` does the same."""
    control = RunControl()

    def first(state: State) -> dict[str, Any]:
        control.request_drain("a new release")
        return {"log": [world.do("first")]}

    nodes = {"first": first, "second": lambda state: {"log": [world.do("second")]}}
    graph = in_a_row(State, nodes, checkpointer=store)
    with pytest.raises(GraphDrained):
        graph.invoke({}, thread(), control=control)

    assert graph.get_state(thread()).next == ("second",)
    assert graph.invoke(None, thread())["log"] == ["first done", "second done"]
    assert world.effects == ["first", "second"]


# ── Context ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(48)
async def test_config_writer_and_questions_reach_the_tasks_that_an_async_node_starts(store: Store):
    """There, before Python 3.11, all three raise "outside of a runnable context". We begin with 3.11."""

    async def inner() -> dict[str, Any]:
        get_stream_writer()("working")
        return {"name": (get_config()["configurable"]["thread_id"], interrupt("Your name?"))}

    async def node(state: State) -> dict[str, Any]:
        return await asyncio.create_task(inner())

    graph = one_node(State, node, checkpointer=store)

    told = [part async for part in graph.astream({}, thread("a thread"), stream_mode="custom")]
    result = await graph.ainvoke(Command(resume="Ada"), thread("a thread"))

    assert told == ["working"]
    assert result["name"] == ("a thread", "Ada")


@pytest.mark.complaint(48)
async def test_context_can_be_taken_as_an_argument_and_handed_on_by_hand(store: Store):
    """There, `Runtime` is handed to a node too; the config has to be asked for separately."""

    def elsewhere(runtime: Runtime[Any], found: list[Any]) -> None:
        runtime.stream_writer("working")
        found += [runtime.config["configurable"]["thread_id"], runtime.thread_id, runtime.context]

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        found: list[Any] = []
        bare_thread = threading.Thread(target=elsewhere, args=(runtime, found))
        bare_thread.start()
        bare_thread.join()
        return {"log": found}

    graph = one_node(State, node, checkpointer=store)

    result = await graph.ainvoke({}, thread("a thread"), context="a tenant")

    assert result["log"] == ["a thread", "a thread", "a tenant"]


# ── What a step costs ─────────────────────────────────────────────────────────────────────────────────────────────────


class Calls:
    """Counts the calls that Python makes in a `with` block, its own and those into C."""

    count = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._notice)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _notice(self, frame: Any, event: str, argument: Any) -> None:
        self.count += event in ("call", "c_call")


def loop(keys: int, steps: int, store: Store | None) -> Callable[[], Any]:
    """A graph with many keys that counts in one of them."""
    schema = TypedDict("schema", {"count": int, **{f"key{number}": int for number in range(keys)}})  # type: ignore[misc]
    builder = StateGraph(schema).add_node("add", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "add").add_conditional_edges("add", lambda state: "add" if state["count"] < steps else END)
    graph = builder.compile(checkpointer=store)
    given = {"count": 0, **{f"key{number}": number for number in range(keys)}}
    return lambda: graph.invoke(given)


def calls_of_fifty_steps(keys: int, store: Store | None) -> int:
    counts = []
    for steps in (10, 60):
        run = loop(keys, steps, store)
        run()
        with Calls() as calls:
            run()
        counts.append(calls.count)
    return counts[1] - counts[0]


@pytest.mark.complaint(49)
def test_step_costs_no_more_calls_in_a_graph_with_many_keys_that_it_does_not_touch():
    """There, a step takes 911 calls in a graph with 3 keys, and 5465 in a graph with 200."""
    few, many = calls_of_fifty_steps(2, None), calls_of_fifty_steps(200, None)

    assert many <= few * 1.02


@pytest.mark.complaint(49)
def test_saved_step_costs_no_more_calls_in_a_graph_with_many_keys_either():
    """There, saving a step goes through every key once more."""
    with MemorySaver() as store:
        few, many = calls_of_fifty_steps(2, store), calls_of_fifty_steps(200, store)

    assert many <= few * 1.02


# ── Words that confuse ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def waiting(store: Store) -> CompiledGraph:
    graph = one_node(State, asks_name, checkpointer=store)
    graph.invoke({}, thread())
    return graph


@pytest.mark.complaint(50)
def test_edit_of_a_thread_that_waits_is_an_edit_and_no_answer(waiting):
    """There, the question vanishes from `get_state`, and its id is ignored from then on."""
    question = waiting.get_state(thread()).interrupts[0]

    waiting.update_state(thread(), {"colour": "blue"})

    assert waiting.get_state(thread()).interrupts == (question,)
    result = waiting.invoke(answer(question, "Ada"), thread())
    assert result == {"name": "Ada", "colour": "blue", "log": []}


@pytest.mark.complaint(50)
def test_none_neither_answers_nor_runs_the_node_again(store: Store, world: World):
    """There, `invoke(None)` runs the node again from its top, with what it does before it asks."""

    def node(state: State) -> dict[str, Any]:
        world.do("write a letter")
        return asks_name(state)

    graph = one_node(State, node, checkpointer=store)
    asked = graph.invoke({}, thread()).interrupts

    again = graph.invoke(None, thread())

    assert again.interrupts == asked
    assert world.effects == ["write a letter"]
