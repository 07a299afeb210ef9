"""DBOS: how many short workflows one process gets through that takes them from a queue."""

from __future__ import annotations

from time import perf_counter

from approval import new_order
from case import Settings, metric, report, settings
from dbos import DBOS
from dbos_app import launched

QUEUE = "orders"


@DBOS.step()
def ship(text: str) -> str:
    return "shipped"


@DBOS.workflow()
def order(text: str) -> str:
    return ship(text)


def measure(asked: Settings) -> float:
    amount = asked.amount(500, 6)
    before = perf_counter()
    handles = [DBOS.enqueue_workflow(QUEUE, order, new_order()["text"]) for _ in range(amount)]
    for handle in handles:
        handle.get_result()
    return (perf_counter() - before) * 1e6 / amount


def main() -> None:
    asked = settings()
    with launched(asked):
        DBOS.register_queue(QUEUE, polling_interval_sec=0.01)
        took = measure(asked)
    report(run_by_1=metric("µs", [took]))


if __name__ == "__main__":
    main()
