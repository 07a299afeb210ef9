"""Bide through a worker: round trips of pause and resume, and how soon the code goes on after a wake."""

from __future__ import annotations

from functools import partial
from threading import Event
from time import perf_counter
from typing import Any

from approval import Order, new_order
from bide_store import open_store
from case import Settings, metric, report, settings
from fleet import latencies, latency, until

from bide import END, START, Bide, StateGraph, Store, Worker, interrupt

HEARD: dict[str, Event] = {}


def ask(state: Order) -> dict[str, Any]:
    answer = interrupt("May this order be shipped?")
    if isinstance(answer, str):
        HEARD[answer].set()
    return {"approved": True}


def application(store: Store) -> Bide:
    builder = StateGraph(Order)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return Bide(store, [builder.compile(name="order")])


def round_trips(asked: Settings, app: Bide, worker: Worker) -> dict[str, Any]:
    threads = asked.amount(500, 5)
    before = perf_counter()
    for _ in range(threads):
        app.start("order", new_order())
    until(lambda: worker.driven == threads, "all of them ask")
    for wait in app.store.waits(most=threads):
        app.wake(wait.wait_id, True)
    until(lambda: worker.driven == 2 * threads, "all of them are done")
    return {"round_trip": metric("µs", [(perf_counter() - before) * 1e6 / threads])}


def wakes(asked: Settings, app: Bide) -> dict[str, Any]:
    threads = asked.amount(200, 3)
    for _ in range(threads):
        app.start("order", new_order())
    until(lambda: len(app.store.waits(most=threads)) == threads, "all of them ask")
    waits = app.store.waits(most=threads)

    def wake(number: int, heard: Event) -> None:
        HEARD[str(number)] = heard
        app.wake(waits[number].wait_id, str(number))

    return latencies([latency(partial(wake, number)) for number in range(threads)])


def main() -> None:
    asked = settings()
    with open_store(asked) as store:
        app = application(store)
        with app.worker() as worker:
            metrics = {**round_trips(asked, app, worker), **wakes(asked, app)}
    report(**metrics)


if __name__ == "__main__":
    main()
