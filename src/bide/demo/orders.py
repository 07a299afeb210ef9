"""The graph of the demo: check an order, ask a person, then charge and ship, or let the goods go."""

from __future__ import annotations

from decimal import Decimal
from typing import TypedDict

from bide import START, CompiledGraph, Runtime, StateGraph, Store, interrupt, step
from bide.demo.shop import PRICES, STOCK, Shop


class Order(TypedDict, total=False):
    """What is known of an order."""

    item: str
    count: int
    in_stock: bool
    total: Decimal
    approved: bool
    reservation: str
    payment: str
    parcel: str


def receive(order: Order) -> Order:
    """Read the order as the customer wrote it."""
    return {"item": order["item"].strip().lower()}


def check_stock(order: Order) -> Order:
    """Look at the shelf; runs beside `check_price`."""
    return {"in_stock": STOCK[order["item"]] >= order["count"]}


def check_price(order: Order) -> Order:
    """Look at the price list; runs beside `check_stock`."""
    return {"total": PRICES[order["item"]] * order["count"]}


def reserve(order: Order, runtime: Runtime[Shop]) -> Order:
    """Put the goods aside."""
    return {"reservation": step(runtime.context.reserve, order["item"], order["count"])}


def approve(order: Order) -> Order:
    """Ask a person. The thread is saved and leaves memory here, for as long as the person takes."""
    question = f"Approve {order['count']} × {order['item']} for {order['total']} EUR?"
    return {"approved": interrupt(question, response_schema=bool)}


def decide(order: Order) -> str:
    """Choose what comes after the person's answer."""
    return "charge" if order["approved"] else "release"


def charge(order: Order, runtime: Runtime[Shop]) -> Order:
    """Take the money."""
    return {"payment": step(runtime.context.charge, order["total"])}


def ship(order: Order, runtime: Runtime[Shop]) -> Order:
    """Send the goods."""
    return {"parcel": step(runtime.context.ship, order["reservation"])}


def release(order: Order, runtime: Runtime[Shop]) -> None:
    """Put the goods back on the shelf."""
    step(runtime.context.release, order["reservation"])


def order_graph(store: Store) -> CompiledGraph:
    """Put the graph together."""
    graph = StateGraph(Order, Shop)
    for node in (receive, check_stock, check_price, reserve, approve, charge, ship, release):
        graph.add_node(node)
    graph.add_edge(START, "receive")
    graph.add_edge("receive", "check_stock")
    graph.add_edge("receive", "check_price")
    graph.add_edge(["check_stock", "check_price"], "reserve")
    graph.add_edge("reserve", "approve")
    graph.add_conditional_edges("approve", decide, ["charge", "release"])
    graph.add_edge("charge", "ship")
    return graph.compile(checkpointer=store, name="orders")
