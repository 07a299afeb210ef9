"""A workflow, driven to its end by a supervisor that may be killed at any moment and is then started again.

    python workflow.py FOLDER [sync|async|exit]

In FOLDER: `bide.db` is the store; `runs.txt` has a line for every run of a task. At the end the program prints the
result as JSON. Siblings take turns, so that every uninterrupted run passes the same points in the same order.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event
from typing import Any

from bide import Command, CompiledGraph, Store, entrypoint, interrupt, step, task

THREAD: dict[str, Any] = {"configurable": {"thread_id": "one"}}
ANSWERS = {"Ship?": "ship", "Wrap?": "wrap", "Pay?": "pay"}


def build(store: Store, folder: Path, durability: Any) -> CompiledGraph:
    def note(what: str) -> str:
        with open(folder / "runs.txt", "a", encoding="utf-8") as runs:
            runs.write(f"{what}\n")
        return what.upper()

    @task
    def work(name: str, after: Event | None = None) -> str:
        if after is not None:
            after.wait(30)
        return note(name)

    @task
    def branch() -> list[str]:
        return [step(note, "step"), work("leaf").result()]

    @task
    def ask(question: str, after: Event | None = None) -> Any:
        if after is not None:
            after.wait(30)
        return interrupt(question)

    @entrypoint(checkpointer=store, durability=durability)
    def order(given: int) -> list[Any]:
        first, second = Event(), Event()
        left = work("left")
        left.add_done_callback(lambda _: first.set())
        found = [left.result(), work("right", first).result(), branch().result()]
        ship = ask("Ship?")
        wrap = ask("Wrap?", second)
        ship.add_done_callback(lambda _: second.set())
        found += [ship.result(), wrap.result(), interrupt("Pay?")]
        return [*found, work("last").result()]

    return order


def drive(folder: Path, durability: str = "sync") -> Any:
    """Take the workflow to its end from wherever it stands."""
    with Store.open(f"sqlite:///{folder / 'bide.db'}") as store:
        order = build(store, folder, durability)
        if not order.get_state(THREAD).config["configurable"].get("checkpoint_id"):
            order.invoke(1, THREAD)
        while (state := order.get_state(THREAD)).next:
            if state.interrupts:
                question = state.interrupts[0]
                order.invoke(Command(resume={question.id: ANSWERS[question.value]}), THREAD)
            else:
                order.invoke(None, THREAD)
        return state.values


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]), *sys.argv[2:])), flush=True)
