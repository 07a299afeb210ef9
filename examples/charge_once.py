"""A payment that must not be repeated on doubt, and a power cut at the worst moment.

The bank takes no idempotency key, so a repeated call would pay twice. `effect="once"` writes down the intent before the
call. After a crash nobody knows whether it happened, so `verify` looks; if it cannot tell either, a person is asked.

    $ python examples/charge_once.py crash
    The bank has booked 120 EUR. Now the power goes.
    $ python examples/charge_once.py
    In doubt: looking into the bank's book.
    Paid, and booked once: booking 1 over 120 EUR
    $ python examples/charge_once.py
    Paid, and booked once: booking 1 over 120 EUR
"""

import os
import signal
import sys
from pathlib import Path
from typing import TypedDict

from bide import START, Done, NotDone, StateGraph, step

BOOK = Path("bank.txt")  # what the bank knows: one line for each booking


class Bill(TypedDict, total=False):
    amount: int
    booking: str


def transfer(amount: int) -> str:
    """Pay. The bank books it, and a power cut may keep us from ever hearing of it."""
    with BOOK.open("a") as book:
        book.write(f"{amount} EUR\n")
    if "crash" in sys.argv:
        print(f"The bank has booked {amount} EUR. Now the power goes.", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return "booking 1"


def look(key: str) -> Done | NotDone:
    """Find out whether the transfer in doubt has happened."""
    print("In doubt: looking into the bank's book.")
    return Done("booking 1") if BOOK.exists() else NotDone()


def pay(bill: Bill) -> Bill:
    return {"booking": step(transfer, bill["amount"], effect="once", verify=look)}


builder = StateGraph(Bill)
builder.add_node(pay)
builder.add_edge(START, "pay")

if __name__ == "__main__":
    graph = builder.compile(checkpointer="sqlite:///bills.db")
    config = {"configurable": {"thread_id": "bill-1"}}
    found = graph.get_state(config)
    if "booking" in found.values:
        result = found.values  # paid before: a new run would pay again
    else:
        result = graph.invoke(None if found.next else {"amount": 120}, config)
    print(f"Paid, and booked once: {result['booking']} over {BOOK.read_text().strip()}")
