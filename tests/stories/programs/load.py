"""A process that runs many threads at once on a database that other processes use at the same time.

    python load.py FOLDER WHO THREADS STEPS

Each thread loops through one node, which books in the store's own transaction, and pauses once in the middle. At the
end the program prints how many threads finished, and every error that anybody met.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt, step


class State(TypedDict):
    count: int


def book(connection: Any, thread: str, count: int) -> None:
    connection.execute("INSERT INTO bookings (thread, count) VALUES (?, ?)", (thread, count))


def build(store: Store, thread: str, steps: int) -> CompiledGraph:
    def work(state: State) -> dict[str, Any]:
        if state["count"] == steps // 2:
            interrupt("Half-time. Go on?")
        step(book, thread, state["count"], effect="tx")
        return {"count": state["count"] + 1}

    graph = StateGraph(State)
    graph.add_node(work)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["count"] < steps else END)
    return graph.compile(checkpointer=store)


def run_one(store: Store, thread: str, steps: int) -> bool:
    graph, config = build(store, thread, steps), {"configurable": {"thread_id": thread}}
    graph.invoke({"count": 0}, config)
    return bool(graph.invoke(Command(resume="yes"), config)["count"] == steps)


def main(folder: Path, who: str, threads: int, steps: int) -> None:
    sys.stdin.readline()
    errors: list[str] = []
    with Store.open(f"sqlite:///{folder / 'bide.db'}") as store, ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(run_one, store, f"{who}-{number}", steps) for number in range(threads)]
        errors += [repr(call.exception()) for call in calls if call.exception() is not None]
        finished = sum(call.exception() is None and call.result() for call in calls)
    print(json.dumps({"finished": finished, "errors": errors}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
