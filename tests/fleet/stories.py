"""Short stories that together pass through every operation of the runtime.

Each ends the same, however often it was begun.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from bide import CompiledGraph, WaitCancelled, ask, sleep, spawn, step, wait_for
from bide.waits import all_of, any_of, child, event
from tests.fleet.parcel import Parcels
from tests.fleet.place import Place
from tests.fleet.telling import Teller, teller
from tests.threads import in_a_row


class State(TypedDict, total=False):
    parcel: str
    told: Annotated[list[Any], operator.add]


class Graphs:
    """The graphs of all stories."""

    def __init__(self, place: Place) -> None:
        self.parcels = Parcels(place, nap="1h")

    def hire(self, state: State) -> dict[str, Any]:
        parcel = state["parcel"]
        hired = [spawn("helper", {"parcel": f"{parcel}/{name}"}, key=name) for name in ("first", "second")]
        results = wait_for(all_of(first=child(hired[0]), second=child(hired[1])))
        return {"told": sorted(results.value), "parcel": self.parcels.booked(parcel, "helped") and parcel}

    def help(self, state: State) -> dict[str, Any]:
        return {"told": [self.parcels.once(state["parcel"], "help"), self.parcels.booked(state["parcel"], "help")]}

    def ask_or_rest(self, state: State) -> dict[str, Any]:
        found = wait_for(any_of(news=event("news"), late=event("never")), timeout="1h", default=None)
        return {"told": ["nothing came" if found is None else found.winner]}

    def ask_long(self, state: State) -> dict[str, Any]:
        try:
            answer = ask("Are you sure?", options=["yes", "no"])
        except WaitCancelled:
            answer = "withdrawn"
        return {"told": [answer]}

    def keep_helper(self, state: State) -> dict[str, Any]:
        hired = spawn("patient", {"parcel": f"{state['parcel']}/patient"})
        return {"told": [wait_for(child(hired)).value.status]}

    def be_patient(self, state: State) -> dict[str, Any]:
        sleep("9d")
        return {"told": ["waited"]}

    def note(self, state: State) -> dict[str, Any]:
        return {"told": [step(self.parcels.ask_for, state["parcel"], "note"), state["parcel"]]}

    def all(self) -> list[CompiledGraph]:
        return [
            self.parcels.graph(),
            in_a_row(State, {"hire": self.hire}, name="parent"),
            in_a_row(State, {"help": self.help}, name="helper"),
            in_a_row(State, {"rest": self.ask_or_rest}, name="rests"),
            in_a_row(State, {"ask": self.ask_long}, name="asks"),
            in_a_row(State, {"keep": self.keep_helper}, name="keeps"),
            in_a_row(State, {"patient": self.be_patient}, name="patient"),
            in_a_row(State, {"note": self.note}, name="notes"),
        ]


# ── The stories ────────────────────────────────────────────────────────────────────────────────────────────────────


def parcel(told: Teller) -> None:
    """A worker is lost before the first checkpoint; then an event, a timer, an approval."""
    told.start("parcel", "p", {"parcel": "p", "told": []})
    told.lose_a_worker()
    told.settle()
    told.app.deliver("paid", {"parcel": "p", "amount": 7}, external_id="payment of p")
    told.settle()
    told.pass_to(hours=2)
    told.settle()
    told.answer("p", "yes")
    told.settle()


def paid_before(told: Teller) -> None:
    """What the parcel waits for was there before."""
    told.app.deliver("paid", {"parcel": "p", "amount": 7}, external_id="payment of p")
    told.start("parcel", "p", {"parcel": "p", "told": []})
    told.settle()
    told.pass_to(hours=2)
    told.settle()
    told.answer("p", "yes")
    told.settle()


def children(told: Teller) -> None:
    """Two children, both waited for."""
    told.start("parent", "p", {"parcel": "p"})
    told.settle()


def cancelled(told: Teller) -> None:
    """A thread that waits for its child is cancelled, and its child with it."""
    told.start("keeps", "k", {"parcel": "k"})
    told.settle()
    told.app.cancel("k", reason="not wanted", by="clerk")
    told.settle()


def withdrawn(told: Teller) -> None:
    """A question is given to somebody else, then more time, then withdrawn; its node is told."""
    told.start("asks", "w", {"parcel": "w"})
    told.settle()
    for wait in told.app.waits(thread_id="w"):
        told.app.reassign(wait.id, ["clerk"])
        told.app.extend(wait.id, "5d")
        told.app.cancel(wait_id=wait.id, by="clerk")
    told.settle()


def late(told: Teller) -> None:
    """Nobody comes before the deadline."""
    told.start("rests", "r", {"parcel": "r"})
    told.settle()
    told.pass_to(hours=2)
    told.settle()


def busy(told: Teller) -> None:
    """Runs behind a run, in its place, and back to where it began; and one that was put off."""
    told.start("asks", "b", {"parcel": "b"})
    told.settle()
    told.start("asks", "b", {"parcel": "behind"}, key="behind", if_busy="enqueue")
    told.start("asks", "b", {"parcel": "instead"}, key="instead", if_busy="interrupt")
    told.settle()
    told.start("asks", "b", {"parcel": "again"}, key="again", if_busy="rollback")
    told.settle()
    told.start("notes", "later", {"parcel": "later"}, delay="2h")
    told.settle()
    told.pass_to(hours=3)
    told.settle()
    for _ in range(2):
        for wait in told.app.waits(thread_id="b"):
            told.app.wake(wait.id, "yes", key=wait.id)
        told.settle()


def poisoned(told: Teller) -> None:
    """A fifth worker is lost over a run: it is out of service, until somebody puts it back."""
    told.start("notes", "n", {"parcel": "n"})
    with told.place.looking() as query:
        query("UPDATE runs SET crashes = 4 WHERE status = 'ready'")
    told.lose_a_worker()
    told.settle()
    told.release_the_dead()
    told.settle()


def scheduled(told: Teller) -> None:
    """A run by the clock."""
    told.app.schedule("daily", "notes", "0 0 * * *", {"parcel": "daily"}, thread_id="s")
    told.pass_to(hours=24)
    told.settle()


STORIES: dict[str, Callable[[Teller], None]] = {
    story.__name__: story
    for story in (parcel, paid_before, children, cancelled, withdrawn, late, busy, poisoned, scheduled)
}


def tell(place: list[Any] | Place, name: str) -> None:
    """Tell a story from its beginning to its end, in this process."""
    where = Place(*place)
    told = teller(where, Graphs(where).all())
    with told.app, told.app.store:
        STORIES[name](told)
