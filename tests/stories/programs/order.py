"""An order, driven to its end by a supervisor that may be killed at any moment and is then started again.

    python order.py FOLDER [sync|async|exit]

In FOLDER: `bide.db` is the store, with the shop's own table `bookings` in it; `ledger.txt` is the world outside, a
provider that keeps one line for each idempotency key and never takes one back; `calls.txt` has a line for every call
that reached it. At the end the program prints the state as JSON. `nursery.py` drives the same order in PostgreSQL.

Siblings take turns (see `Turns`), so that every uninterrupted run passes the same points in the same order, and "the
third visit of commit:written" is one place and not a matter of luck.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypedDict

from bide import END, START, Command, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.failpoints import failpoint
from bide.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from bide.store.database import Database

THREAD = "order-7"
CONFIG = {"configurable": {"thread_id": THREAD}}
ANSWERS = {"Ship it?": "yes", "Which carrier?": "post"}
PATIENCE_SECONDS = 20


class Ledger:
    """The world outside: what it has taken in stays, and a key that it knows changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.calls = folder / "ledger.txt", folder / "calls.txt"

    def accept(self, key: str, what: str) -> str:
        failpoint(f"effect.{what}:before")
        _append(self.calls, f"{key} {what}\n")
        if not self.knows(key):
            _append(self.ledger, f"{key} {what}\n")
        failpoint(f"effect.{what}:after")
        return f"{what} accepted"

    def knows(self, key: str) -> bool:
        lines = self.ledger.read_text(encoding="utf-8").splitlines() if self.ledger.exists() else []
        return any(line.startswith(key) for line in lines)


def _append(path: Path, line: str) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
        os.fsync(file.fileno())


class Watched:
    """A database that tells who waits for it that something was written."""

    database: Database

    def __init__(self) -> None:
        self.written = Condition()
        plain_write = self.database.write

        def write(name: str, work: Callable[[Any], Any]) -> Any:
            try:
                return plain_write(name, work)
            finally:
                with self.written:
                    self.written.notify_all()

        self.database.write = write  # type: ignore[method-assign]

    def finished_tasks(self) -> set[str]:
        """Name the tasks of the present step that have left their result in the journal, without passing a point."""
        raise NotImplementedError


class Place(Protocol):
    """Where an order is kept: which folder its ledger is in, and which database its thread."""

    folder: Path
    insert_booking: str
    create_bookings: str

    def watched(self) -> Watched: ...


class InFile:
    """Everything in one folder: the store is a file beside the ledger."""

    create_bookings = "CREATE TABLE IF NOT EXISTS bookings (what TEXT NOT NULL)"
    insert_booking = "INSERT INTO bookings (what) VALUES (?)"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def watched(self) -> Watched:
        return WatchedFile(str(self.folder / "bide.db"))


class WatchedFile(Watched):
    def __init__(self, path: str) -> None:
        self.database = SqliteDatabase(path)
        super().__init__()

    def finished_tasks(self) -> set[str]:
        rows = self.database.read(lambda tx: tx.all("read_journal", {"thread_id": THREAD}))
        return {name for _, _, kind, _, name, _, _ in rows if kind == "result"}


class Turns:
    """Lets a sibling begin when another one has left its mark in the journal; with `exit`, when it has returned."""

    def __init__(self, watched: Watched, durability: str) -> None:
        self.watched = watched
        self.durability = durability
        self.returned: set[str] = set()

    def after(self, *nodes: str) -> None:
        with self.watched.written:
            if not self.watched.written.wait_for(lambda: self._have_ended(nodes), PATIENCE_SECONDS):
                raise TimeoutError(f"{nodes} did not end")

    def end(self, node: str) -> None:
        with self.watched.written:
            self.returned.add(node)
            self.watched.written.notify_all()

    def _have_ended(self, nodes: tuple[str, ...]) -> bool:
        ended = self.watched.finished_tasks()
        if self.durability == "exit":
            ended |= self.returned
        return ended.issuperset(nodes)


class State(TypedDict):
    order: str
    told: Annotated[list[str], operator.add]


class Shop:
    """The nodes of the graph, and the three kinds of effect that they have."""

    def __init__(self, place: Place, turns: Turns) -> None:
        self.place = place
        self.ledger = Ledger(place.folder)
        self.turns = turns

    # ── Effects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, what: str, idempotency_key: str) -> str:
        return self.ledger.accept(idempotency_key, what)

    def look(self, what: str) -> Callable[[str], Done | NotDone]:
        return lambda key: Done(f"{what} accepted") if self.ledger.knows(key) else NotDone()

    def send_once(self, what: str) -> str:
        return str(step(self.send, what, key=what, effect="once", verify=self.look(what)))

    def book(self, connection: Any, what: str) -> str:
        connection.execute(self.place.create_bookings)
        failpoint(f"effect.book.{what}:before")
        connection.execute(self.place.insert_booking, (what,))
        failpoint(f"effect.book.{what}:after")
        return f"{what} booked"

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def greet(self, state: State) -> dict[str, Any]:
        """Do nothing but return: such a step is saved in one statement."""
        return {"told": [f"{state['order']} is welcome"]}

    def reserve(self, state: State) -> dict[str, Any]:
        return {"told": [step(self.send, f"reserve.{state['order']}")]}

    def pack(self, state: State) -> dict[str, Any]:
        told = [self.send_once("charge"), step(self.book, "charged", effect="tx"), step(self.send, "pack")]
        self.turns.end("pack")
        return {"told": told}

    def notify(self, state: State) -> dict[str, Any]:
        self.turns.after("pack")
        self.turns.end("notify")
        return {"told": [f"customer of {state['order']} told"]}

    def approve(self, state: State) -> dict[str, Any]:
        self.turns.after("pack", "notify")
        shipping = interrupt("Ship it?")
        told = [step(self.send, f"label.{shipping}")]
        carrier = interrupt("Which carrier?")
        told += [self.send_once(f"dispatch.{carrier}"), step(self.book, "dispatched", effect="tx")]
        return {"told": told}

    def close(self, state: State) -> dict[str, Any]:
        return {"told": [step(self.send, "invoice"), f"{len(state['told'])} things done"]}


def build(place: Place, watched: Watched, durability: Any) -> CompiledGraph:
    shop = Shop(place, Turns(watched, durability))
    graph = StateGraph(State)
    for node in (shop.greet, shop.reserve, shop.pack, shop.notify, shop.approve, shop.close):
        graph.add_node(node)
    graph.add_edge(START, "greet")
    graph.add_edge("greet", "reserve")
    for sibling in ("pack", "notify", "approve"):
        graph.add_edge("reserve", sibling)
    graph.add_edge(["pack", "notify", "approve"], "close")
    graph.add_edge("close", END)
    return graph.compile(checkpointer=Store(watched.database), durability=durability)


def take_next_leg(graph: CompiledGraph) -> dict[str, Any] | None:
    """Look at the thread and do what it needs; return its state when it needs nothing more."""
    found = graph.get_state(CONFIG)
    if found.created_at is None:
        graph.invoke({"order": "A7"}, CONFIG)
    elif found.interrupts:
        graph.invoke(Command(resume={ask.id: ANSWERS[ask.value] for ask in found.interrupts}), CONFIG)
    elif found.next:
        graph.invoke(None, CONFIG)
    else:
        return dict(found.values)
    return None


def drive(place: Place, durability: str = "sync") -> dict[str, Any]:
    """Take leg after leg until the order is done. Every leg opens the store anew: days may lie between two of them."""
    state = None
    while state is None:
        graph = build(place, place.watched(), durability)
        state = take_next_leg(graph)
        assert graph.store is not None
        graph.store.close()
    return state


if __name__ == "__main__":
    print(json.dumps(drive(InFile(Path(sys.argv[1])), *sys.argv[2:])))
