"""Orders under fire: a graph with effects of all three kinds and a question, and what must be true in the end.

    python shop.py LEDGER DSN SCHEMA WHO THREADS

drives orders in that many threads until a line comes on its standard input, or its end. It prints a line when its store
is open, one for every order that is done, and in the end one with the orders that it has begun.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import Annotated, Any, TypedDict

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from bide import END, START, Command, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.errors import StoreError
from tests.faults.ledger import Effect, Ledger
from tests.threads import thread


class State(TypedDict):
    order: str
    told: Annotated[list[str], operator.add]


class Shop:
    """The graph, over one store and one ledger."""

    def __init__(self, store: Store, ledger: Ledger, schema: str, *, ballast: int = 0) -> None:
        self.store = store
        self.ledger = ledger
        self.schema = schema
        self.ballast = ballast
        """How many bytes every order carries with it, to fill a disk sooner."""

    # ── Effects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def reserve(self, order: str, idempotency_key: str) -> str:
        self.ledger.add_effect(Effect(order, "reserve", "idempotent", idempotency_key))
        return "reserved"

    def charge(self, order: str, idempotency_key: str) -> str:
        self.ledger.add_effect(Effect(order, "charge", "once", idempotency_key))
        return "charged"

    def was_charged(self, key: str) -> Done | NotDone:
        return Done("charged") if self.ledger.knows(key) else NotDone()

    def book(self, connection: Any, order: str, what: str) -> str:
        connection.execute(f"INSERT INTO {self.schema}.bookings (booked, what) VALUES (%s, %s)", (order, what))
        return what

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def greet(self, state: State) -> dict[str, Any]:
        return {"told": ["welcome"]}

    def pack(self, state: State) -> dict[str, Any]:
        order = state["order"]
        told = [step(self.reserve, order), step(self.charge, order, effect="once", verify=self.was_charged)]
        return {"told": [*told, step(self.book, order, "packed", effect="tx"), *self.carried(order)]}

    def ship(self, state: State) -> dict[str, Any]:
        answer = interrupt("Ship it?")
        return {"told": [answer, step(self.book, state["order"], "shipped", effect="tx")]}

    def carried(self, order: str) -> list[str]:
        """Return text that is no other order's, and cannot be compressed."""
        return [b64encode(Random(order).randbytes(self.ballast)).decode()] if self.ballast else []

    def graph(self) -> CompiledGraph:
        graph = StateGraph(State).add_sequence([self.greet, self.pack, self.ship])
        return graph.add_edge(START, "greet").add_edge("ship", END).compile(checkpointer=self.store)

    # ── Driving an order ───────────────────────────────────────────────────────────────────────────────────────────

    def drive(self, order: str) -> None:
        """Take one leg after the other until the order is done, and acknowledge each."""
        graph = self.graph()
        while not self.take_leg(graph, order):
            pass

    def take_leg(self, graph: CompiledGraph, order: str) -> bool:
        found = graph.get_state(thread(order))
        if found.created_at is None:
            given: Any = {"order": order, "told": []}
        elif found.interrupts:
            given = Command(resume="yes")
        elif found.next:
            given = None
        else:
            return True
        result = graph.invoke(given, thread(order))
        self.ledger.acknowledge(order, result["told"], is_done=not result.is_interrupted)
        return not result.is_interrupted

    def try_to_drive(self, order: str) -> bool:
        """Drive an order, and note if the store refuses; return whether it is done."""
        try:
            self.drive(order)
        except StoreError as error:
            self.ledger.add_refusal(order, error)
            return False
        return True

    def expected(self, order: str, *, is_done: bool) -> list[str]:
        told = ["welcome", "reserved", "charged", "packed", *self.carried(order)]
        return [*told, "yes", "shipped"] if is_done else told


def prepare(store: Store, schema: str) -> None:
    """Make the shop's own table."""
    make = f"CREATE TABLE IF NOT EXISTS {schema}.bookings (booked TEXT NOT NULL, what TEXT NOT NULL)"
    store.database.write("prepare", lambda tx: tx.connection.execute(make))


def drive_many(orders: Iterable[str], threads: int, drive: Callable[[str], object]) -> None:
    """Drive orders in so many threads; whatever goes wrong is raised here."""
    with ThreadPoolExecutor(threads) as pool:
        for call in [pool.submit(drive, order) for order in orders]:
            call.result()


class Names:
    """Names for orders, until it is enough."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.enough = Event()
        self.given: list[str] = []
        self._numbers = count()
        self._lock = Lock()

    def __iter__(self) -> Iterator[str]:
        while not self.enough.is_set():
            with self._lock:
                name = f"{self.who}-{next(self._numbers)}"
                self.given.append(name)
            yield name


def say(what: Any) -> None:
    """Print a line, in one piece, whoever else prints at the same time."""
    os.write(sys.stdout.fileno(), (json.dumps(what) + "\n").encode())


def main(ledger: Path, dsn: str, schema: str, who: str, threads: int) -> None:
    names = Names(who)

    def wait_for_the_end() -> None:
        sys.stdin.readline()
        names.enough.set()

    def drive_one_after_the_other(shop: Shop) -> None:
        for order in names:
            shop.drive(order)
            say(order)

    Thread(target=wait_for_the_end, daemon=True).start()
    with Store.open(dsn, schema=schema) as store:
        say(None)
        shop = Shop(store, Ledger(ledger), schema)
        drive_many(range(threads), threads, lambda _: drive_one_after_the_other(shop))
    say(names.given)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
