"""A shop, as somebody who uses Bide would write it: what the command line is tried on."""

from __future__ import annotations

import os
from typing import TypedDict

from bide import END, START, StateGraph, Store, interrupt
from bide.runtime import Bide
from bide.testing import FakeClock
from bide.waits import all_of, approval, event


class Order(TypedDict, total=False):
    amount: int
    decision: str
    note: str


def check(state: Order) -> Order:
    return {"note": "checked"}


def approve(state: Order) -> Order:
    decision = interrupt(
        {"question": f"Refund {state['amount']} €?"},
        wake=approval("Refund?", options=["approve", "reject"], assignees=["ann"]),
        timeout="48h",
    )
    return {"decision": decision.value}


def pay(state: Order) -> Order:
    if os.environ.get("BANK") == "closed":
        raise ValueError("the bank is closed")
    return {"note": "paid"}


def wait_for_payment(state: Order) -> Order:
    return {"note": str(interrupt("paid?", wake=event("paid", match={"amount": state["amount"]})).value["amount"])}


def sign(state: Order) -> Order:
    both = all_of(
        boss=approval("The boss?", options=["yes", "no"]), clerk=approval("The clerk?", options=["yes", "no"])
    )
    interrupt("sign here", wake=both)
    return {"decision": "signed"}


def count(state: Order) -> Order:
    first = interrupt("How many?", response_schema={"type": "integer"})
    return {"amount": first}


def chat(state: Order) -> Order:
    return {"note": interrupt("What is it about?")}


def clock() -> FakeClock | None:
    now = os.environ.get("SHOP_NOW")
    return None if now is None else FakeClock(int(now))


store = Store.open(os.environ["SHOP_STORE"], schema=os.environ.get("SHOP_SCHEMA"), clock=clock())


def line(name: str, *nodes: object, **options: object):
    builder = StateGraph(Order)
    names = [node.__name__ for node in nodes]
    for node in nodes:
        builder.add_node(node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile(name=name, **options)


refunds = line("refunds", check, approve, pay)
payments = line("payments", wait_for_payment)
contracts = line("contracts", sign)
counting = line("counting", count)
chats = line("chats", chat)

careful = line("careful", check, pay, interrupt_before=["pay"], checkpointer=store)

GRAPHS = [refunds, payments, contracts, counting, chats, careful]

app = Bide(store, GRAPHS)
