"""The world outside: mail, a bank, a library. It knows nothing of Bide, and writes down every call it gets.

The ledger is a file of JSON lines beside the database. A call with a key that was seen before is written down too, and
answered with the first receipt, but has no effect: that is what payment providers call an idempotency key.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import NamedTuple


class Call(NamedTuple):
    """One call that reached the outside world."""

    what: str
    about: str
    key: str
    receipt: str
    has_effect: bool


class Outside:
    """What the agents may do to the world. Reading takes `pace` seconds, so that it can be cut short."""

    def __init__(self, ledger: str, pace: float = 0.0) -> None:
        self.ledger = ledger
        self.pace = pace

    def send_mail(self, to: str, subject: str, *, idempotency_key: str) -> str:
        """Send a mail."""
        return self._call("mail", f"to {to}: {subject}", idempotency_key)

    def order(self, goods: str, *, idempotency_key: str) -> str:
        """Order goods."""
        return self._call("order", goods, idempotency_key)

    def pay(self, amount: int, to: str, *, idempotency_key: str) -> str:
        """Pay somebody."""
        return self._call("pay", f"{amount} EUR to {to}", idempotency_key)

    def read(self, topic: str, *, idempotency_key: str) -> str:
        """Read a book about something; return what it says."""
        self._call("read", f"a book about {topic}", idempotency_key)
        time.sleep(self.pace)
        return f"{topic} come and go"

    def publish(self, text: str, *, idempotency_key: str) -> str:
        """Print something."""
        return self._call("publish", text, idempotency_key)

    def _call(self, what: str, about: str, key: str) -> str:
        return write_down(self.ledger, what, about, key).receipt


def write_down(ledger: str, what: str, about: str, key: str) -> Call:
    """Take one call: the first with its key has an effect, later ones get the receipt of the first."""
    with open(ledger, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        calls = [Call(**json.loads(line)) for line in file]
        first = next((call for call in calls if call.key == key), None)
        receipt = f"{what}-{len(calls) + 1}" if first is None else first.receipt
        call = Call(what, about, key, receipt, has_effect=first is None)
        file.write(json.dumps(call._asdict()) + "\n")
        file.flush()
        os.fsync(file.fileno())
        return call


def calls_in(ledger: str) -> list[Call]:
    """Read every call that was made."""
    if not os.path.exists(ledger):
        return []
    with open(ledger, encoding="utf-8") as file:
        return [Call(**json.loads(line)) for line in file if line.endswith("\n")]
