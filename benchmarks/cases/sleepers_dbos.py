"""DBOS: many workflows that sleep, in memory, and all wake at once."""

from __future__ import annotations

import asyncio
from time import perf_counter

from approval import STATE_BYTES, new_order
from case import Settings, metric, most_memory, report, settings
from dbos import DBOS
from dbos_app import launched


@DBOS.workflow()
async def order(text: str, until: float) -> float:
    await DBOS.sleep_async(max(0.0, until - perf_counter()))
    return perf_counter()


async def measure(asked: Settings) -> dict[str, object]:
    """Start sleepers that are all due at one instant, well after the last one sleeps."""
    workflows = asked.amount(1_000, 5)
    empty, memory = asked.bytes_when_empty(), most_memory()
    due = perf_counter() + asked.amount(30, 2)
    handles = [await DBOS.start_workflow_async(order, new_order()["text"], due) for _ in range(workflows)]
    assert perf_counter() < due, "they were due before all of them slept"
    grown = most_memory() - memory
    for handle in handles:
        await handle.get_result()
    took = perf_counter() - due
    return {
        "sleeper_bytes": metric("B", [(asked.bytes_on_disk() - empty) / workflows - STATE_BYTES]),
        "sleeper_wakes": metric("µs", [took * 1e6 / workflows]),
        "sleeper_memory": metric("B", [grown / workflows]),
    }


def main() -> None:
    asked = settings()
    with launched(asked):
        metrics = asyncio.run(measure(asked))
    report(**metrics)


if __name__ == "__main__":
    main()
