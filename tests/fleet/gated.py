"""A graph that can be held at a place of its own: in the middle of its steps, or with all threads of its process."""

from __future__ import annotations

import ctypes
import operator
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bide import END, START, CompiledGraph, StateGraph, interrupt, spawn, step, wait_for
from bide.waits import child
from tests.fleet.parcel import Parcels
from tests.fleet.place import Place

PLACES = ("first", "in once", "after once", "before spawn", "after spawn", "before the pause", "before the end")
TOLD = ["charge", "note", "booked", "done", "yes", "sent"]


class State(TypedDict, total=False):
    parcel: str
    hold_at: str
    """Where whoever comes first is held."""
    told: Annotated[list[str], operator.add]


class Gate:
    """Holds the first who comes, until it is opened."""

    def __init__(self, place: Place) -> None:
        self.place = place
        folder = Path(place.folder)
        self.arrived, self.pipe = folder / "arrived", folder / "gate"
        with suppress(FileExistsError):
            os.mkfifo(self.pipe)

    def pass_through(self) -> None:
        """Wait here, if nobody has before."""
        if self._is_first():
            self.pipe.read_bytes()

    def pass_with_all_threads(self) -> None:
        """Wait in C without giving back the interpreter's lock, as a library might: nothing else runs meanwhile."""
        if self._is_first():
            while not self.place.is_free():
                pass  # another thread of this process is about to write, and would keep the whole file locked
            python = ctypes.PyDLL(None, use_errno=True)
            pipe = python.open(str(self.pipe).encode(), os.O_RDONLY)
            python.read(pipe, ctypes.create_string_buffer(8), 8)

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self.arrived, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def open(self) -> None:
        """Let go whoever waits here."""
        self.pipe.write_bytes(b"go")


class Gated:
    """One node with everything a node can do, a gate before each, and a child."""

    def __init__(self, place: Place) -> None:
        self.parcels = Parcels(place)
        self.gate = Gate(place)

    def pass_(self, state: State, where: str) -> None:
        if state.get("hold_at") == where:
            self.gate.pass_through()
        elif state.get("hold_at") == f"{where}, all threads":
            self.gate.pass_with_all_threads()

    def charge(self, state: State) -> str:
        def charge(parcel: str, idempotency_key: str) -> str:
            told = self.parcels.have_once(parcel, "charge", idempotency_key)
            self.pass_(state, "in once")
            return told

        return step(charge, state["parcel"], effect="once", verify=self.parcels.verify("charge"))

    def book(self, state: State) -> str:
        def book(connection: Any, parcel: str) -> str:
            told = self.parcels.write(connection, parcel, "booked")
            self.pass_(state, "in a transaction")
            return told

        return step(book, state["parcel"], effect="tx")

    def take_in(self, state: State) -> dict[str, Any]:
        self.pass_(state, "first")
        charged = self.charge(state)
        self.pass_(state, "after once")
        noted = step(self.parcels.ask_for, state["parcel"], "note")
        return {"told": [charged, noted, self.book(state)]}

    def hire(self, state: State) -> dict[str, Any]:
        self.pass_(state, "before spawn")
        hired = spawn("helper", {"parcel": f"{state['parcel']}/help"})
        self.pass_(state, "after spawn")
        return {"told": [wait_for(child(hired)).value.status]}

    def ask(self, state: State) -> dict[str, Any]:
        self.pass_(state, "before the pause")
        return {"told": [interrupt("Send it?")]}

    def send(self, state: State) -> dict[str, Any]:
        told = self.parcels.booked(state["parcel"], "sent")
        self.pass_(state, "before the end")
        return {"told": [told]}

    def help(self, state: State) -> dict[str, Any]:
        return {"told": [self.parcels.once(state["parcel"], "help")]}

    def graphs(self) -> list[CompiledGraph]:
        nodes = [self.take_in, self.hire, self.ask, self.send]
        gated = StateGraph(State).add_sequence(nodes).add_edge(START, "take_in").add_edge("send", END)
        helper = StateGraph(State).add_node("help", self.help).add_edge(START, "help")
        return [gated.compile(name="gated"), helper.compile(name="helper")]


def build(place: Place) -> list[CompiledGraph]:
    """The graphs of a worker."""
    return Gated(place).graphs()
