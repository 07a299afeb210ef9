"""A process that takes a thread and stays inside its node until it reads a line; then it makes a step.

    python lease_holder.py URL LEASE

It says "inside", and in the end how the call ended.
"""

from __future__ import annotations

import json
import sys
from typing import TypedDict

from bide import START, StateGraph, Store, step
from bide.errors import BideError


class State(TypedDict):
    done: bool


def say(what: str) -> None:
    print(json.dumps(what), flush=True)


def node(state: State) -> None:
    say("inside")
    sys.stdin.readline()
    step(say, "made a step")


def main(url: str, lease: float) -> None:
    schema = None if url.startswith("sqlite:") else "bide"
    with Store.open(url, schema=schema, lease=lease) as store:
        graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=store)
        try:
            graph.invoke({"done": True}, {"configurable": {"thread_id": "job"}})
            say("done")
        except BideError as error:
            say(type(error).__name__)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
