"""The agents that the JavaScript clients talk to. They speak word by word, which takes a model of LangChain."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk

from bide import START, CompiledGraph, Runtime, StateGraph, add_messages, get_stream_writer, interrupt


class Chat(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    decision: Any


class Trip(TypedDict, total=False):
    goal: str
    steps: Annotated[list[str], operator.add]
    answers: Annotated[dict[str, Any], operator.or_]
    gate: str


class Taste(TypedDict, total=False):
    colour: str


def spoken(state: Chat, text: str) -> Any:
    """Let a model say something, word by word."""
    return GenericFakeChatModel(messages=iter([AIMessage(text)])).invoke(state["messages"])


class Halting(GenericFakeChatModel):
    """A model that stops in the middle of a sentence, until somebody makes a file."""

    gate: str

    def _stream(self, *args: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        for number, chunk in enumerate(super()._stream(*args, **more)):
            if number == 3:
                wait_for(self.gate)
            yield chunk


def wait_for(gate: str) -> None:
    """Come back when a file is there, which a client makes when it has seen what comes before."""
    never = threading.Event()
    while not Path(gate).exists():
        never.wait(0.02)


def tell_slowly(state: Chat) -> dict[str, Any]:
    model = Halting(messages=iter([AIMessage("Once upon a time")]), gate=state["messages"][-1].content)
    return {"messages": [model.invoke(state["messages"])]}


def answer(state: Chat) -> dict[str, Any]:
    return {"messages": [spoken(state, f"You said {state['messages'][-1].content}")]}


def draft(state: Chat) -> dict[str, Any]:
    return {"messages": [spoken(state, "I would send a mail")]}


def approve(state: Chat) -> dict[str, Any]:
    action = {"name": "send_mail", "args": {"to": "ada"}, "description": "A mail to Ada"}
    config = {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject"]}
    return {"decision": interrupt({"action_requests": [action], "review_configs": [config]})}


def report(state: Chat) -> dict[str, Any]:
    return {"messages": [spoken(state, "It is done")]}


def call_tool(state: Chat) -> dict[str, Any]:
    call = {"name": "weather", "args": {"place": "Bern"}, "id": "call-1"}
    return {"messages": [AIMessage("", id="asks", tool_calls=[call])]}


def use_tool(state: Chat) -> dict[str, Any]:
    return {"messages": [ToolMessage("sunny", tool_call_id="call-1", name="weather", id="tells")]}


def first(state: Trip, runtime: Runtime[Taste]) -> dict[str, Any]:
    get_stream_writer()({"progress": 1})
    return {"steps": [f"first {(runtime.context or {}).get('colour', 'plain')}"]}


def pass_gate(state: Trip) -> dict[str, Any]:
    get_stream_writer()("before the gate")
    wait_for(state["gate"])
    return {"steps": ["passed"]}


def last(state: Trip) -> dict[str, Any]:
    return {"steps": ["last"]}


def where(state: Trip) -> dict[str, Any]:
    return {"answers": {"where": interrupt({"question": "Where?", "goal": state.get("goal")})}}


def when(state: Trip) -> dict[str, Any]:
    return {"answers": {"when": interrupt("When?")}}


def fail(state: Trip) -> dict[str, Any]:
    raise ValueError("no way")


def line(name: str, state: Any, *nodes: Any) -> CompiledGraph:
    """Make a graph of nodes one after the other."""
    builder = StateGraph(state, Taste)
    for before, node in zip((START, *(node.__name__ for node in nodes)), nodes, strict=False):
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
    return builder.compile(name=name)


def both() -> CompiledGraph:
    """Asks two questions at once."""
    builder = StateGraph(Trip).add_node(where).add_node(when)
    return builder.add_edge(START, "where").add_edge(START, "when").compile(name="both")


def nested() -> CompiledGraph:
    """Has a graph inside that asks."""
    builder = StateGraph(Trip).add_node("inner", line("inner", Trip, first, where)).add_node(last)
    return builder.add_edge(START, "inner").add_edge("inner", "last").compile(name="nested")


def agents() -> list[CompiledGraph]:
    """All of them, each new."""
    return [
        line("chat", Chat, answer),
        line("tales", Chat, tell_slowly),
        line("mails", Chat, draft, approve, report),
        line("tooling", Chat, call_tool, use_tool, report),
        line("steps", Trip, first, last),
        line("asking", Trip, first, where, last),
        line("gated", Trip, first, pass_gate, last),
        line("failing", Trip, first, fail),
        both(),
        nested(),
    ]
