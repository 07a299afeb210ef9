"""The world outside: goods, a bank and a carrier, which know nothing of Bide and write down every call they get.

The ledger is a file of JSON lines beside the database. A call with a key that was seen before is written down too, and
answered with the first receipt, but has no effect: that is what payment providers call an idempotency key.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

STOCK = {"teapot": 12, "kettle": 4}
PRICES = {"teapot": Decimal("24.90"), "kettle": Decimal("39.00")}


class Call(NamedTuple):
    """One call that reached the outside world."""

    order: str
    what: str
    key: str
    receipt: str
    has_effect: bool


class Shop:
    """What an order may do to the world. `on_call` hears of each call after it took effect."""

    def __init__(self, ledger: str, order: str, on_call: Callable[[Call], None]) -> None:
        self.ledger = ledger
        self.order = order
        self.on_call = on_call

    def reserve(self, item: str, count: int, *, idempotency_key: str) -> str:
        """Put goods aside; return the number of the reservation."""
        return self._call("reserve", idempotency_key)

    def charge(self, total: Decimal, *, idempotency_key: str) -> str:
        """Take money from the customer's card; return the receipt."""
        return self._call("charge", idempotency_key)

    def ship(self, reservation: str, *, idempotency_key: str) -> str:
        """Send reserved goods; return the number of the parcel."""
        return self._call("ship", idempotency_key)

    def release(self, reservation: str, *, idempotency_key: str) -> str:
        """Put reserved goods back; return a receipt."""
        return self._call("release", idempotency_key)

    def _call(self, what: str, key: str) -> str:
        call = write_down(self.ledger, self.order, what, key)
        self.on_call(call)
        return call.receipt


def write_down(ledger: str, order: str, what: str, key: str) -> Call:
    """Take one call: the first with its key has an effect, later ones get the receipt of the first."""
    with open(ledger, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        calls = [_read(line) for line in file]
        first = next((call for call in calls if call.key == key), None)
        receipt = f"{what}-{len(calls) + 1}" if first is None else first.receipt
        call = Call(order, what, key, receipt, has_effect=first is None)
        file.write(json.dumps(call._asdict()) + "\n")
        file.flush()
        os.fsync(file.fileno())
        return call


def calls_of(ledger: str, order: str) -> list[Call]:
    """Read every call that was made for an order."""
    if not os.path.exists(ledger):
        return []
    with open(ledger, encoding="utf-8") as file:
        return [call for call in map(_read, file) if call.order == order]


def _read(line: str) -> Call:
    fields: dict[str, Any] = json.loads(line)
    return Call(**fields)
