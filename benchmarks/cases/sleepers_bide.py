"""Bide: many threads that sleep, and all wake at once; what one takes on disk, and the worker in memory."""

from __future__ import annotations

from time import perf_counter

from approval import STATE_BYTES, Order, new_order
from bide_store import open_store
from case import metric, most_memory, report, settings
from fleet import until

from bide import END, START, Bide, StateGraph, sleep

LONG = 10 * 365 * 24 * 3600


def rest(state: Order) -> dict[str, bool]:
    sleep(LONG)
    return {"approved": True}


def main() -> None:
    asked = settings()
    threads, woken = asked.amount(asked.width, 20), asked.amount(10_000, 20)
    with open_store(asked) as store:
        builder = StateGraph(Order)
        builder.add_node("rest", rest)
        builder.add_edge(START, "rest")
        builder.add_edge("rest", END)
        graph = builder.compile(name="order", checkpointer=store)
        app = Bide(store, [graph])
        empty = asked.bytes_when_empty()
        for number in range(threads):
            graph.invoke(new_order(), {"configurable": {"thread_id": f"order-{number:06d}"}})
        on_disk = (asked.bytes_on_disk() - empty) / threads - STATE_BYTES
        with app.worker() as worker:
            until(lambda: worker.is_working, "the worker works")
            memory = most_memory()
            due = min(woken, threads)
            store.database.write("wake", lambda tx: make_due(tx.connection, asked.store, due))
            before = perf_counter()
            until(lambda: worker.driven >= due, "all are awake")
            took = perf_counter() - before
            grown = most_memory() - memory
    report(
        sleeper_bytes=metric("B", [on_disk]),
        sleeper_wakes=metric("µs", [took * 1e6 / due]),
        worker_grows=metric("MB", [grown / 1e6]),
        worker_memory=metric("MB", [memory / 1e6]),
    )


def make_due(connection: object, store: str, amount: int) -> None:
    """Let the time of so many sleepers have come, all at the same instant."""
    chosen = f"SELECT wait_id FROM conditions WHERE is_open = 1 LIMIT {amount:d}"  # noqa: S608 — a number of ours
    connection.execute(f"UPDATE conditions SET due_at = 0 WHERE wait_id IN ({chosen})")  # type: ignore[attr-defined]  # noqa: S608


if __name__ == "__main__":
    main()
