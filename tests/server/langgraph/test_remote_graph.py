"""`RemoteGraph` of LangGraph: a graph that runs here, used there as if it were local, alone and inside another."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command, interrupt
from langgraph_sdk import get_client, get_sync_client

from tests.server.conftest import Running

SEA = {"goal": "sea"}


class Trip(TypedDict, total=False):
    goal: str
    steps: Annotated[list[str], operator.add]
    answer: Any


Remote = Callable[[str], RemoteGraph]


@pytest.fixture
def remote(twins: Running) -> Iterator[Remote]:
    """Graphs of the server, by name, over one connection."""
    with get_sync_client(url=twins.url) as client:
        yield lambda name: RemoteGraph(name, sync_client=client)


def played(twins: Running, name: str, play: Callable[[RemoteGraph], Coroutine[Any, Any, Any]]) -> Any:
    """Play something with the async half of a graph of the server."""

    async def whole() -> Any:
        client = get_client(url=twins.url)
        try:
            return await play(RemoteGraph(name, client=client))
        finally:
            await client.aclose()

    return asyncio.run(whole())


def thread() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid4())}}


def travelling(graph: Any) -> Any:
    """A graph of LangGraph's with another one inside, between two steps of its own."""
    builder = StateGraph(Trip)
    builder.add_node("pack", lambda state: {"steps": ["packed"]})
    builder.add_node("travel", graph)
    builder.add_node("rest", lambda state: {"steps": ["rested"]})
    builder.add_edge(START, "pack")
    builder.add_edge("pack", "travel")
    builder.add_edge("travel", "rest")
    return builder.compile(checkpointer=InMemorySaver())


# ── Alone ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_remote_graph_is_invoked_with_and_without_a_thread(twins: Running, remote: Remote) -> None:
    graph, config = remote("steps"), thread()

    assert graph.invoke(SEA) == {"goal": "sea", "steps": ["first", "second", "third"]}
    assert graph.invoke(SEA, config)["steps"] == ["first", "second", "third"]
    assert len(graph.invoke(SEA, config)["steps"]) == 6
    assert played(twins, "steps", lambda graph: graph.ainvoke(SEA))["steps"] == ["first", "second", "third"]


def test_remote_graph_is_streamed(remote: Remote) -> None:
    graph = remote("steps")

    assert list(graph.stream(SEA, stream_mode="updates")) == [
        {name: {"steps": [name]}} for name in ("first", "second", "third")
    ]
    several = list(graph.stream(SEA, stream_mode=["values", "updates"]))
    assert [part.event for part in several] == ["values", *["updates", "values"] * 3]
    inside = list(remote("nested").stream(SEA, stream_mode="values", subgraphs=True))
    assert {len(namespace) for namespace, _ in inside} == {0, 1}


def test_remote_graph_tells_messages_and_its_own_words(remote: Remote) -> None:
    words = remote("chat").stream({"messages": [("user", "hi")]}, stream_mode="messages")
    assert "".join(chunk["content"] for chunk, _ in words) == "Hello there friend"
    assert list(remote("writing").stream(SEA, stream_mode="custom")) == [{"progress": 1}, "half"]


def test_remote_graph_pauses_and_is_resumed(remote: Remote) -> None:
    graph, config = remote("asking"), thread()

    paused = graph.invoke(SEA, config)
    state = graph.get_state(config)
    (task,) = state.tasks
    resumed = graph.invoke(Command(resume="north"), config)

    assert paused["__interrupt__"][0]["value"] == {"question": "Where?", "goal": "sea"}
    assert (state.values, state.next) == ({"goal": "sea", "steps": ["first"]}, ("ask",))
    assert [one.value["question"] for one in task.interrupts] == ["Where?"]
    assert resumed["answer"] == "north"


def test_state_of_a_remote_graph_is_read_edited_and_looked_back_on(remote: Remote) -> None:
    graph, config = remote("steps"), thread()
    graph.invoke(SEA, config)
    history = list(graph.get_state_history(config))

    place = graph.update_state(config, {"steps": ["edited"]}, as_node="first")

    assert [state.next for state in history] == [(), ("third",), ("second",), ("first",)]
    assert graph.get_state(history[1].config).next == ("third",)
    assert list(graph.get_state_history(config, before=history[1].config)) == history[2:]
    state = graph.get_state(config)
    assert state.config["configurable"]["checkpoint_id"] == place["configurable"]["checkpoint_id"]
    assert (state.values["steps"][-1], state.next) == ("edited", ("second",))
    assert graph.invoke(None, config)["steps"][-2:] == ["second", "third"]


def test_state_inside_a_remote_graph_is_read(remote: Remote) -> None:
    graph, config = remote("nested"), thread()
    graph.invoke(SEA, config)

    (task,) = graph.get_state(config, subgraphs=True).tasks

    assert (task.name, task.state.next) == ("inner", ("ask",))
    place = graph.get_state(config).tasks[0].state
    assert graph.get_state(place).next == ("ask",)


def test_remote_graph_is_drawn(remote: Remote) -> None:
    drawn = remote("nested").get_graph()

    assert list(drawn.nodes) == ["__start__", "first", "inner", "third", "__end__"]
    assert len(remote("nested").get_graph(xray=True).nodes) > len(drawn.nodes)


def test_failure_of_a_remote_graph_is_raised_here(remote: Remote) -> None:
    with pytest.raises(RemoteException, match="no way"):
        remote("failing").invoke(SEA)


def test_third_version_of_the_stream_is_the_thread_protocol(twins: Running, remote: Remote) -> None:
    with remote("steps").stream_events(SEA, thread(), version="v3") as run:
        values = list(run.values)
        assert values[-1]["steps"] == ["first", "second", "third"]
        assert run.output == values[-1]

    async def play(graph: RemoteGraph) -> Any:
        async with await graph.astream_events(SEA, thread(), version="v3") as run:
            return await run.output()

    assert played(twins, "steps", play)["steps"] == ["first", "second", "third"]


# ── Inside another graph ───────────────────────────────────────────────────────────────────────────────────────────


def test_remote_graph_is_a_node_of_a_local_one(remote: Remote) -> None:
    graph = travelling(remote("steps"))

    result = graph.invoke(SEA, thread())

    assert result["steps"][-1] == "rested"
    assert {"first", "second", "third"} <= set(result["steps"])


def test_question_of_a_remote_node_pauses_the_graph_around_it(remote: Remote) -> None:
    graph, config = travelling(remote("asking")), thread()

    paused = graph.invoke(SEA, config)

    assert paused["__interrupt__"][0].value == {"question": "Where?", "goal": "sea"}
    assert graph.get_state(config).next == ("travel",)


def test_node_hands_the_question_of_a_remote_graph_on_and_the_answer_back(remote: Remote) -> None:
    # LangGraph does not tell a RemoteGraph that it is resumed: whoever calls it does.
    inner, place, config = remote("asking"), thread(), thread()
    inner.sync_client.threads.create(**place["configurable"])

    def travel(state: Trip) -> Any:
        if not inner.get_state(place).next:
            inner.invoke({"goal": state["goal"]}, place)
        (question,) = inner.get_state(place).tasks[0].interrupts
        return {"answer": inner.invoke(Command(resume=interrupt(question.value)), place)["answer"]}

    graph = travelling(travel)
    paused = graph.invoke(SEA, config)
    result = graph.invoke(Command(resume="north"), config)

    assert paused["__interrupt__"][0].value == {"question": "Where?", "goal": "sea"}
    assert result == {"goal": "sea", "steps": ["packed", "rested"], "answer": "north"}
    assert inner.get_state(place).values["steps"] == ["first", "asked", "third"]
