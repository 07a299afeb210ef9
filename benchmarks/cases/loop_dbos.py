"""The loop on DBOS: a workflow in which each turn of the ring is three steps, and each step is recorded as it ends."""

from __future__ import annotations

import loop
from case import report, settings
from dbos import DBOS, SetWorkflowID
from dbos_app import launched

count, speak, listen = (DBOS.step()(node) for node in (loop.count, loop.speak, loop.listen))


@DBOS.workflow()
def ring(rounds: int) -> int:
    state = {"n": 0, "limit": rounds, "text": ""}
    while not loop.is_over(state):
        for node in (count, speak, listen):
            state |= node(state)
    return state["n"]


def main() -> None:
    asked = settings()
    rounds = loop.rounds_of(asked)

    def run(number: int) -> None:
        with SetWorkflowID(f"loop-{number}"):
            assert ring(rounds) == rounds

    with launched(asked):
        for number in range(asked.amount(loop.REPEATS, 1)):
            loop.STOPWATCH.time(lambda number=number: run(number))
    report(**loop.STOPWATCH.metrics())


if __name__ == "__main__":
    main()
