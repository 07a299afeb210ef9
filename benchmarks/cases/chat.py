"""The conversation that every subject holds: each turn is one call on the same thread, a question and a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import Settings, metric, timing, took

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


def hold(asked: Settings, say: Callable[[dict[str, Any]], list[Any]]) -> tuple[dict[str, Any], int]:
    """Hold a conversation. `say` takes a message and returns all so far; return the metrics, and the bytes said."""
    turns, edge = asked.amount(500, 4), asked.amount(EDGE, 1)
    messages: list[Any] = []

    def take(turn: int) -> None:
        messages[:] = say({"role": "user", "content": line(turn, "user")})

    samples = [took(lambda turn=turn: take(turn)) for turn in range(turns)]
    assert len(messages) == 2 * turns
    said = sum(len(message.content.encode()) for message in messages)
    slowdown = sum(sample.wall for sample in samples[-edge:]) / sum(sample.wall for sample in samples[:edge])
    return {"slowdown": metric("×", [slowdown]), **timing("last_turns", "ms", samples[-edge:])}, said


def growth(asked: Settings, said: int, empty: int) -> dict[str, Any]:
    """Return the bytes on disk for a byte said, now that the conversation is over; `empty` was there before it."""
    return metric("×", [(asked.bytes_on_disk() - empty) / said])
