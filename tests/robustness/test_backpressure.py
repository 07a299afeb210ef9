"""A slow reader of a stream makes writers wait: nothing is lost, and what lies unread is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from threading import Event
from typing import Any

import pytest

from bide import MemorySaver, StateGraph, get_stream_writer
from bide.engine.inbox import ROOM
from bide.types import START
from tests.robustness.states import State, lone
from tests.threads import let_tasks_end, thread

MANY = 100_000
BOUND = 2 * ROOM + 10
"""What may be unread: as many as there is room for, as many in the hands of an async reader, and a few on the way."""


class Turn:
    """Awaited, it lets everybody else on the loop have a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Lag:
    """How far the writers are ahead of the reader, at the most."""

    def __init__(self) -> None:
        self.written = self.read = self.most = 0

    def wrote(self) -> None:
        self.written += 1
        self.most = max(self.most, self.written - self.read)


def writing(driver: Any, lag: Lag, name: str, count: int) -> Callable[..., Any]:
    """A node that writes so many events."""

    def sync(state: State) -> None:
        write = get_stream_writer()
        for number in range(count):
            lag.wrote()
            write((name, number))

    async def on_loop(state: State) -> None:
        write = get_stream_writer()
        for number in range(count):
            lag.wrote()
            write((name, number))
            await Turn()

    return sync if driver.name == "sync" else on_loop


def read_all(driver: Any, graph: Any, lag: Lag, *, turns: int = 0, **options: Any) -> list[Any]:
    """Read a stream to its end; an async reader lets the others have so many turns after each part."""
    parts = []

    async def aread() -> None:
        async for part in graph.astream({"name": "x"}, thread(), stream_mode="custom", **options):
            parts.append(part)
            lag.read += 1
            for _ in range(turns):
                await Turn()

    if driver.name == "async":
        asyncio.run(aread())
    else:
        for part in graph.stream({"name": "x"}, thread(), stream_mode="custom", **options):
            parts.append(part)
            lag.read += 1
    return parts


def test_hundred_thousand_events_of_a_node_arrive_in_order_and_never_pile_up(driver):
    lag = Lag()
    graph = lone(writing(driver, lag, "node", MANY))

    parts = read_all(driver, graph, lag)

    assert parts == [("node", number) for number in range(MANY)]
    assert lag.most <= BOUND


def test_events_of_each_node_keep_their_order_beside_those_of_others(driver):
    lag, builder = Lag(), StateGraph(State)
    for name in "abc":
        builder.add_node(name, writing(driver, lag, name, 5000)).add_edge(START, name)

    parts = read_all(driver, builder.compile(), lag, turns=3)

    for name in "abc":
        assert [number for writer, number in parts if writer == name] == list(range(5000))
    assert lag.most <= BOUND


@pytest.mark.parametrize("count", [1, 3], ids=["one inner node", "three inner nodes"])
def test_nodes_of_a_graph_inside_wait_for_the_reader_too(driver, count):
    lag, inner = Lag(), StateGraph(State)
    for name in "abc"[:count]:
        inner.add_node(name, writing(driver, lag, name, 5000)).add_edge(START, name)
    graph = lone(inner.compile())

    parts = [part for _, part in read_all(driver, graph, lag, turns=3, subgraphs=True)]

    for name in "abc"[:count]:
        assert [number for writer, number in parts if writer == name] == list(range(5000))
    assert lag.most <= BOUND


def test_plain_node_of_an_async_run_waits_for_the_reader():
    lag = Lag()

    def node(state):
        write = get_stream_writer()
        for number in range(20_000):
            lag.wrote()
            write(number)

    parts = []

    async def main():
        async for part in lone(node).astream({"name": "x"}, stream_mode="custom"):
            parts.append(part)
            lag.read += 1

    asyncio.run(main())

    assert parts == list(range(20_000))
    assert lag.most <= BOUND


def test_reader_who_reads_nothing_for_a_while_stops_the_writer():
    full, lag = Event(), Lag()

    def node(state):
        write = get_stream_writer()
        for number in range(10 * ROOM):
            lag.wrote()
            if lag.written == ROOM + 1:
                full.set()
            write(number)

    stream = lone(node).stream({"name": "x"}, stream_mode="custom")
    first = next(stream)
    assert full.wait(30)
    unread = lag.written - 1

    assert first == 0
    assert unread <= ROOM + 1
    assert list(stream) == list(range(1, 10 * ROOM))


def test_reader_who_goes_away_lets_the_writer_end():
    ended = Event()

    def node(state):
        write = get_stream_writer()
        for number in range(3 * ROOM):
            write(number)
        ended.set()

    with MemorySaver() as store:
        graph = lone(node, {"checkpointer": store})
        stream = graph.stream({"name": "x"}, thread(), stream_mode="custom")
        assert next(stream) == 0
        stream.close()

        assert ended.wait(30)
        let_tasks_end()
        assert store.threads()[0].status == "cancelled"


def test_async_reader_who_goes_away_lets_writers_on_the_loop_and_in_threads_end():
    ended = Event()

    def in_thread(state):
        write = get_stream_writer()
        for number in range(3 * ROOM):
            write(number)
        ended.set()

    cancelled = []

    async def on_loop(state):
        try:
            write = get_stream_writer()
            while True:
                write("on loop")
                await Turn()
        except asyncio.CancelledError:
            cancelled.append("on loop")
            raise

    builder = StateGraph(State).add_node("thread", in_thread).add_edge(START, "thread")
    graph = builder.add_node("loop", on_loop).add_edge(START, "loop").compile()

    async def main():
        stream = graph.astream({"name": "x"}, stream_mode="custom")
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(main())

    assert ended.wait(30)
    assert cancelled == ["on loop"]
    let_tasks_end()
