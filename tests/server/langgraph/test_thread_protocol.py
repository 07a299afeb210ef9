"""`client.threads.stream()`: the thread protocol, as the sync and the async SDK speak it, over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk import get_client, get_sync_client

from tests.server.conftest import Running
from tests.server.running import until

SEA = {"goal": "sea"}
HELLO = {"messages": [{"role": "user", "content": "hi", "id": "h-1"}]}
TRANSPORTS = ("sse", "websocket")
WAIT = 30


@pytest.fixture
def sync(twins: Running) -> Any:
    with get_sync_client(url=twins.url) as client:
        yield client


def played(twins: Running, play: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Play something with the async client."""

    async def whole() -> None:
        async with AsyncExitStack() as stack:
            client = get_client(url=twins.url)
            stack.push_async_callback(client.aclose)
            await asyncio.wait_for(play(client), WAIT)

    asyncio.run(whole())


# ── Sync ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_run_is_started_and_its_values_are_told(sync: Any, transport: str) -> None:
    with sync.threads.stream(assistant_id="steps", transport=transport) as thread:
        started = thread.run.start(input=SEA, metadata={"m": 1}, config={"tags": ["t"]})
        values = list(thread.values)
        output = thread.output

    # The client reads the state as it stands, and then the stream from its beginning.
    told = [one["steps"] for one in values[-4:]]
    assert told == [[], ["first"], ["first", "second"], ["first", "second", "third"]]
    assert output == values[-1]
    run = sync.runs.get(thread.thread_id, started["run_id"])
    assert (run["status"], run["metadata"]["m"]) == ("success", 1)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_question_is_heard_and_answered_on_the_same_stream(sync: Any, transport: str) -> None:
    with sync.threads.stream(assistant_id="asking", transport=transport) as thread:
        thread.run.start(input=SEA)
        until(lambda: thread.interrupted, "the question was heard")
        (question,) = thread.interrupts

        thread.run.respond("north")
        output = thread.output

    assert question["value"] == {"question": "Where?", "goal": "sea"}
    assert output == {"goal": "sea", "steps": ["first", "asked", "third"], "answer": "north"}


def test_question_from_inside_is_answered_by_its_id(sync: Any) -> None:
    with sync.threads.stream(assistant_id="nested") as thread:
        thread.run.start(input=SEA)
        until(lambda: thread.interrupted, "the question was heard")
        (question,) = thread.interrupts

        thread.run.respond("north", interrupt_id=question["interrupt_id"])

        assert thread.output["answer"] == "north"
    (segment,) = question["namespace"]
    assert segment.startswith("inner:")


def test_messages_grow_word_by_word(sync: Any) -> None:
    with sync.threads.stream(assistant_id="chat") as thread:
        thread.run.start(input=HELLO)

        (message,) = list(thread.messages)

        assert str(message.text) == "Hello there friend"
        assert thread.output["messages"][-1]["content"] == "Hello there friend"


def test_calls_of_tools_are_told_with_what_they_came_to(sync: Any) -> None:
    with sync.threads.stream(assistant_id="tooling") as thread:
        thread.run.start(input=HELLO)

        (call,) = list(thread.tool_calls)

        assert (call.name, call.input, call.output["content"]) == ("pay", {"amount": 5}, "paid")


def test_graphs_inside_have_streams_of_their_own(sync: Any) -> None:
    with sync.threads.stream(assistant_id="nested") as thread:
        thread.run.start(input=SEA)
        until(lambda: thread.interrupted, "the question was heard")
        thread.run.respond("north")

        inner = list(thread.subgraphs)

        assert {one.graph_name for one in inner} == {"inner"}
        assert inner[-1].path[0].startswith("inner:")
        assert inner[-1].status == "completed"


def test_everything_is_told_as_numbered_events(sync: Any) -> None:
    with sync.threads.stream(assistant_id="writing") as thread:
        thread.run.start(input=SEA)
        events = []
        for event in thread.events:
            events.append(event)
            if event["method"] == "lifecycle" and event["params"]["data"]["event"] == "completed":
                break

    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    assert len({event["event_id"] for event in events}) == len(events)
    told = [event["params"]["data"]["payload"] for event in events if event["method"] == "custom"]
    assert told == [{"progress": 1}, "half"]
    assert {"lifecycle", "values", "updates", "tasks", "checkpoints", "custom"} <= {one["method"] for one in events}


def test_somebody_who_comes_later_hears_what_was_told(sync: Any) -> None:
    with sync.threads.stream(assistant_id="asking") as thread:
        thread.run.start(input=SEA)
        until(lambda: thread.interrupted, "the question was heard")

    with sync.threads.stream(thread_id=thread.thread_id, assistant_id="asking") as again:
        until(lambda: again.interrupted, "the question was heard again")
        again.run.respond("north")
        assert again.output["answer"] == "north"

    with sync.threads.stream(thread_id=thread.thread_id, assistant_id="asking") as last:
        assert last.output["answer"] == "north"


def test_run_that_fails_raises_where_it_is_waited_for(sync: Any) -> None:
    with sync.threads.stream(assistant_id="failing") as thread:
        thread.run.start(input=SEA)

        with pytest.raises(RuntimeError, match="no way"):
            _ = thread.output


def test_agent_is_drawn(sync: Any) -> None:
    with sync.threads.stream(assistant_id="steps") as thread:
        nodes = [node["id"] for node in thread.agent.get_tree()["nodes"]]

    assert nodes == ["__start__", "first", "second", "third", "__end__"]


def test_second_run_of_a_thread_is_told_as_the_first_was(sync: Any) -> None:
    thread_id = str(uuid4())
    for number in (1, 2):
        with sync.threads.stream(thread_id=thread_id, assistant_id="steps") as thread:
            run = thread.run.start(input=SEA)["run_id"]
            assert len(sync.runs.join(thread_id, run)["steps"]) == 3 * number
            assert len(list(thread.values)[-1]["steps"]) == 3 * number


# ── Async ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_async_question_is_heard_and_answered(twins: Running, transport: str) -> None:
    async def play(client: Any) -> None:
        async with client.threads.stream(assistant_id="asking", transport=transport) as thread:
            await thread.run.start(input=SEA)
            await asyncio.to_thread(until, lambda: thread.interrupted, "the question was heard")
            await thread.run.respond("north")

            assert (await thread.output)["answer"] == "north"

    played(twins, play)


def test_async_messages_tools_and_graphs_inside_are_told(twins: Running) -> None:
    async def play(client: Any) -> None:
        async with client.threads.stream(assistant_id="chat") as thread:
            await thread.run.start(input=HELLO)
            # They grow while the stream is read on, so whoever waits for one inside the loop waits for ever.
            (message,) = [one async for one in thread.messages]
            assert await message.text == "Hello there friend"
        async with client.threads.stream(assistant_id="tooling") as thread:
            await thread.run.start(input=HELLO)
            (call,) = [one async for one in thread.tool_calls]
            assert (call.name, (await call.output)["content"]) == ("pay", "paid")
        async with client.threads.stream(assistant_id="nested") as thread:
            await thread.run.start(input=SEA)
            await asyncio.to_thread(until, lambda: thread.interrupted, "the question was heard")
            await thread.run.respond("north")
            inner = [one async for one in thread.subgraphs]
            assert {one.graph_name for one in inner} == {"inner"}
            assert inner[-1].status == "completed"

    played(twins, play)


def test_async_somebody_who_comes_later_hears_what_was_told(twins: Running) -> None:
    async def play(client: Any) -> None:
        async with client.threads.stream(assistant_id="steps") as thread:
            await thread.run.start(input=SEA)
            first = await thread.output
        async with client.threads.stream(thread_id=thread.thread_id, assistant_id="steps") as again:
            assert await again.output == first
            events = again.events
            assert (await anext(events))["method"] == "lifecycle"

    played(twins, play)
