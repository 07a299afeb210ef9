"""A thousand workflows of DBOS that wait for a message: what one takes on disk, and in memory, where it stays."""

from __future__ import annotations

import asyncio

from approval import new_order, price_of_a_pause
from case import Settings, most_memory, report, settings
from databases import postgres
from dbos import DBOS
from dbos_app import launched

PATIENCE_SECONDS = 3600
# A wait begins with a durable note of when it will be over.
WAITING = "SELECT count(*) FROM dbos.operation_outputs"


@DBOS.workflow()
async def order(text: str) -> bool:
    return await DBOS.recv_async("answer", timeout_seconds=PATIENCE_SECONDS)


async def pause(asked: Settings, threads: int, known: int) -> None:
    """Start so many workflows, and stay until each of them is seen to wait."""
    for _ in range(threads):
        await DBOS.start_workflow_async(order, new_order()["text"])
    with postgres(asked.url) as server:
        while server.execute(WAITING).fetchone()[0] < known + threads:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def measure(asked: Settings) -> dict[str, object]:
    first, threads = asked.amount(100, 5), asked.amount(1_000, 20)
    empty = asked.bytes_when_empty()
    await pause(asked, first, 0)
    memory = most_memory()
    await pause(asked, threads - first, first)
    return price_of_a_pause(asked, threads, empty, (most_memory() - memory) / (threads - first))


def main() -> None:
    asked = settings()
    with launched(asked):
        metrics = asyncio.run(measure(asked))
    report(**metrics)


if __name__ == "__main__":
    main()
