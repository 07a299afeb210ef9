"""The pause that every subject makes: one node asks, another acts on the answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

from case import Settings, metric, timing, took

STATE_BYTES = 100
"""How long the text in the state is: what is stored beside it is the price of a pause."""


class Order(TypedDict):
    """A small state."""

    text: str
    approved: bool


def graph_of(builder: Any, start: str, end: str, interrupt: Callable[[Any], Any]) -> Any:
    """Draw the graph with the names of whoever is measured."""

    def ask(state: Order) -> dict[str, Any]:
        return {"approved": interrupt("May this order be shipped?")}

    def ship(state: Order) -> dict[str, Any]:
        return {"text": "shipped"}

    graph = builder(Order)
    graph.add_node("ask", ask)
    graph.add_node("ship", ship)
    graph.add_edge(start, "ask")
    graph.add_edge("ask", "ship")
    graph.add_edge("ship", end)
    return graph


def config_of(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"order-{number:06d}"}}


def new_order() -> Order:
    return {"text": "x" * STATE_BYTES, "approved": False}


def measure_pairs(asked: Settings, pair: Callable[[int], None]) -> dict[str, Any]:
    """Time pairs of pause and resume: one after the other, and fifty in flight."""
    alone, together, width = asked.amount(60, 2), asked.amount(200, 4), asked.amount(50, 2)
    pair(0)  # opens what is opened once

    def one_by_one() -> None:
        for number in range(1, 1 + alone):
            pair(number)

    def all_at_once() -> None:
        with ThreadPoolExecutor(width) as pool:
            list(pool.map(pair, range(1000, 1000 + together)))

    return {
        **timing("pair", "µs", [took(one_by_one)], per=alone),
        **timing("pair_in_flight", "µs", [took(all_at_once)], per=together),
    }


def price_of_a_pause(asked: Settings, threads: int, empty: int, memory: float) -> dict[str, Any]:
    """Return what one of so many paused threads takes, beside its state, on a disk that held `empty`, and in memory."""
    return {
        "paused_bytes": metric("B", [(asked.bytes_on_disk() - empty) / threads - STATE_BYTES]),
        "paused_memory": metric("B", [memory]),
    }
