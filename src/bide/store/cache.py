"""Results of nodes with a `CachePolicy`, kept in the database."""

from __future__ import annotations

from bide.store.database import Transaction
from bide.store.places import cache_place
from bide.store.store import Store


class StoredCache:
    """Keeps results by place (graph and node) and key, each until its time is over."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, place: str, key: str) -> bytes | None:
        """Return what is kept under a key, unless its time is over."""
        params = {"place": place, "key": key, "now": self.store.clock.now()}
        row = self.store.database.read(lambda tx: tx.one("read_cached", params))
        return None if row is None else self.store.bodies.seal.open(cache_place(place, key), row[0])

    def put(self, place: str, key: str, body: bytes, ttl: float | None) -> None:
        """Keep a result, for so many seconds; those whose time is over make way."""
        now = self.store.clock.now()
        until = None if ttl is None else now + int(ttl * 1000)
        closed = self.store.bodies.close_small(cache_place(place, key), body)

        def write(tx: Transaction) -> None:
            tx.send("forget_cached", {"now": now})
            tx.send("write_cached", {"place": place, "key": key, "expires_at": until, "body": closed})

        self.store.database.write("cache", write)

    def clear(self, place: str) -> None:
        """Forget all results of a node."""
        self.store.database.write("cache", lambda tx: tx.run("clear_cached", {"place": place}))


class InMemoryCache(StoredCache):
    """A cache that lives as long as the process: `compile(cache=InMemoryCache())`."""

    def __init__(self) -> None:
        super().__init__(Store.open(":memory:"))
