"""A parcel: nine journaled steps of all three kinds of effect, and three waits: an event, a timer, an approval."""

from __future__ import annotations

import operator
from threading import Event
from typing import Annotated, Any, TypedDict

from bide import END, START, CompiledGraph, Done, NotDone, StateGraph, sleep, step, wait_for
from bide.waits import approval, event
from tests.faults.ledger import Effect
from tests.fleet.place import Place

ONCE = ("charge", "post")
IDEMPOTENT = ("reserve", "notify")
BOOKED = ("booked", "paid", "rested", "decided", "sent")
TOLD = ["reserve", "charge", "booked", "paid 7", "paid", "rested", "yes", "decided", "post", "notify", "sent"]
"""What every parcel has to tell in the end, whatever happened on its way."""


class State(TypedDict):
    parcel: str
    told: Annotated[list[str], operator.add]


class Parcels:
    """The graph, with the world outside."""

    def __init__(self, place: Place, nap: str = "150ms", thinks: float = 0.0) -> None:
        self.ledger = place.ledger
        self.insert = place.insert_booking
        self.nap = nap
        self.thinks = thinks
        """For how many seconds each node thinks, when its steps are made and nothing of it is committed yet."""

    # ── Effects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask_for(self, parcel: str, what: str, idempotency_key: str) -> str:
        self.ledger.add_effect(Effect(parcel, what, "idempotent", idempotency_key))
        return what

    def have_once(self, parcel: str, what: str, idempotency_key: str) -> str:
        self.ledger.add_effect(Effect(parcel, what, "once", idempotency_key))
        return what

    def verify(self, what: str) -> Any:
        return lambda key: Done(what) if self.ledger.knows(key) else NotDone()

    def write(self, connection: Any, parcel: str, what: str) -> str:
        connection.execute(self.insert, (parcel, what))
        return what

    def once(self, parcel: str, what: str) -> str:
        return step(self.have_once, parcel, what, key=what, effect="once", verify=self.verify(what))

    def booked(self, parcel: str, what: str) -> str:
        return step(self.write, parcel, what, effect="tx")

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_in(self, state: State) -> dict[str, Any]:
        parcel = state["parcel"]
        return self.tell(
            step(self.ask_for, parcel, "reserve"),
            self.once(parcel, "charge"),
            self.booked(parcel, "booked"),
        )

    def be_paid(self, state: State) -> dict[str, Any]:
        parcel = state["parcel"]
        wake = wait_for(event("paid", match={"parcel": parcel}))
        return self.tell(f"paid {wake.value['amount']}", self.booked(parcel, "paid"))

    def rest(self, state: State) -> dict[str, Any]:
        sleep(self.nap)
        return self.tell(self.booked(state["parcel"], "rested"))

    def decide(self, state: State) -> dict[str, Any]:
        wake = wait_for(approval("Send it?", options=["yes", "no"]))
        return self.tell(wake.value, self.booked(state["parcel"], "decided"))

    def send(self, state: State) -> dict[str, Any]:
        parcel = state["parcel"]
        return self.tell(
            self.once(parcel, "post"),
            step(self.ask_for, parcel, "notify"),
            self.booked(parcel, "sent"),
        )

    def tell(self, *lines: str) -> dict[str, Any]:
        Event().wait(self.thinks)
        return {"told": list(lines)}

    def graph(self) -> CompiledGraph:
        nodes = [self.take_in, self.be_paid, self.rest, self.decide, self.send]
        return (
            StateGraph(State)
            .add_sequence(nodes)
            .add_edge(START, "take_in")
            .add_edge("send", END)
            .compile(name="parcel")
        )


def build(place: Place) -> list[CompiledGraph]:
    """The graphs of a worker."""
    return [Parcels(place).graph()]


def build_thoughtful(place: Place) -> list[CompiledGraph]:
    """The graphs of a worker that is most often stopped just before it commits, and so is its successor."""
    return [Parcels(place, thinks=0.05).graph()]
