"""DBOS: round trips of a message to a workflow that waits for it in memory, and how soon its code goes on."""

from __future__ import annotations

from functools import partial
from threading import Event
from time import perf_counter
from typing import Any

from approval import new_order
from case import Settings, metric, report, settings
from dbos import DBOS
from dbos_app import launched
from fleet import latencies, latency

PATIENCE_SECONDS = 600
HEARD: dict[str, Event] = {}
BATCH = 50
"""As many as have a thread: each that waits holds one."""


@DBOS.step()
def note(answer: str) -> None:
    if answer:
        HEARD[answer].set()


@DBOS.workflow()
def order(text: str) -> bool:
    note(DBOS.recv("answer", timeout_seconds=PATIENCE_SECONDS))
    return True


def round_trips(asked: Settings) -> dict[str, Any]:
    workflows = asked.amount(500, 5)
    before = perf_counter()
    for first in range(0, workflows, BATCH):
        batch = range(first, min(first + BATCH, workflows))
        handles = [DBOS.start_workflow(order, new_order()["text"]) for _ in batch]
        for handle in handles:
            DBOS.send(handle.workflow_id, "", "answer")
        for handle in handles:
            handle.get_result()
    return {"round_trip": metric("µs", [(perf_counter() - before) * 1e6 / workflows])}


def wakes(asked: Settings) -> dict[str, Any]:
    def wake(workflow_id: str, heard: Event) -> None:
        HEARD[workflow_id] = heard
        DBOS.send(workflow_id, workflow_id, "answer")

    samples: list[float] = []
    while len(samples) < asked.amount(200, 3):
        waiting = [DBOS.start_workflow(order, "").workflow_id for _ in range(asked.amount(BATCH, 3))]
        samples += [latency(partial(wake, workflow_id)) for workflow_id in waiting]
    return latencies(samples)


def main() -> None:
    asked = settings()
    with launched(asked):
        metrics = {**round_trips(asked), **wakes(asked)}
    report(**metrics)


if __name__ == "__main__":
    main()
