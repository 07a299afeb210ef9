"""Graphs that the tests of the server serve."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from bide import START, AIMessage, CompiledGraph, HumanMessage, Runtime, StateGraph, add_messages, interrupt


class Chat(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


class Tally(TypedDict, total=False):
    count: Annotated[int, operator.add]
    told: str


class Taste(TypedDict, total=False):
    colour: str


class Quote(TypedDict, total=False):
    customer: str
    outcome: str


def echo(state: Chat) -> dict[str, Any]:
    last = state["messages"][-1] if state.get("messages") else HumanMessage("nothing")
    return {"messages": [AIMessage(f"You said: {last.content}")]}


def tally(state: Tally, runtime: Runtime[Taste]) -> dict[str, Any]:
    return {"count": 1, "told": (runtime.context or {}).get("colour", "")}


def ask(state: Quote) -> dict[str, Any]:
    return {"outcome": interrupt({"question": "Close it?", "customer": state.get("customer")})}


def chat() -> CompiledGraph:
    """Answers each message with what was said."""
    return StateGraph(Chat).add_node(echo).add_edge(START, "echo").compile(name="chat")


def counting() -> CompiledGraph:
    """Counts its own runs, and says what it was told beside its input."""
    return StateGraph(Tally, Taste).add_node(tally).add_edge(START, "tally").compile(name="counting")


def asking() -> CompiledGraph:
    """Asks a person, and keeps the answer."""
    return StateGraph(Quote).add_node(ask).add_edge(START, "ask").compile(name="asking")


def nested() -> CompiledGraph:
    """Has a graph inside, which asks, between two steps of its own."""
    inner = StateGraph(Quote).add_node(ask).add_edge(START, "ask").compile(name="inner")
    outer = StateGraph(Quote)
    outer.add_node("begin", lambda state: {"customer": "Ada"})
    outer.add_node("inner", inner)
    outer.add_node("end", lambda state: {})
    outer.add_edge(START, "begin").add_edge("begin", "inner").add_edge("inner", "end")
    return outer.compile(name="nested")


def all_graphs() -> list[CompiledGraph]:
    """All of them, each new."""
    return [chat(), counting(), asking(), nested()]
