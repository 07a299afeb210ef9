"""Graphs whose streams are cut: with steps, branches, inner graphs, tokens of a model, questions, and gates."""

from __future__ import annotations

import operator
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from bide import START, CompiledGraph, StateGraph, add_messages, get_stream_writer, interrupt, wait_for
from bide.waits import approval, webhook

ALL_MODES = (
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
    "tools",
)
WORDS = ["All ", "the ", "way ", "down"]
SECRET = "it is a secret to everybody"


class Trip(TypedDict, total=False):
    goal: str
    folder: str
    parts: int
    bulk: int
    seen: Annotated[list[str], operator.add]
    messages: Annotated[list[Any], add_messages]
    answer: Any


def note(state: Trip, what: str) -> None:
    """Write down outside of the store that something was done."""
    if state.get("folder"):
        with open(Path(state["folder"]) / "ledger.txt", "a", encoding="utf-8") as ledger:
            ledger.write(f"{what}\n")


def plan(state: Trip) -> dict[str, Any]:
    tell = get_stream_writer()
    tell({"step": "planning"})
    tell({"step": "planned", "name": "progress"})
    note(state, "plan")
    return {"seen": ["plan"]}


def talk(state: Trip) -> dict[str, Any]:
    """Say something word by word, as a model does, with the same id each time."""
    text = "".join(WORDS)
    model = GenericFakeChatModel(messages=iter([AIMessage(text, id="said-1")]))
    return {"messages": [model.invoke("go")], "seen": ["talk"]}


def call(state: Trip) -> dict[str, Any]:
    used = {"name": "book", "args": {"to": state.get("goal")}, "id": "call-1"}
    return {"messages": [AIMessage("", id="said-2", tool_calls=[used])]}


def use(state: Trip) -> dict[str, Any]:
    return {"messages": [ToolMessage("booked", tool_call_id="call-1", name="book", id="tool-1")]}


def pack(state: Trip) -> dict[str, Any]:
    get_stream_writer()({"packed": "a hat"})
    return {"seen": ["pack"]}


def first(state: Trip) -> dict[str, Any]:
    note(state, "first")
    return {"seen": ["first"]}


def second(state: Trip) -> dict[str, Any]:
    """Come to an end when the other one is saved, and never at the same time."""
    wait_for_file(Path(state["folder"]) / "open")
    return {"seen": ["second"]}


def lock(state: Trip) -> dict[str, Any]:
    return {"seen": ["lock"]}


def ask(state: Trip) -> dict[str, Any]:
    get_stream_writer()("before the question")
    answer = interrupt({"question": "Go?"})
    note(state, f"answered {answer}")
    return {"answer": answer, "seen": ["ask"]}


def decide(state: Trip) -> dict[str, Any]:
    answer = wait_for(approval("Pay?")).value
    note(state, f"answered {answer}")
    return {"answer": answer}


def hear(state: Trip) -> dict[str, Any]:
    paid = wait_for(webhook("paid", match={"order": state["goal"]})).value
    note(state, f"answered {paid['order']}")
    return {"answer": paid["order"]}


def end(state: Trip) -> dict[str, Any]:
    note(state, "end")
    return {"seen": ["end"]}


def gate(state: Trip) -> dict[str, Any]:
    """Say half a sentence, and the rest when the test lets it: a process that is killed meanwhile never does."""
    tell = get_stream_writer()
    note(state, "gate")
    tell({"half": 1})
    wait_for_file(Path(state["folder"]) / "open")
    tell({"half": 2})
    return {"seen": ["gate"]}


def pour(state: Trip) -> dict[str, Any]:
    """Tell much."""
    tell = get_stream_writer()
    for number in range(state["parts"]):
        tell({"number": number, "text": "x" * state["bulk"]})
    return {"seen": ["poured"]}


async def pour_async(state: Trip) -> dict[str, Any]:
    return pour(state)


def wait_for_file(path: Path) -> None:
    """Come back when a file is there."""
    never = Event()
    while not path.exists():
        never.wait(0.02)


def chain(name: str, *nodes: Any, **named: Any) -> CompiledGraph:
    """A graph of nodes one after the other."""
    builder = StateGraph(Trip)
    before = START
    every = {**{one.__name__: one for one in nodes}, **named}
    for key, node in every.items():
        builder.add_node(key, node)
        builder.add_edge(before, key)
        before = key
    return builder.compile(name=name)


def journey() -> CompiledGraph:
    """Everything that can be told: tokens, tools, two nodes at once, and a graph inside."""
    inner = StateGraph(Trip).add_node(pack).add_edge(START, "pack").compile(name="inner")
    builder = StateGraph(Trip)
    builder.add_node(plan).add_node(talk).add_node(call).add_node(use)
    builder.add_node("inner", inner).add_node(lock).add_node(end)
    builder.add_edge(START, "plan").add_edge("plan", "talk").add_edge("talk", "call").add_edge("call", "use")
    builder.add_edge("use", "inner").add_edge("use", "lock")
    builder.add_edge(["inner", "lock"], "end")
    return builder.compile(name="journey")


def siblings() -> CompiledGraph:
    """Two nodes at once, of which one waits for the test."""
    builder = StateGraph(Trip).add_node(plan).add_node(first).add_node(second).add_node(end)
    builder.add_edge(START, "plan").add_edge("plan", "first").add_edge("plan", "second")
    return builder.add_edge(["first", "second"], "end").compile(name="siblings")


def all_graphs() -> list[CompiledGraph]:
    """All of them, each new."""
    return [
        journey(),
        siblings(),
        chain("walk", plan, talk, end),
        chain("asking", plan, ask, end),
        chain("deciding", decide),
        chain("hearing", hear),
        chain("gated", plan, talk, gate, end),
        chain("pouring", pour, end),
        chain("pouring-async", pour_async, end),
    ]
