"""An expedition of graphs inside graphs, driven to its end by a supervisor that may be killed and started again.

    python expedition.py FOLDER [sync|async|exit]

In FOLDER: `bide.db` is the store, and `ledger.txt` the world outside, which keeps one line for each idempotency key;
`calls.txt` has a line for every call that reached it. At the end the program prints the state as JSON. One task runs
at a time, so that every uninterrupted run passes the same points in the same order.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bide import START, Command, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.failpoints import failpoint

CONFIG = {"configurable": {"thread_id": "expedition"}, "max_concurrency": 1}


class State(TypedDict, total=False):
    told: Annotated[list[str], operator.add]


class Ledger:
    """The world outside: what it has taken in stays, and a key that it knows changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.calls = folder / "ledger.txt", folder / "calls.txt"

    def accept(self, what: str, idempotency_key: str) -> str:
        failpoint(f"effect.{what}:before")
        append(self.calls, f"{idempotency_key} {what}\n")
        if not self.knows(idempotency_key):
            append(self.ledger, f"{idempotency_key} {what}\n")
        failpoint(f"effect.{what}:after")
        return f"{what} accepted"

    def knows(self, key: str) -> bool:
        return self.ledger.exists() and key in self.ledger.read_text(encoding="utf-8")

    def once(self, what: str) -> str:
        look: Callable[[str], Done | NotDone] = lambda key: (  # noqa: E731 — a name would say no more
            Done(f"{what} accepted") if self.knows(key) else NotDone()
        )
        return str(step(self.accept, what, key=what, effect="once", verify=look))


def append(path: Path, line: str) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
        os.fsync(file.fileno())


def leg(name: str, ledger: Ledger) -> CompiledGraph:
    """Walk; then make camp, which asks, beside a supply; then report, and ask again."""

    def walk(state: State) -> dict[str, Any]:
        return {"told": [step(ledger.accept, f"{name}.walk")]}

    def camp(state: State) -> dict[str, Any]:
        before = ledger.once(f"{name}.tents")
        where = interrupt(f"{name}: where?", update={"told": [f"{name} asked"]})
        return {"told": [before, step(ledger.accept, f"{name}.camp.{where}")]}

    def supply(state: State) -> dict[str, Any]:
        return {"told": [step(ledger.accept, f"{name}.supply")]}

    def report(state: State) -> dict[str, Any]:
        return {"told": [step(ledger.accept, f"{name}.report"), interrupt(f"{name}: go on?")]}

    builder = StateGraph(State)
    for node in (walk, camp, supply, report):
        builder.add_node(node)
    builder.add_edge(START, "walk").add_edge("walk", "camp").add_edge("walk", "supply")
    return builder.add_edge(["camp", "supply"], "report").compile()


def build(folder: Path, store: Store, durability: Any) -> CompiledGraph:
    ledger = Ledger(folder)
    north = StateGraph(State).add_node("leg", leg("north", ledger)).add_edge(START, "leg").compile()
    inner = leg("south", ledger)

    def prepare(state: State) -> dict[str, Any]:
        return {"told": [step(ledger.accept, "prepare")]}

    def south(state: State) -> dict[str, Any]:
        began = step(ledger.accept, "south.begin")
        told = inner.invoke({"told": [began]})["told"]
        return {"told": [*told, step(ledger.accept, "south.end")]}

    def home(state: State) -> dict[str, Any]:
        return {"told": [step(ledger.accept, "home"), f"{len(state['told'])} things told"]}

    builder = StateGraph(State).add_node(prepare).add_node("north", north).add_node(south).add_node(home)
    builder.add_edge(START, "prepare").add_edge("prepare", "north").add_edge("prepare", "south")
    return builder.add_edge(["north", "south"], "home").compile(checkpointer=store, durability=durability)


def take_next_leg(graph: CompiledGraph) -> dict[str, Any] | None:
    """Look at the thread and do what it needs, one answer at a time; return its state when it needs nothing more."""
    found = graph.get_state(CONFIG)
    if found.created_at is None:
        graph.invoke({"told": ["off"]}, CONFIG)
    elif found.interrupts:
        first = min(found.interrupts, key=lambda ask: str(ask.value))
        graph.invoke(Command(resume={first.id: "here"}), CONFIG)
    elif found.next:
        graph.invoke(None, CONFIG)
    else:
        return dict(found.values)
    return None


def drive(folder: Path, durability: str = "sync") -> dict[str, Any]:
    """Take leg after leg until all are home, each with the store opened anew."""
    state = None
    while state is None:
        with Store.open(f"sqlite:///{folder / 'bide.db'}") as store:
            state = take_next_leg(build(folder, store, durability))
    return state


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]), *sys.argv[2:])))
