"""Two people must agree before money is paid. Each answer is told what came of it, also one that comes too late.

$ python examples/request_approval.py
maya, noor: Refund 120 EUR to Grace?
$ python examples/request_approval.py maya approve
counted, and refund-1 is waiting
$ python examples/request_approval.py maya reject
maya has decided before
$ python examples/request_approval.py noor approve
resumed, and refund-1 is done: Grace gets 120 EUR back
$ python examples/request_approval.py noor reject
Nobody asks noor any more
"""

import sys
from typing import TypedDict

from bide import START, AlreadyAnsweredError, Bide, StateGraph, all_of, wait_for
from bide.waits import approval


class Refund(TypedDict, total=False):
    customer: str
    amount: int
    outcome: str


def approve(refund: Refund) -> Refund:
    title = f"Refund {refund['amount']} EUR to {refund['customer']}?"
    answers = wait_for(all_of(maya=approval(title), noor=approval(title)), title=title, assignees=["maya", "noor"])
    if all(wake.value == "approve" for wake in answers.value.values()):
        return {"outcome": f": {refund['customer']} gets {refund['amount']} EUR back"}
    return {"outcome": f": {refund['customer']} gets a friendly letter"}


graph = StateGraph(Refund).add_node(approve).add_edge(START, "approve").compile(name="refund")


def answer(app: Bide, who: str, decision: str) -> str:
    waits = app.waits(assignee=who)
    if not waits:
        return f"Nobody asks {who} any more"
    try:
        told = app.wake(waits[0].id, decision, leaf=who, by=who)
    except AlreadyAnsweredError:
        return f"{who} has decided before"
    list(app.follow("refund-1", until="rest"))  # until it is done, or waits
    thread = app.get("refund-1")
    return f"{told.status}, and refund-1 is {thread.status}{thread.values.get('outcome', '')}"


if __name__ == "__main__":
    with Bide("sqlite:///refunds.db", [graph]) as app, app.worker():
        if sys.argv[1:]:
            print(answer(app, *sys.argv[1:]))
        else:
            app.start("refund", {"customer": "Grace", "amount": 120}, thread_id="refund-1")
            list(app.follow("refund-1", until="rest"))
            print("\n".join(f"{', '.join(wait.assignees)}: {wait.title}" for wait in app.waits()))
