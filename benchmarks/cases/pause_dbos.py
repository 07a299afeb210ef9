"""Pause and resume on DBOS: a workflow that waits for a message, and a message.

The workflow stays in memory while it waits, and nobody looks whether it has come to its question before the answer is
sent: less work than the others do, in its favour.
"""

from __future__ import annotations

from approval import measure_pairs, new_order
from case import report, settings
from dbos import DBOS, SetWorkflowID
from dbos_app import launched

PATIENCE_SECONDS = 600


@DBOS.step()
def ship(approved: bool) -> str:
    return "shipped" if approved else "kept"


@DBOS.workflow()
def order(text: str) -> str:
    return ship(DBOS.recv("answer", timeout_seconds=PATIENCE_SECONDS))


def pair(number: int) -> None:
    with SetWorkflowID(f"order-{number:06d}"):
        handle = DBOS.start_workflow(order, new_order()["text"])
    DBOS.send(handle.workflow_id, True, "answer")
    assert handle.get_result() == "shipped"


def main() -> None:
    asked = settings()
    with launched(asked):
        metrics = measure_pairs(asked, pair)
    report(**metrics)


if __name__ == "__main__":
    main()
