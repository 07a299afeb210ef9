"""Graphs that both libraries can run: the same lines, with the imports of the one or of the other.

`TWIN=langgraph` takes LangGraph's, for LangGraph's own server; everything else takes ours.
"""

from __future__ import annotations

import operator
import os
from threading import Event
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

if os.environ.get("TWIN") == "langgraph":
    from langgraph.config import get_stream_writer
    from langgraph.graph import START, StateGraph, add_messages
    from langgraph.types import Command, interrupt
else:
    from bide import START, Command, StateGraph, add_messages, get_stream_writer, interrupt


class Chat(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


class Trip(TypedDict, total=False):
    goal: str
    steps: Annotated[list[str], operator.add]
    answer: Any
    seconds: float


class Taste(TypedDict, total=False):
    colour: str


def say(state: Chat) -> dict[str, Any]:
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello there friend", id="ai-1")]))
    return {"messages": [model.invoke(state["messages"])]}


def call_tool(state: Chat) -> dict[str, Any]:
    call = {"name": "pay", "args": {"amount": 5}, "id": "call-1"}
    return {"messages": [AIMessage("", id="ai-2", tool_calls=[call])]}


def use_tool(state: Chat) -> dict[str, Any]:
    return {"messages": [ToolMessage("paid", tool_call_id="call-1", name="pay", id="tool-1")]}


def first(state: Trip) -> dict[str, Any]:
    return {"steps": ["first"]}


def second(state: Trip) -> dict[str, Any]:
    return {"steps": ["second"]}


def third(state: Trip) -> dict[str, Any]:
    return {"steps": ["third"]}


def ask(state: Trip) -> dict[str, Any]:
    return {"steps": ["asked"], "answer": interrupt({"question": "Where?", "goal": state.get("goal")})}


def other(state: Trip) -> dict[str, Any]:
    return {"steps": [f"other {interrupt('And then?')}"]}


def fail(state: Trip) -> dict[str, Any]:
    raise ValueError("no way")


def nap(state: Trip) -> dict[str, Any]:
    Event().wait(state.get("seconds", 0.3))
    return {"steps": ["napped"]}


def write(state: Trip) -> dict[str, Any]:
    tell = get_stream_writer()
    tell({"progress": 1})
    tell("half")
    return {"steps": ["written"]}


def choose(state: Trip) -> Any:
    return Command(update={"steps": ["chosen"]}, goto="third")


def told(state: Trip, runtime: Any) -> dict[str, Any]:
    return {"steps": [str(runtime.context)]}


def line(name: str, *nodes: Any, state: Any = Trip) -> Any:
    """Make a graph of nodes one after the other."""
    builder = StateGraph(state)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    return builder.compile(name=name)


def make_nested() -> Any:
    inner = line("inner", ask, second)
    builder = StateGraph(Trip)
    builder.add_node("first", first)
    builder.add_node("inner", inner)
    builder.add_node("third", third)
    builder.add_edge(START, "first")
    builder.add_edge("first", "inner")
    builder.add_edge("inner", "third")
    return builder.compile(name="nested")


def make_both() -> Any:
    builder = StateGraph(Trip)
    builder.add_node("ask", ask)
    builder.add_node("other", other)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "other")
    return builder.compile(name="both")


def make_choosing() -> Any:
    builder = StateGraph(Trip)
    builder.add_node("choose", choose, destinations=("second", "third"))
    builder.add_node("second", second)
    builder.add_node("third", third)
    builder.add_edge(START, "choose")
    return builder.compile(name="choosing")


def all_twins() -> list[Any]:
    """All of them, each new."""
    return [
        line("chat", say, state=Chat),
        line("tooling", call_tool, use_tool, state=Chat),
        line("steps", first, second, third),
        line("asking", first, ask, third),
        make_both(),
        make_nested(),
        line("failing", first, fail),
        line("sleeping", first, nap, third),
        line("writing", write),
        make_choosing(),
    ]


GRAPHS = all_twins()
chat, tooling, steps, asking, both, nested, failing, sleeping, writing, choosing = GRAPHS
