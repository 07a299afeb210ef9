"""A quote goes out, and the thread waits for the customer's mail: for up to two days, and in no process at all.

$ python examples/wait_for_email.py
Sent to ada@example.org: your quote, 3 teapots
quote-1 is waiting: an e-mail from ada@example.org, subject Re: *
$ python examples/wait_for_email.py "Out of office"
quote-1 is waiting: an e-mail from ada@example.org, subject Re: *
$ python examples/wait_for_email.py "Re: your quote"
quote-1 is done: they answered, so 3 teapots are ordered
"""

import sys
from typing import TypedDict

from bide import START, Bide, StateGraph, step, wait_for
from bide.waits import email


class Quote(TypedDict, total=False):
    customer: str
    goods: str
    outcome: str


def send_mail(to: str, subject: str) -> None:
    print(f"Sent to {to}: {subject}")


def follow_up(quote: Quote) -> Quote:
    step(send_mail, quote["customer"], f"your quote, {quote['goods']}")  # once, however often this node replays
    reply = wait_for(email(from_=quote["customer"], subject="Re: *"), timeout="48h", default=None)
    if reply is None:
        return {"outcome": "no answer in two days, a colleague will call"}
    return {"outcome": f"they answered, so {quote['goods']} are ordered"}


graph = StateGraph(Quote).add_node(follow_up).add_edge(START, "follow_up").compile(name="quote")

if __name__ == "__main__":
    with Bide("sqlite:///quotes.db", [graph]) as app, app.worker():
        if not sys.argv[1:]:
            app.start("quote", {"customer": "ada@example.org", "goods": "3 teapots"}, thread_id="quote-1")
        else:
            app.deliver("sales", {"from": "Ada <ada@example.org>", "subject": sys.argv[1]}, kind="email")
        list(app.follow("quote-1", until="rest"))  # until it is done, or waits
        thread = app.get("quote-1")
        print(
            f"quote-1 is {thread.status}: {thread.waits[0].waiting_for if thread.waits else thread.values['outcome']}"
        )
