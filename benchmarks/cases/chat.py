"""The conversation that every subject holds: each turn is one call on the same thread, a question and a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import Settings, metric, took

WORDS = "The parcel left the warehouse on Tuesday and is expected at your door before the weekend. "
EDGE = 50


def line(turn: int, speaker: str) -> str:
    """Return what is said: about 200 bytes, and never the same twice."""
    return f"{speaker} {turn}: {WORDS * 2}"


def graph_of(builder: Any, state: Any, start: str, end: str) -> Any:
    """Draw the graph with the names of whoever is measured."""

    def reply(state: Any) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": line(len(state["messages"]), "assistant")}]}

    graph = builder(state)
    graph.add_node("reply", reply)
    graph.add_edge(start, "reply")
    graph.add_edge("reply", end)
    return graph


def hold(asked: Settings, say: Callable[[dict[str, Any]], Any]) -> tuple[dict[str, Any], int]:
    """Hold a conversation; return how much slower its end is than its beginning, and how many bytes were said."""
    turns, edge = asked.amount(500, 4), asked.amount(EDGE, 1)
    turn_times: list[float] = []
    messages: list[Any] = []
    for turn in range(turns):
        given = {"messages": [{"role": "user", "content": line(turn, "user")}]}
        turn_times.append(took(lambda given=given: messages.append(say(given)["messages"])).wall)
    assert len(messages[-1]) == 2 * turns
    said = sum(len(message.content.encode()) for message in messages[-1])
    return metric("×", [sum(turn_times[-edge:]) / sum(turn_times[:edge])]), said
