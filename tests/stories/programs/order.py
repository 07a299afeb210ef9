"""An order, driven to its end by a supervisor that may be killed at any moment and is then started again.

    python order.py FOLDER [sync|async|exit]

In FOLDER: `bide.db` is the store, with the shop's own table `bookings` in it; `ledger.txt` is the world outside, a
provider that keeps one line for each idempotency key and never takes one back; `calls.txt` has a line for every call
that reached it. At the end the program prints the state as JSON.

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
from typing import Annotated, Any, TypedDict

from bide import END, START, Command, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.failpoints import failpoint
from bide.store.sqlite import SqliteDatabase

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


class WatchedDatabase(SqliteDatabase):
    """A database that tells who waits for it that something was written."""

    def __init__(self, path: str) -> None:
        self.written = Condition()
        super().__init__(path)

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        try:
            return super().write(name, work)
        finally:
            with self.written:
                self.written.notify_all()


class Turns:
    """Lets a sibling begin when another one has left its mark in the journal; with `exit`, when it has returned."""

    def __init__(self, database: WatchedDatabase, durability: str) -> None:
        self.database = database
        self.durability = durability
        self.returned: set[str] = set()

    def after(self, *nodes: str) -> None:
        with self.database.written:
            if not self.database.written.wait_for(lambda: self._have_ended(nodes), PATIENCE_SECONDS):
                raise TimeoutError(f"{nodes} did not end")

    def end(self, node: str) -> None:
        with self.database.written:
            self.returned.add(node)
            self.database.written.notify_all()

    def _have_ended(self, nodes: tuple[str, ...]) -> bool:
        rows = self.database.read(lambda tx: tx.all("read_journal", {"thread_id": THREAD}))
        ended = {name for _, _, kind, _, name, _, _ in rows if kind == "result"}
        if self.durability == "exit":
            ended |= self.returned
        return ended.issuperset(nodes)


class State(TypedDict):
    order: str
    told: Annotated[list[str], operator.add]


class Shop:
    """The nodes of the graph, and the three kinds of effect that they have."""

    def __init__(self, folder: Path, turns: Turns) -> None:
        self.ledger = Ledger(folder)
        self.turns = turns

    # ── Effects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, what: str, idempotency_key: str) -> str:
        return self.ledger.accept(idempotency_key, what)

    def look(self, what: str) -> Callable[[str], Done | NotDone]:
        return lambda key: Done(f"{what} accepted") if self.ledger.knows(key) else NotDone()

    def send_once(self, what: str) -> str:
        return str(step(self.send, what, key=what, effect="once", verify=self.look(what)))

    @staticmethod
    def book(connection: Any, what: str) -> str:
        connection.execute("CREATE TABLE IF NOT EXISTS bookings (what TEXT NOT NULL)")
        failpoint(f"effect.book.{what}:before")
        connection.execute("INSERT INTO bookings (what) VALUES (?)", (what,))
        failpoint(f"effect.book.{what}:after")
        return f"{what} booked"

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

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


def build(folder: Path, database: WatchedDatabase, durability: Any) -> CompiledGraph:
    shop = Shop(folder, Turns(database, durability))
    graph = StateGraph(State)
    for node in (shop.reserve, shop.pack, shop.notify, shop.approve, shop.close):
        graph.add_node(node)
    graph.add_edge(START, "reserve")
    for sibling in ("pack", "notify", "approve"):
        graph.add_edge("reserve", sibling)
    graph.add_edge(["pack", "notify", "approve"], "close")
    graph.add_edge("close", END)
    return graph.compile(checkpointer=Store(database), durability=durability)


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


def drive(folder: Path, durability: str = "sync") -> dict[str, Any]:
    """Take leg after leg until the order is done. Every leg opens the store anew: days may lie between two of them."""
    state = None
    while state is None:
        database = WatchedDatabase(str(folder / "bide.db"))
        graph = build(folder, database, durability)
        state = take_next_leg(graph)
        assert graph.store is not None
        graph.store.close()
    return state


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]), *sys.argv[2:])))
