"""A refund that a person approves: asked in one process, answered in another, at any later time.

$ python examples/approval.py
Waiting: Refund 120 EUR to Ada?
$ python examples/approval.py yes
Done: Ada gets 120 EUR back.
"""

import sys
from typing import Literal, TypedDict

from bide import START, Command, StateGraph, interrupt


class Refund(TypedDict, total=False):
    customer: str
    amount: int
    outcome: str


def approve(refund: Refund) -> Command[Literal["pay", "decline"]]:
    answer = interrupt(
        f"Refund {refund['amount']} EUR to {refund['customer']}?", response_schema={"enum": ["yes", "no"]}
    )
    return Command(goto="pay" if answer == "yes" else "decline")


def pay(refund: Refund) -> Refund:
    return {"outcome": f"{refund['customer']} gets {refund['amount']} EUR back."}


def decline(refund: Refund) -> Refund:
    return {"outcome": f"{refund['customer']} gets a friendly letter."}


builder = StateGraph(Refund)
builder.add_node(approve)
builder.add_node(pay)
builder.add_node(decline)
builder.add_edge(START, "approve")

if __name__ == "__main__":
    graph = builder.compile(checkpointer="sqlite:///approval.db")  # a file in the present folder
    config = {"configurable": {"thread_id": "refund-1"}}
    answers = sys.argv[1:]
    result = graph.invoke(Command(resume=answers[0]) if answers else {"customer": "Ada", "amount": 120}, config)
    print(f"Waiting: {result.interrupt_value}" if result.is_interrupted else f"Done: {result['outcome']}")
