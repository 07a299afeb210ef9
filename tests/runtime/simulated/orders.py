"""What the simulated fleet works at: orders with effects of all three kinds and waits of many, and a ledger outside."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from bide import (
    END,
    START,
    CompiledGraph,
    Done,
    NotDone,
    StateGraph,
    any_of,
    interrupt,
    quorum,
    sleep,
    spawn,
    step,
    wait_for,
)
from bide.waits import approval, child, event
from tests.runtime.simulated.stage import breathe

KINDS = ("pack", "pay", "slot", "nap", "approve", "vote", "ask", "help")
TABLE = "CREATE TABLE bookings (booked TEXT NOT NULL)"


class Order(TypedDict):
    name: str
    plan: list[str]
    log: Annotated[list[Any], operator.add]


class Ledger:
    """What happened outside, which no crash undoes."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.charged: Counter[str] = Counter()

    def begin_anew(self) -> None:
        """Forget everything: the graphs are compiled once, for all lives."""
        self.calls.clear()
        self.charged.clear()

    # ── Effects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def reserve(self, what: str, idempotency_key: str) -> str:
        self.calls[f"{what}|{idempotency_key}"] += 1
        return "reserved"

    def charge(self, what: str, idempotency_key: str) -> str:
        self.charged[f"{what}|{idempotency_key}"] += 1
        return "charged"

    def was_charged(self, key: str) -> Done | NotDone:
        return Done("charged") if any(line.endswith(f"|{key}") for line in self.charged) else NotDone()

    @staticmethod
    def book(connection: Any, what: str) -> str:
        connection.execute("INSERT INTO bookings (booked) VALUES (?)", (what,))
        return "booked"

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def pack(self, state: Order) -> dict[str, Any]:
        name = place(state)
        step(self.reserve, name)
        breathe()
        step(self.charge, name, effect="once", verify=self.was_charged)
        step(self.book, name, effect="tx")
        return {"log": ["packed"]}

    def pay(self, state: Order) -> dict[str, Any]:
        paid = wait_for(event("paid", match={"order": place(state)}))
        return {"log": [f"paid {paid.value['amount']}"]}

    def slot(self, state: Order) -> dict[str, Any]:
        slot = wait_for(event("slot", exclusive=True))
        return {"log": [["slot", slot.value["number"]]]}

    def nap(self, state: Order) -> dict[str, Any]:
        sleep("1h")
        return {"log": ["slept"]}

    def approve(self, state: Order) -> dict[str, Any]:
        by_mail = event("approved", match={"order": place(state)})
        reply = wait_for(any_of(approval("ship?"), by_mail), timeout="2h", default=None)
        return {"log": [["approved", None if reply is None else reply.winner]]}

    def vote(self, state: Order) -> dict[str, Any]:
        votes = [event("vote", match={"order": place(state), "by": who}) for who in "abc"]
        reply = wait_for(quorum(2, *votes))
        return {"log": [["voted", len(reply.value)]]}

    def ask(self, state: Order) -> dict[str, Any]:
        answer = interrupt("how many?")
        return {"log": [f"answered {answer}"]}

    def help(self, state: Order) -> dict[str, Any]:
        helper = spawn("helper", {"name": place(state), "plan": ["pack", "nap"], "log": []})
        result = wait_for(child(helper))
        return {"log": [["helped", result.value.status]]}


def place(state: Order) -> str:
    """Where an order stands: the name of whatever is done there."""
    return f"{state['name']}.{len(state['log'])}"


def expected_log(plan: list[str]) -> list[str]:
    """What an order says in the end, by its first words."""
    said = {"pack": "packed", "pay": "paid 5", "slot": "slot", "nap": "slept", "approve": "approved", "vote": "voted"}
    said |= {"ask": "answered 7", "help": "helped"}
    return [said[kind] for kind in plan]


def _graph(ledger: Ledger, name: str) -> CompiledGraph:
    builder = StateGraph(Order)

    def following(state: Order) -> str:
        done = len(state["log"])
        return state["plan"][done] if done < len(state["plan"]) else END

    for kind in KINDS:
        builder.add_node(kind, getattr(ledger, kind))
        builder.add_conditional_edges(kind, following, [*KINDS, END])
    builder.add_conditional_edges(START, following, [*KINDS, END])
    return builder.compile(name=name)


LEDGER = Ledger()
GRAPHS = [_graph(LEDGER, "order"), _graph(LEDGER, "helper")]
"""The graph of orders, and that of their helpers: both go through the plan that they are given."""
