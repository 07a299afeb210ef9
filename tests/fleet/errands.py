"""Small graphs whose nodes leave a line in the ledger each time they run, and by whom."""

from __future__ import annotations

import operator
import os
from queue import SimpleQueue
from typing import Annotated, Any, TypedDict

from bide import END, START, CompiledGraph, StateGraph, wait_for
from bide.waits import event
from tests.faults.ledger import Effect
from tests.fleet.place import Place
from tests.fleet.telling import teller
from tests.store.waiting import holds_at_last

ABOUT_TO_WAIT: SimpleQueue[str | None] = SimpleQueue()
"""Who is about to wait for news, in this process: whoever wants to come at that very moment listens here."""


class State(TypedDict, total=False):
    name: str
    told: Annotated[list[str], operator.add]


class Errands:
    """Graphs over one ledger."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.ledger = place.ledger

    def ran(self, what: str, state: State) -> dict[str, Any]:
        """Leave a line: whose process it was is its key."""
        self.ledger.add_effect(Effect(state["name"], what, "ran", str(os.getpid())))
        return {"told": [what]}

    def left(self, state: State) -> dict[str, Any]:
        return self.ran("left", state)

    def right(self, state: State) -> dict[str, Any]:
        """End when what `left` has done is in the journal: so it always is, and every run passes the same points."""
        with self.place.looking() as query:
            assert holds_at_last(lambda: query("SELECT 1 FROM journal WHERE kind = 'result' AND name = 'left'"))
        return self.ran("right", state)

    def after(self, state: State) -> dict[str, Any]:
        return self.ran("after", state)

    def hear(self, state: State) -> dict[str, Any]:
        ABOUT_TO_WAIT.put(state["name"])
        wake = wait_for(event("news", match={"for": state["name"]}))
        return {"told": [f"heard {wake.value['for']}"]}

    def graphs(self) -> list[CompiledGraph]:
        both = StateGraph(State).add_node("left", self.left).add_node("right", self.right).add_node("after", self.after)
        both.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "after").add_edge(
            "after", END
        )
        hears = StateGraph(State).add_node("hear", self.hear).add_edge(START, "hear")
        plain = StateGraph(State).add_node("after", self.after).add_edge(START, "after")
        return [both.compile(name="both"), hears.compile(name="hears"), plain.compile(name="plain")]


def build(place: Place) -> list[CompiledGraph]:
    """The graphs of a worker."""
    return Errands(place).graphs()


def run_both(place: list[Any] | Place) -> None:
    """Start the two siblings and who comes after them, once, and drive them to their end."""
    where = Place(*place)
    told = teller(where, build(where))
    with told.app, told.app.store:
        told.start("both", "t", {"name": "t"})
        told.settle()
