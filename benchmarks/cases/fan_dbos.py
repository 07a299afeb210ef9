"""Many tasks at once on DBOS: a workflow that gathers asynchronous steps, each recorded as it ends.

A hundred workflows of their own, started by one (or put on a queue of it), take about twice as long.
"""

from __future__ import annotations

import asyncio

import fan
from case import Settings, Took, clocks, report, settings, timing
from dbos import DBOS, SetWorkflowID
from dbos_app import launched


@DBOS.step()
async def work(number: int) -> list[int]:
    return fan.work({"number": number})["done"]


@DBOS.workflow()
async def spread(width: int) -> list[int]:
    found = await asyncio.gather(*(work(number) for number in range(width)))
    return [number for done in found for number in done]


async def measure(asked: Settings) -> list[Took]:
    samples = []
    for number in range(asked.amount(fan.REPEATS, 1)):
        with SetWorkflowID(f"fan-{number}"):
            before = clocks()
            assert await spread(asked.width) == list(range(asked.width))
            samples.append(clocks() - before)
    return samples


def main() -> None:
    asked = settings()
    with launched(asked):
        samples = asyncio.run(measure(asked))
    report(**timing("fan", "ms", samples))


if __name__ == "__main__":
    main()
