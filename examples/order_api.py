"""An order that is placed over HTTP: one address, and every request is on its own. What is sent starts the order, or
answers what it asks. `bide serve examples/order_api.py:graph` serves it to the world; here it is called in one process.

$ python examples/order_api.py order-1 tea
waiting: One tea is 40 EUR. Shall we charge it?
$ python examples/order_api.py order-1 pay
done: Your tea is on its way.
$ python examples/order_api.py order-2 tea
waiting: One tea is 40 EUR. Shall we charge it?
$ python examples/order_api.py order-2 cancel
done: Nothing was charged.
$ python examples/order_api.py order-3 "the moon"
done: We do not sell the moon.
"""

import sys
from typing import Annotated, Any, TypedDict

from starlette.testclient import TestClient

from bide import END, START, AIMessage, Bide, Command, StateGraph, add_messages, interrupt, step
from bide.server import create_app

CATALOGUE = {"tea": 40}


class Order(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    item: str
    price: int


def say(text: str) -> dict[str, Any]:
    return {"messages": [AIMessage(text)]}


def receive(order: Order) -> Order:
    return {"item": order["messages"][-1].content}


def inventory(order: Order) -> Command[str]:
    if order["item"] not in CATALOGUE:
        return Command(update=say(f"We do not sell {order['item']}."), goto=END)
    return Command(goto="price")


def price(order: Order) -> Order:
    return {"price": CATALOGUE[order["item"]]}


def payment(order: Order) -> Command[str]:
    said = interrupt(f"One {order['item']} is {order['price']} EUR. Shall we charge it?")
    if said != "pay":
        return Command(update=say("Nothing was charged."), goto=END)
    step(charge, order["price"], effect="once")
    return Command(goto="warehouse")


def charge(amount: int) -> None:
    """Here the money would move; never twice, however often the node runs."""


def warehouse(order: Order) -> dict[str, Any]:
    return say(f"Your {order['item']} is on its way.")


builder = StateGraph(Order).add_edge(START, "receive").add_edge("receive", "inventory").add_edge("price", "payment")
for node in (receive, inventory, price, payment, warehouse):
    builder.add_node(node)
graph = builder.compile(name="order")


if __name__ == "__main__":
    conversation, text = sys.argv[1:]
    with Bide("sqlite:///orders.db", [graph]) as app, app.worker(), TestClient(create_app(app)) as client:
        told = client.post(f"/conversations/{conversation}", json={"graph": "order", "input": text}).json()
        print(f"{told['status']}: {told['message']}")
