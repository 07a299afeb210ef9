"""A scripted model, and a small loop of model and tools in plain nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide import END, START, AIMessage, HumanMessage, MessagesState, StateGraph, SystemMessage, ToolMessage

Tools = Mapping[str, Callable[..., Any]]


class Script:
    """A model that says its lines one after the other, and remembers what it was told."""

    def __init__(self, *lines: AIMessage) -> None:
        self.lines = list(lines)
        self.heard: list[list[Any]] = []

    def __call__(self, messages: list[Any]) -> AIMessage:
        self.heard.append(list(messages))
        return self.lines.pop(0)


def says(text: str) -> AIMessage:
    """A line without a call."""
    return AIMessage(text)


def calls(*names: str, **args: Any) -> AIMessage:
    """A line that calls these tools, all with the same arguments."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"} for name in names])


def asked(text: str) -> dict[str, Any]:
    """The input of a conversation."""
    return {"messages": [HumanMessage(text)]}


def result_of(call: dict[str, Any], content: Any, **more: Any) -> ToolMessage:
    """What a tool answered to a call."""
    return ToolMessage(str(content), tool_call_id=call["id"], name=call["name"], **more)


def with_prompt(prompt: str, messages: list[Any]) -> list[Any]:
    """What a model is told: its prompt, if there is one, and then the conversation."""
    return [SystemMessage(prompt), *messages] if prompt else messages


def run_all(tools: Tools) -> Callable[[MessagesState], dict[str, Any]]:
    """A node that runs every call of the last message."""

    def run(state: MessagesState) -> dict[str, Any]:
        pending = state["messages"][-1].tool_calls
        return {"messages": [result_of(call, tools[call["name"]](**call["args"])) for call in pending]}

    return run


def react_agent(
    model: Script, tools: Tools, *, prompt: str = "", run: Callable[[MessagesState], Any] | None = None
) -> StateGraph:
    """agent → tools → agent, until the model calls nothing more."""

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model(with_prompt(prompt, state["messages"]))]}

    builder = StateGraph(MessagesState).add_node("agent", agent).add_node("tools", run or run_all(tools))
    builder.add_conditional_edges("agent", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    return builder.add_edge(START, "agent").add_edge("tools", "agent")


def said(messages: list[Any]) -> list[tuple[str, Any]]:
    """Who said what; a message without text shows the tools that it calls."""
    return [
        (message.type, message.content or [call["name"] for call in getattr(message, "tool_calls", [])])
        for message in messages
    ]
