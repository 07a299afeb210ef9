"""Random keys that the servers of one database share: made by whoever needs one first, and replaced in turn.

Each purpose has its own, numbered: the last is the one that signs, and those before it are still believed until they
are dropped. They are sealed as bodies are; only with encryption does nobody read them who reads the database.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from bide.store.database import Transaction
from bide.store.seal import place_of

if TYPE_CHECKING:
    from bide.store.store import Store

BYTES = 32


class SecretKey(NamedTuple):
    """A key, and the name that it is known by."""

    kid: str
    key: bytes


class SecretKeys:
    """The keys for one purpose."""

    def __init__(self, store: Store, purpose: str) -> None:
        self._store = store
        self._purpose = purpose

    def current(self) -> SecretKey:
        """Return the key that signs; the first time it is made."""
        numbers = self._store.database.read(self._numbers)
        return self._made(numbers[-1] if numbers else 1)

    def find(self, kid: str) -> bytes | None:
        """Return a key by its name, if it is still believed."""
        if not (kid.isascii() and kid.isdigit()) or kid != str(int(kid[:9])):
            return None
        return self._store.database.read(lambda tx: self._opened(tx, int(kid)))

    def rotate(self, *, drop_others: bool = False) -> SecretKey:
        """Sign with a new key from now on. With `drop_others`, what the others have signed is not believed any more."""
        numbers = self._store.database.read(self._numbers)
        new = self._made(numbers[-1] + 1 if numbers else 1)
        for number in numbers if drop_others else ():
            self._drop(number)
        return new

    def kids(self) -> list[str]:
        """Name the keys that are believed, oldest first."""
        return [str(number) for number in self._store.database.read(self._numbers)]

    # ── In the table ───────────────────────────────────────────────────────────────────────────────────────────────

    def _made(self, number: int) -> SecretKey:
        store, name = self._store, self._name(number)
        body = store.bodies.close_small(secret_place(name), os.urandom(BYTES))

        def make(tx: Transaction) -> bytes | None:
            found = self._opened(tx, number)
            if found is None:
                tx.run("make_secret", {"name": name, "now": store.clock.now(), "body": body})
                found = self._opened(tx, number)  # another's, if that was there a moment before
            return found

        key = store.database.read(lambda tx: self._opened(tx, number)) or store.database.write("make_secret", make)
        assert key is not None, "it was made, or was there"
        return SecretKey(str(number), key)

    def _drop(self, number: int) -> None:
        self._store.database.write("drop_secret", lambda tx: tx.run("drop_secret", {"name": self._name(number)}))

    def _opened(self, tx: Transaction, number: int) -> bytes | None:
        name = self._name(number)
        row = tx.one("read_secret", {"name": name})
        return None if row is None else self._store.bodies.open(tx, secret_place(name), row[0])

    def _numbers(self, tx: Transaction) -> list[int]:
        names = tx.all("list_secrets", {"names": f"{self._purpose}/%"})
        return sorted(int(name.rpartition("/")[2]) for (name,) in names)

    def _name(self, number: int) -> str:
        return f"{self._purpose}/{number}"


def secret_place(name: str) -> str:
    """Return the place of a key."""
    return place_of("secrets", name)
