"""A process whose node fails once and rests for an hour; the one that goes on skips what is left of the hour.

resting_worker.py <folder>           starts the thread, and rests until it is killed
resting_worker.py <folder> "go on"   takes the thread over
"""

from __future__ import annotations

import sys
from threading import Event
from typing import TypedDict

from bide import START, RetryPolicy, StateGraph, Store, get_runtime
from bide.clock import SystemClock


class State(TypedDict, total=False):
    value: str


class Talkative(SystemClock):
    """Tells how long it would sleep; whether it does depends on who it is."""

    def __init__(self, *, is_heir: bool) -> None:
        self.is_heir = is_heir

    def sleep(self, seconds: float, stopped: Event) -> None:
        print(f"resting {round(seconds)}", flush=True)
        if not self.is_heir:
            super().sleep(seconds, stopped)


class Trouble(Exception):
    pass


def node(state: State) -> State:
    attempt = get_runtime().attempt
    print(f"attempt {attempt}", flush=True)
    if attempt == 1:
        raise Trouble
    return {"value": "done"}


def main(folder: str, *words: str) -> None:
    policy = RetryPolicy(initial_interval=3600.0, max_interval=3600.0, jitter=False)
    with Store.open(f"sqlite:///{folder}/bide.db", clock=Talkative(is_heir=bool(words))) as store:
        builder = StateGraph(State).add_node("node", node, retry_policy=policy).add_edge(START, "node")
        builder.compile(store).invoke(None if words else {"value": ""}, {"configurable": {"thread_id": "job"}})


if __name__ == "__main__":
    main(*sys.argv[1:])
