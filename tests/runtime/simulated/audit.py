"""What must be true when everything is quiet: the ledger against the store, and the store against itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bide import Store
from tests.runtime.simulated.orders import expected_log

if TYPE_CHECKING:
    from tests.runtime.simulated.simulation import Simulation


class Broken(AssertionError):
    """A promise does not hold: the message tells the seed, and what led there."""


def audit(life: Simulation) -> None:
    """Look at everything."""
    app = life.office.app
    orders = {name: app.get(name) for name in life.plans}
    for name, thread in orders.items():
        if name in life.cancelled:
            check(thread.status in ("cancelled", "done"), f"{name} was cancelled and is {thread.status}")
            continue
        check(thread.status == "done", f"{name} is {thread.status}: {thread.error}")
        said = [line[0] if isinstance(line, list) else line for line in thread.values["log"]]
        check(said == expected_log(life.plans[name]), f"{name} says {said}, planned {life.plans[name]}")
        for line in thread.values["log"]:
            check(line not in (["helped", "failed"], ["helped", "dead"]), f"the helper of {name} came to no good end")
    check_effects(life, {name: thread for name, thread in orders.items() if name not in life.cancelled})
    check_slots(orders)
    check_store(life)


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def check_effects(life: Simulation, orders: dict[str, Any]) -> None:
    """Effects happened as often as they must, and no more often than they may."""
    packed = [f"{name}.{at}" for name in orders for at, kind in enumerate(life.plans[name]) if kind == "pack"]
    packed += [f"{name}.{at}.0" for name in orders for at, kind in enumerate(life.plans[name]) if kind == "help"]
    rows = life.database.read(lambda tx: tx.connection.execute("SELECT booked FROM bookings").fetchall())
    booked = Counter(row[0] for row in rows)
    for what, count in booked.items():
        check(count == 1, f"{what} is booked {count} times")
    charged = Counter(line.partition("|")[0] for line in life.ledger.charged.elements())
    for what, count in charged.items():
        check(count == 1, f"{what} is charged {count} times")
    reserved = Counter(line.partition("|")[0] for line in life.ledger.calls)
    for what, count in reserved.items():
        check(count == 1, f"{what} is reserved under {count} keys")
    for what in packed:
        check(bool(booked[what] and charged[what] and reserved[what]), f"{what} is done, and was not packed")


def check_slots(orders: dict[str, Any]) -> None:
    """No two have had the same slot."""
    lines = [line for thread in orders.values() for line in (thread.values or {}).get("log", [])]
    slots = Counter(line[1] for line in lines if isinstance(line, list) and line[0] == "slot")
    check(all(count == 1 for count in slots.values()), f"a slot was given to two: {slots}")


def check_store(life: Simulation) -> None:
    """Nothing is pending, and everything fits together."""
    store: Store = life.office.store
    check(
        not store.database.inner.read(lambda tx: tx.all("list_pending_deliveries", {"most": 10})), "a fact is pending"
    )
    found = store.verify()
    check(found.is_sound, str(found))
    for thread in store.threads(most=1000):
        answered = Counter(event.body for event in store.events(thread.thread_id) if event.kind == "wait.answered")
        check(all(count == 1 for count in answered.values()), f"a wait of {thread.thread_id} was answered twice")
