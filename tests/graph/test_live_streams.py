"""Streams while nodes still run: events arrive at once, and a reader who leaves takes nothing with them."""

from __future__ import annotations

import asyncio
import operator
import threading
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, MemorySaver, Store, get_stream_writer, interrupt, step
from bide.errors import ThreadBusyError
from bide.store.sqlite import SqliteDatabase
from tests.threads import in_a_row, let_tasks_end, one_node, side_by_side, thread

PATIENCE = 20
"""Seconds after which a test that waits for another thread gives up."""


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Counter:
    """A node that counts its runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = 0

    def __call__(self, state: Log) -> Log:
        self.runs += 1
        return {"log": [self.name]}


# ── While the node runs ────────────────────────────────────────────────────────────────────────────────────────────


def test_custom_event_arrives_while_its_node_still_runs():
    was_read = threading.Event()

    def node(state: Log, writer: Any) -> Log:
        writer("working")
        return {"log": [f"read in time: {was_read.wait(PATIENCE)}"]}

    told = []
    for part in one_node(Log, node).stream({"log": []}, stream_mode=["custom", "updates"]):
        told.append(part)
        was_read.set()

    assert told == [("custom", "working"), ("updates", {"node": {"log": ["read in time: True"]}})]


async def test_custom_event_of_an_async_node_arrives_while_it_still_runs():
    was_read = asyncio.Event()

    async def node(state: Log) -> Log:
        get_stream_writer()("working")
        await asyncio.wait_for(was_read.wait(), PATIENCE)
        return {"log": ["read in time"]}

    told = []
    async for part in one_node(Log, node).astream({"log": []}, stream_mode=["custom", "updates"]):
        told.append(part)
        was_read.set()

    assert told == [("custom", "working"), ("updates", {"node": {"log": ["read in time"]}})]


async def test_custom_event_of_a_plain_node_in_an_async_stream_arrives_while_it_still_runs():
    was_read = threading.Event()

    def node(state: Log, writer: Any) -> Log:
        writer("working")
        return {"log": [f"read in time: {was_read.wait(PATIENCE)}"]}

    told = []
    async for part in one_node(Log, node).astream({"log": []}, stream_mode=["custom", "updates"]):
        told.append(part)
        was_read.set()

    assert told == [("custom", "working"), ("updates", {"node": {"log": ["read in time: True"]}})]


def test_update_of_a_finished_sibling_arrives_while_another_still_runs():
    was_read = threading.Event()

    def slow(state: Log) -> Log:
        return {"log": [f"read in time: {was_read.wait(PATIENCE)}"]}

    told = []
    for part in side_by_side(Log, {"quick": Counter("quick"), "slow": slow}).stream({"log": []}):
        told.append(part)
        was_read.set()

    assert told == [{"quick": {"log": ["quick"]}}, {"slow": {"log": ["read in time: True"]}}]


def test_custom_events_of_a_node_keep_their_order_and_come_before_its_update():
    def node(state: Log, writer: Any) -> Log:
        for number in range(50):
            writer(number)
        return {"log": ["done"]}

    told = list(one_node(Log, node).stream({"log": []}, stream_mode=["custom", "updates"]))

    assert told == [*(("custom", number) for number in range(50)), ("updates", {"node": {"log": ["done"]}})]


async def test_custom_events_keep_their_order_with_asyncio_too():
    async def node(state: Log) -> Log:
        for number in range(50):
            get_stream_writer()(number)
        return {"log": ["done"]}

    told = [part async for part in one_node(Log, node).astream({"log": []}, stream_mode=["custom", "updates"])]

    assert told == [*(("custom", number) for number in range(50)), ("updates", {"node": {"log": ["done"]}})]


def test_custom_event_comes_from_inside_a_step_and_not_again_on_replay(store: Store):
    def work() -> str:
        get_stream_writer()("in the step")
        return "done"

    def node(state: Log) -> Log:
        return {"log": [step(work), interrupt("?")]}

    graph = one_node(Log, node, checkpointer=store)

    first = list(graph.stream({"log": []}, thread(), stream_mode="custom"))
    second = list(graph.stream(Command(resume="yes"), thread(), stream_mode="custom"))

    assert (first, second) == (["in the step"], [])


# ── Readers who leave ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["updates", "values", "tasks", "checkpoints", "debug"])
def test_reader_who_leaves_frees_the_thread_and_the_run_goes_on_later(store: Store, mode: Any):
    graph = in_a_row(Log, {name: Counter(name) for name in "abc"}, checkpointer=store)
    for _ in graph.stream({"log": []}, thread(), stream_mode=mode):
        break

    assert graph.invoke(None, thread())["log"] == ["a", "b", "c"]


def test_work_that_the_reader_heard_of_is_kept_when_they_leave(store: Store):
    nodes = {name: Counter(name) for name in "abc"}
    graph = in_a_row(Log, nodes, checkpointer=store)
    for part in graph.stream({"log": []}, thread()):
        if "b" in part:
            break

    done = graph.invoke(None, thread())

    assert done["log"] == ["a", "b", "c"]
    assert [node.runs for node in nodes.values()] == [1, 1, 1], "what was told was saved before"


def test_finished_sibling_that_the_reader_heard_of_is_kept_when_they_leave(store: Store):
    quick, is_left = Counter("quick"), threading.Event()

    def slow(state: Log) -> Log:
        is_left.wait(PATIENCE)
        return {"log": ["slow"]}

    graph = side_by_side(Log, {"quick": quick, "slow": slow}, checkpointer=store)
    for part in graph.stream({"log": []}, thread()):
        assert "quick" in part
        break
    with pytest.raises(ThreadBusyError):
        graph.invoke(None, thread())
    is_left.set()
    let_tasks_end()
    done = graph.invoke(None, thread())

    assert done["log"] == ["quick", "slow"]
    assert quick.runs == 1


def test_stream_that_is_never_read_runs_nothing(store: Store):
    node = Counter("a")
    graph = one_node(Log, node, checkpointer=store)

    graph.stream({"log": []}, thread())

    assert node.runs == 0
    assert graph.get_state(thread()).created_at is None


def test_thread_left_in_the_middle_takes_new_input(store: Store):
    graph = in_a_row(Log, {name: Counter(name) for name in "ab"}, checkpointer=store)
    for _ in graph.stream({"log": ["1"]}, thread(), stream_mode="values"):
        break

    assert graph.invoke({"log": ["2"]}, thread())["log"] == ["1", "2", "a", "b"]


async def test_reader_who_leaves_an_async_stream_frees_the_thread(store: Store):
    nodes = {name: Counter(name) for name in "ab"}
    graph = in_a_row(Log, nodes, checkpointer=store)
    async with aclosing(graph.astream({"log": []}, thread(), stream_mode="values")) as parts:
        async for part in parts:
            if part["log"] == ["a"]:
                break

    done = await graph.ainvoke(None, thread())

    assert done["log"] == ["a", "b"]
    assert [node.runs for node in nodes.values()] == [1, 1]


async def test_node_in_the_middle_is_cancelled_when_the_reader_of_an_async_stream_leaves(store: Store):
    was_cancelled = asyncio.Event()

    async def endless(state: Log, writer: Any) -> None:
        writer("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    graph = one_node(Log, endless, checkpointer=store)
    async with aclosing(graph.astream({"log": []}, thread(), stream_mode="custom")) as parts:
        async for _ in parts:
            break

    await asyncio.wait_for(was_cancelled.wait(), PATIENCE)
    assert (await graph.aget_state(thread())).next == ("node",)


# ── Cancelled calls ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_cancelled_call_keeps_finished_steps_and_frees_the_thread(store: Store):
    first, is_there, may_go = Counter("first"), asyncio.Event(), asyncio.Event()

    async def second(state: Log) -> Log:
        is_there.set()
        await may_go.wait()
        return {"log": ["second"]}

    graph = in_a_row(Log, {"first": first, "second": second}, checkpointer=store)
    call = asyncio.create_task(graph.ainvoke({"log": []}, thread()))
    await asyncio.wait_for(is_there.wait(), PATIENCE)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    may_go.set()
    done = await graph.ainvoke(None, thread())

    assert done["log"] == ["first", "second"]
    assert first.runs == 1
    assert [event.kind for event in store.events("t")] == ["run.started", "run.cancelled", "run.started", "run.done"]


@pytest.mark.complaint(47)
async def test_cancelled_call_keeps_siblings_that_had_finished():
    quick, is_recorded, may_go = Counter("quick"), asyncio.Event(), asyncio.Event()

    class Telling(MemorySaver):
        def commit(self, lease, transition):
            super().commit(lease, transition)
            is_recorded.set()

    async def slow(state: Log) -> Log:
        await may_go.wait()
        return {"log": ["slow"]}

    with Telling() as store:
        graph = side_by_side(Log, {"quick": quick, "slow": slow}, checkpointer=store)
        call = asyncio.create_task(graph.ainvoke({"log": []}, thread()))
        await asyncio.wait_for(is_recorded.wait(), PATIENCE)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        may_go.set()
        done = await graph.ainvoke(None, thread())

    assert done["log"] == ["quick", "slow"]
    assert quick.runs == 1


async def test_call_cancelled_while_it_takes_the_thread_does_not_keep_it(tmp_path: Path):
    is_taking, may_take, has_taken = threading.Event(), threading.Event(), threading.Event()

    class Slow(Store):
        def begin(self, taking):
            is_taking.set()
            may_take.wait(PATIENCE)
            try:
                return super().begin(taking)
            finally:
                has_taken.set()

    with Slow(SqliteDatabase(str(tmp_path / "bide.db"))) as store:
        graph = one_node(Log, Counter("a"), checkpointer=store)
        call = asyncio.create_task(graph.ainvoke({"log": []}, thread()))
        await asyncio.to_thread(is_taking.wait, PATIENCE)
        call.cancel()
        asyncio.get_running_loop().call_soon(may_take.set)
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(has_taken.wait, PATIENCE)

        assert (await graph.ainvoke(None, thread()))["log"] == ["a"]
