"""The feed: the lines of all threads in one order, behind a place that somebody has read up to.

Nothing is lost and nothing comes twice, though transactions commit in another order than they began. A place is written
"<transaction>-<position>"; on SQLite, where writers take turns, the transaction is 0. What runs were asked to tell
while they ran (`told.…`) is not in it, nor is the past of a thread that was imported.

On PostgreSQL two lines of one thread may change places, if their transactions wanted it at the same moment and the one
that began later got it first. Their numbers tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from bide.clock import Instant
from bide.errors import CodecError, UnknownCursorError
from bide.store.database import Row, Transaction
from bide.store.needed import PLAIN
from bide.store.places import event_place

if TYPE_CHECKING:
    from bide.store.store import Store

SCAN = 10
"""To find one line of an owner, so many of all are looked at in one read, at most."""

_PLACE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class Place(NamedTuple):
    """A place in the feed: up to where somebody was told."""

    tx: int = 0
    position: int = 0

    def __str__(self) -> str:
        return f"{self.tx}-{self.position}"


class FeedEvent(NamedTuple):
    """A line of the feed."""

    cursor: str
    """Its own place: who goes on behind it has read it."""
    owner: str
    graph: str
    thread_id: str
    number: int
    """Its number in the log of its thread, where that order matters."""
    seq: int
    """After which checkpoint it came."""
    run_id: str | None
    kind: str
    at: Instant
    body: Any
    """What it says; None where that needs the types of its graph, or is damaged."""


class Feed(NamedTuple):
    """A page of the feed."""

    events: list[FeedEvent]
    cursor: str
    """Where to go on: behind all that was looked at, also what was another owner's."""
    is_more: bool
    """Whether there was more at this moment."""


def read_place(cursor: str | None) -> Place:
    """Read a place; none is the beginning."""
    if cursor is None:
        return Place()
    found = _PLACE.fullmatch(str(cursor))
    if found is None:
        raise UnknownCursorError(
            f"{str(cursor)[:80]!r} is no place in the feed of events. Give the cursor that came with the last event "
            f"that was read, as '0-1207', or none to begin at the beginning."
        )
    return Place(int(found[1]), int(found[2]))


def latest_cursor(store: Store) -> str:
    """Return the place of the newest line: who goes on behind it is told what happens from now on."""
    return str(store.database.read(lambda tx: _ends(tx)[0]))


def read_feed(
    store: Store,
    after: str | None,
    most: int = 100,
    owner: str | None = None,
    *,
    kinds: Collection[str] | None = None,
) -> Feed:
    """Read up to so many lines behind a place: of all threads, or of an owner's; of all kinds, or of these."""
    return store.database.read(lambda tx: _read(store, tx, read_place(after), most, owner, kinds))


def _read(
    store: Store, tx: Transaction, after: Place, most: int, owner: str | None, kinds: Collection[str] | None
) -> Feed:
    # Asked together, in one snapshot: a database that is a network away answers in one round trip.
    key = {"tx": after.tx, "position": after.position}
    beyond = most - 1 if owner is None else most * SCAN - 1
    asked, scanned = tx.ask("feed_end", {}), tx.ask("feed_scan", {**key, "beyond": beyond})
    end, horizon = _places(asked()[0])
    if after >= horizon:
        raise UnknownCursorError(
            f"The place {str(after)!r} is none of the feed in {store.database.path!r}: nothing was told there yet. It "
            f"comes from another database, or this one was restored from a backup since. Begin at the beginning, or "
            f"with what happens from now on."
        )
    until = Place(*scanned()[0]) if scanned() else max(end, after)
    bounds = {**key, "until_tx": until.tx, "until_position": until.position}
    rows = tx.all("read_feed", {**bounds, "owner": owner, "most": most})
    cursor = Place(*rows[-1][:2]) if len(rows) == most else until
    events = [_event(store, tx, row) for row in rows if kinds is None or row[8] in kinds]
    return Feed(events, str(cursor), cursor < end)


def _ends(tx: Transaction) -> tuple[Place, Place]:
    """Return the last place that may be told, and from where on there is none."""
    row = tx.one("feed_end", {})
    assert row is not None, "it always answers"
    return _places(row)


def _places(row: Row) -> tuple[Place, Place]:
    return Place(*row[:2]), Place(*row[2:])


def _event(store: Store, tx: Transaction, row: Row) -> FeedEvent:
    place, (owner, graph, thread_id, number, seq, run_id, kind, at, stored) = Place(*row[:2]), row[2:]
    try:
        opened = store.bodies.open(tx, event_place(thread_id, kind, seq, at), stored)
        body = PLAIN.decode(opened, "event")
    except CodecError:
        body = None  # one line that cannot be read must not keep anybody from the next
    return FeedEvent(str(place), owner, graph, thread_id, number, seq, run_id, kind, at, body)
