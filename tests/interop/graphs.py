"""LangGraph's graphs as its users write them, and its checkpoints as it makes them."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}

Call = Callable[..., Any]


def call(graph: Any, given: Any, config: Any = CONFIG, **options: Any) -> Any:
    """Call a graph in the caller's thread."""
    return graph.invoke(given, config, **options)


def acall(graph: Any, given: Any, config: Any = CONFIG, **options: Any) -> Any:
    """Call a graph on an event loop of its own."""
    return asyncio.run(graph.ainvoke(given, config, **options))


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    answer: str


def asking() -> StateGraph[Any]:
    """A node, then one that asks, then one that tells what was answered."""

    def ask(state: Log) -> Log:
        return {"answer": interrupt({"question": "Ship it?"})}

    graph = StateGraph(Log)
    graph.add_node("prepare", lambda state: {"log": ["prepared"]})
    graph.add_node("ask", ask)
    graph.add_node("tell", lambda state: {"log": [f"answered {state['answer']}"]})
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "ask")
    graph.add_edge("ask", "tell")
    graph.add_edge("tell", END)
    return graph


def outer() -> StateGraph[Any]:
    """The graph that asks, as a node of another one."""
    graph = StateGraph(Log)
    graph.add_node("inner", asking().compile())
    graph.add_node("after", lambda state: {"log": ["after"]})
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "after")
    return graph


def fan_out(width: int) -> StateGraph[Any]:
    """So many packets, each in a task of its own."""
    graph = StateGraph(Log)
    graph.add_node("square", lambda packet: {"log": [str(packet["n"] ** 2)]})
    graph.add_conditional_edges(START, lambda state: [Send("square", {"n": n}) for n in range(width)])
    return graph


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def chat() -> StateGraph[Any]:
    """A model that answers every message."""

    def reply(state: Chat) -> Chat:
        said = state["messages"][-1].content
        return {"messages": [AIMessage(f"You said: {said}")]}

    graph = StateGraph(Chat)
    graph.add_node("model", reply)
    graph.add_edge(START, "model")
    return graph


def say(text: str) -> dict[str, Any]:
    """What a user types."""
    return {"messages": [HumanMessage(text)]}


def _joined(state: list[str], writes: list[list[str]]) -> list[str]:
    return state + [line for write in writes for line in write]


def delta(frequency: int = 4) -> StateGraph[Any]:
    """A channel whose value LangGraph puts together from its writes, and stores whole after so many of them."""
    state: Any = TypedDict(
        "state", {"lines": Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=frequency)]}
    )  # type: ignore[misc]
    graph = StateGraph(state)
    graph.add_node("echo", lambda state: {"lines": [f"echo {state['lines'][-1]}"]})
    graph.add_edge(START, "echo")
    return graph


RESUME = Command(resume="yes")


def checkpoint(checkpoint_id: str, **values: Any) -> Any:
    """A checkpoint as LangGraph makes them."""
    return {
        "v": 4,
        "id": checkpoint_id,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
        "versions_seen": {},
        "updated_channels": None,
    }
