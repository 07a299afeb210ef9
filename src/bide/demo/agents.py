"""The agents of the demo, as a user would write them: each waits for something, and goes on when it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from bide import START, CompiledGraph, StateGraph, all_of, spawn, step, wait_for
from bide.demo.outside import Outside
from bide.waits import approval, child, email, webhook

PAYMENTS = "payments"
"""The webhook by which the bank tells of payments."""

Node = Callable[[Any], dict[str, Any]]


class Quote(TypedDict, total=False):
    """An offer to a customer."""

    customer: str
    goods: str
    number: str
    is_ordered: bool
    outcome: str


def quote(world: Outside) -> CompiledGraph:
    """Wait for e-mail: send a quote, wait up to two days for the customer's answer, and then for the payment."""

    def offer(state: Quote) -> dict[str, Any]:
        step(world.send_mail, state["customer"], f"your {state['number']}, {state['goods']}")  # once, however often
        return {}

    def hear(state: Quote) -> dict[str, Any]:
        reply = wait_for(email(from_=state["customer"], subject=f"Re: *{state['number']}"), timeout="48h", default=None)
        if reply is None:
            return {"outcome": "no answer in two days; a colleague will call"}
        step(world.order, state["goods"])
        return {"is_ordered": True, "outcome": f"{state['goods']}, for they wrote: “{reply.value['body']}”"}

    def collect(state: Quote) -> dict[str, Any]:
        if not state.get("is_ordered"):
            return {}
        paid = wait_for(webhook(PAYMENTS, match={"quote": state["number"]}), timeout="14d", default=None)
        return {"outcome": f"{state['outcome']} {'and paid' if paid is not None else 'and never paid'}"}

    return _in_line("quote", Quote, offer, hear, collect)


class Refund(TypedDict, total=False):
    """Money that somebody wants back."""

    customer: str
    amount: int
    outcome: str


def refund(world: Outside) -> CompiledGraph:
    """Request approval: ask a person before money is paid."""

    def approve(state: Refund) -> dict[str, Any]:
        question = f"Refund {state['amount']} EUR to {state['customer']}?"
        decision = wait_for(approval(question, assignees=["you"]), timeout="24h", default=None)
        if decision is None or decision.value != "approve":
            return {"outcome": f"{state['customer']} gets a friendly letter"}
        step(world.pay, state["amount"], state["customer"])
        return {"outcome": f"{state['customer']} gets {state['amount']} EUR back"}

    return _in_line("refund", Refund, approve)


class Research(TypedDict, total=False):
    """A question that takes several readers."""

    topics: list[str]
    notes: list[str]
    outcome: str


def research(world: Outside) -> CompiledGraph:
    """Research with workers: a thread for each topic, side by side; wait for all; write down what they found."""

    def delegate(state: Research) -> dict[str, Any]:
        readers = {topic: spawn("reader", {"topic": topic}, key=topic) for topic in state["topics"]}
        ended = wait_for(all_of(**{topic: child(reader) for topic, reader in readers.items()}))
        return {"notes": [wake.value.summary for wake in ended.value.values()]}

    def publish(state: Research) -> dict[str, Any]:
        text = "; ".join(state["notes"])
        step(world.publish, text)
        return {"outcome": f"published: {text}"}

    return _in_line("research", Research, delegate, publish)


class Reading(TypedDict, total=False):
    """One topic."""

    topic: str
    summary: str


def reader(world: Outside) -> CompiledGraph:
    """Read about one topic: what the researcher spawns."""

    def read(state: Reading) -> dict[str, Any]:
        return {"summary": step(world.read, state["topic"])}

    return _in_line("reader", Reading, read)


def _in_line(name: str, schema: Any, *nodes: Node) -> CompiledGraph:
    builder = StateGraph(schema).add_sequence(list(nodes))
    return builder.add_edge(START, nodes[0].__name__).compile(name=name)


def agents(world: Outside) -> list[CompiledGraph]:
    """Return all of them."""
    return [quote(world), refund(world), research(world), reader(world)]


class Assignment(NamedTuple):
    """An agent that is started in the demo, with what for."""

    graph: str
    title: str
    about: str
    input: dict[str, Any]


CUSTOMER = "ada@example.org"
ASSIGNMENTS = (
    Assignment(
        "quote",
        "Wait for e-mail",
        f"sends a quote to {CUSTOMER}, waits for the\nanswer, then for the bank's webhook",
        {"customer": CUSTOMER, "goods": "3 teapots"},
    ),
    Assignment(
        "refund",
        "Request approval",
        "asks you before it pays 120 EUR back",
        {"customer": "Grace", "amount": 120},
    ),
    Assignment(
        "research",
        "Research with workers",
        "has three readers work side by side,\nwaits for all of them, sums up",
        {"topics": ["tides", "winds", "moods"]},
    ),
)
