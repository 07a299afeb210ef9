"""Bide: how many short runs one, two and four worker processes get through, claimed from one database."""

from __future__ import annotations

import multiprocessing
import sys
from time import perf_counter
from typing import Any

from approval import Order, new_order
from case import Settings, metric, report, settings
from fleet import until

from bide import END, START, Bide, StateGraph


def application(url: str) -> Bide:
    builder = StateGraph(Order)
    builder.add_node("ship", lambda state: {"text": "shipped"})
    builder.add_edge(START, "ship")
    builder.add_edge("ship", END)
    return Bide(url, [builder.compile(name="order")])


def work(url: str, begun: Any, stop: Any) -> None:
    with application(url) as app, app.worker():
        begun.release()
        stop.wait()


def runs_by(asked: Settings, url: str, workers: int) -> float:
    """Return how many microseconds one run takes, while so many processes share the work."""
    context = multiprocessing.get_context("spawn")
    amount = asked.amount(1_500, 6)
    with application(url) as app:
        begun, stop = context.Semaphore(0), context.Event()
        processes = [context.Process(target=work, args=(url, begun, stop)) for _ in range(workers)]
        for process in processes:
            process.start()
        for _ in processes:
            begun.acquire()
        done = app.store.stats().threads_by_status.get("done", 0)
        for _ in range(amount):
            app.start("order", new_order(), delay="1h")
        before = perf_counter()
        app.store.database.write("release", lambda tx: release(tx.connection))
        app.store.ring()
        until(lambda: app.store.stats().threads_by_status.get("done", 0) == done + amount, "all are done")
        took = perf_counter() - before
        stop.set()
        for process in processes:
            process.join()
    return took * 1e6 / amount


def release(connection: Any) -> None:
    """Let all that was put off be ready now: they are claimed from a full queue."""
    connection.execute("UPDATE runs SET status = 'ready', due_at = 0 WHERE status = 'queued'")


def main() -> None:
    asked = settings()
    url = asked.url if asked.store == "postgres" else f"sqlite:///{asked.database}"
    report(**{f"run_by_{workers}": metric("µs", [runs_by(asked, url, workers)]) for workers in (1, 2, 4)})


if __name__ == "__main__":
    sys.exit(main())
