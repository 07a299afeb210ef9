"""Agents as people put them behind a chat or an inbox."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from bide import START, AIMessage, CompiledGraph, StateGraph, add_messages, interrupt


class Talk(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    outcome: Any


def reply(state: Talk) -> dict[str, Any]:
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].content}")]}


def propose(state: Talk) -> dict[str, Any]:
    """Ask as LangChain's middleware does."""
    asked = {
        "action_requests": [{"name": "send_mail", "args": {"to": "ada"}, "description": "Send it?"}],
        "review_configs": [{"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject"]}],
    }
    return {"outcome": interrupt(asked)}


def request(state: Talk) -> dict[str, Any]:
    """Ask as Agent Inbox wants to be asked."""
    asked = {
        "action_request": {"action": "send_mail", "args": {"to": "ada"}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
        "description": "# Send it?",
    }
    return {"outcome": interrupt([asked])}


def all_agents() -> list[CompiledGraph]:
    """All of them, each new."""
    return [
        StateGraph(Talk).add_node(reply).add_edge(START, "reply").compile(name="talk"),
        StateGraph(Talk).add_node(propose).add_edge(START, "propose").compile(name="proposing"),
        StateGraph(Talk).add_node(request).add_edge(START, "request").compile(name="requesting"),
    ]
