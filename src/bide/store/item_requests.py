"""The operations of a batch once they are checked, and what each does inside a transaction.

Whatever can be refused is refused when a request is made, and values become bytes then: a transaction is short, and a
batch with a mistake in its last operation has done nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

from bide.clock import Instant
from bide.codec import Codec
from bide.store.bodies import Bodies
from bide.store.database import Transaction
from bide.store.item_filters import Condition, matches
from bide.store.item_ops import Item, MatchCondition, Result, SearchItem
from bide.store.item_rows import Row, fields_of, newest_first, read_row, value_of
from bide.store.namespaces import Namespace, Range, after, decode_namespace, under
from bide.store.places import item_place

PAGE = 100
"""How many items a filtered search holds at a time, beside those that it will return."""
SWEPT_BY_A_PUT = 32
"""How many expired items a writer takes away in passing: enough to keep up, too few to feel."""

ANY = "*"

Touched = list[tuple[bytes, bytes]]
"""Namespace and key of items that were read, and whose time begins anew for it."""


class Visit:
    """One transaction over the items, at one instant: what has expired by then is not there."""

    def __init__(self, tx: Transaction, now: Instant, codec: Codec, bodies: Bodies) -> None:
        self.tx = tx
        self.now = now
        self.codec = codec
        self.bodies = bodies
        self.touched: Touched = []

    def touch(self, row: Row) -> None:
        """Remember that an item was read; one that does not expire, or has all its time before it, is left alone."""
        if row.ttl is not None and row.expires_at is not None and row.expires_at < self.now + row.ttl:
            self.touched.append((row.namespace, row.key))


class Put(NamedTuple):
    """Write one item."""

    namespace: bytes
    key: bytes
    body: bytes
    ttl: int | None

    def perform(self, visit: Visit) -> None:
        """Write it; one that is there and alive keeps the time of its making."""
        expires_at = None if self.ttl is None else visit.now + self.ttl
        body = visit.bodies.close_small(item_place(self.namespace, self.key), self.body)
        visit.tx.send("put_item", {**self._asdict(), "body": body, "expires_at": expires_at, "now": visit.now})


class Delete(NamedTuple):
    """Delete one item."""

    namespace: bytes
    key: bytes

    def perform(self, visit: Visit) -> None:
        """Delete it, if it is there."""
        visit.tx.send("delete_item", self._asdict())


class Get(NamedTuple):
    """Read one item."""

    namespace: bytes
    key: bytes
    refreshes: bool

    def perform(self, visit: Visit) -> Item | None:
        """Read it, if it is there."""
        params = {"namespace": self.namespace, "key": self.key, "now": visit.now}
        found = visit.tx.one("read_item", params)
        if found is None:
            return None
        row = read_row(found)
        if self.refreshes:
            visit.touch(row)
        return Item(**fields_of(row, visit.codec, visit.bodies))


class Search(NamedTuple):
    """Find items under a prefix, newest first."""

    where: Range
    conditions: tuple[Condition, ...]
    limit: int
    offset: int
    refreshes: bool

    def perform(self, visit: Visit) -> list[SearchItem]:
        """Find them. Without a filter the database picks the newest; with one, every item of the range is looked at."""
        rows = self._chosen(visit) if self.conditions else self._newest(visit)
        if self.refreshes:
            for row in rows:
                visit.touch(row)
        return [SearchItem(**fields_of(row, visit.codec, visit.bodies)) for row in rows]

    def _newest(self, visit: Visit) -> list[Row]:
        params = {**self.where._asdict(), "now": visit.now, "most": self.limit, "skip": self.offset}
        return [read_row(found) for found in visit.tx.all("list_items", params)]

    def _chosen(self, visit: Visit) -> list[Row]:
        matching = (
            row for row in self._scan(visit) if matches(value_of(row, visit.codec, visit.bodies), self.conditions)
        )
        # Holds no more than it returns, however many there are to look at.
        return nsmallest(self.offset + self.limit, matching, key=newest_first)[self.offset :]

    def _scan(self, visit: Visit) -> Iterator[Row]:
        """Walk through the range in the order of the primary key, a page at a time."""
        since, key = self.where.since, b""
        while True:
            params = {"since": since, "key": key, "until": self.where.until, "now": visit.now, "most": PAGE}
            page = [read_row(found) for found in visit.tx.all("scan_items", params)]
            yield from page
            if len(page) < PAGE:
                return
            since, key = page[-1].namespace, after(page[-1].key)


class ListNamespaces(NamedTuple):
    """List the namespaces that hold something, in order, each once."""

    where: Range
    match: tuple[MatchCondition, ...]
    max_depth: int | None
    limit: int
    offset: int

    def perform(self, visit: Visit) -> list[Namespace]:
        """Hop from one namespace to the next, past all their items: the cost is in namespaces, not in items."""
        found: list[Namespace] = []
        since, until = self.where
        while len(found) < self.offset + self.limit:
            row = visit.tx.one("next_namespace", {"since": since, "until": until, "now": visit.now})
            if row is None:
                break
            namespace, since = decode_namespace(row[0]), after(row[0])
            if all(_fits(namespace, condition) for condition in self.match):
                found.append(namespace[: self.max_depth])
                if len(found[-1]) == self.max_depth:
                    # Whatever lies deeper would be cut to the same.
                    since = under(found[-1]).until
        return found[self.offset :]


Request = Put | Delete | Get | Search | ListNamespaces


def perform(requests: list[Request], visit: Visit) -> list[Result]:
    """Do what is asked, in order: each sees what those before it have written."""
    return [request.perform(visit) for request in requests]


def refresh(tx: Transaction, touched: Touched, now: Instant) -> None:
    """Let the time of what was read begin anew."""
    for namespace, key in touched:
        tx.run("refresh_item", {"namespace": namespace, "key": key, "now": now})


def drop_expired(tx: Transaction, now: Instant, most: int) -> int:
    """Take away items that nobody sees any more, those that expired first; return how many."""
    return tx.run("drop_expired_items", {"now": now, "most": most})


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in (ANY, segment) for wanted, segment in zip(path, part, strict=True))
