"""The outbox: what is told to somebody outside, at least once, and each time under the same id.

Whoever turns lines of the feed into messages moves its bookmark in the same transaction (`post`): so each line becomes
its messages once, however many servers read it. Messages are claimed for a while; a sender that dies in between leaves
one that is due again. What nobody would hear, after all attempts, is `dead` and stays to be seen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from bide.clock import Instant
from bide.errors import CodecError
from bide.store.database import Row, Transaction
from bide.store.feed import latest_cursor, read_place
from bide.store.needed import PLAIN
from bide.store.places import message_place
from bide.store.reads import noticing_damage

if TYPE_CHECKING:
    from bide.store.store import Store

MessageStatus = Literal["open", "sent", "dead"]

HOLD = 120_000
"""Milliseconds for which a claimed message is its sender's: longer than any attempt takes."""
_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000
BACK_OFF = (
    *(5 * _SECOND, 15 * _SECOND, 1 * _MINUTE, 3 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE),
    *(1 * _HOUR, 2 * _HOUR, 4 * _HOUR, 6 * _HOUR, 10 * _HOUR),
)
"""Milliseconds between two attempts, give or take a fifth: about a day in all."""
ATTEMPTS = len(BACK_OFF) + 1
LONGEST_DELAY = 24 * _HOUR
"""However long a receiver asks to be left alone."""
SENT_STAY, DEAD_STAY = 7 * 24 * _HOUR, 30 * 24 * _HOUR
AFTER_ALL = 2**62


class Message(NamedTuple):
    """Something to be told."""

    message_id: str
    owner: str
    thread_id: str | None
    kind: str
    to: str
    """Which of the configured receivers, or who else, decides how it is signed."""
    url: str
    payload: str
    """Its body, as it is sent."""


class OutboxRow(NamedTuple):
    """A message as it stands."""

    message_id: str
    owner: str
    thread_id: str | None
    kind: str
    status: MessageStatus
    attempts: int
    next_at: Instant
    created_at: Instant
    sent_at: Instant | None
    error: str | None
    to: str
    url: str
    payload: str


# ── Reading the feed on behalf of others ───────────────────────────────────────────────────────────────────────────


def bookmark(store: Store, name: str) -> str:
    """Return up to where a reader has read; one that is new begins now."""
    row = store.database.read(lambda tx: tx.one("read_bookmark", {"name": name}))
    if row is not None:
        return str(row[0])
    said = {"name": name, "position": latest_cursor(store), "now": store.clock.now()}
    store.database.write("bookmark", lambda tx: tx.send("put_bookmark", said))
    return bookmark(store, name)


def post(store: Store, name: str, old: str, new: str, messages: Sequence[Message]) -> bool:
    """Move a bookmark and put what was made of the lines in between into the outbox, or nothing: another was first."""

    def work(tx: Transaction) -> bool:
        now = store.clock.now()
        if tx.run("move_bookmark", {"name": name, "old": old, "position": new, "now": now}) == 0:
            return False
        for message in messages:
            tx.send("insert_message", _params(store, message, now))
        return True

    return store.database.write("post", work)


def put(store: Store, messages: Sequence[Message]) -> None:
    """Put messages into the outbox that are made of no line of the feed; those that are there already stay."""

    def work(tx: Transaction) -> None:
        for message in messages:
            tx.send("insert_message", _params(store, message, store.clock.now()))

    store.database.write("post", work)


def _params(store: Store, message: Message, now: Instant) -> dict[str, Any]:
    said = {"to": message.to, "url": message.url, "payload": message.payload}
    body = store.bodies.close_small(message_place(message.message_id), PLAIN.encode(said, "message"))
    key = {"message_id": message.message_id, "owner": message.owner, "thread_id": message.thread_id}
    return {**key, "kind": message.kind, "now": now, "body": body}


# ── Sending ────────────────────────────────────────────────────────────────────────────────────────────────────────


def claim_messages(store: Store, most: int) -> list[OutboxRow]:
    """Claim up to so many messages that are due; each is this caller's for a while."""

    def work(tx: Transaction) -> list[OutboxRow]:
        now = store.clock.now()
        due = tx.all("list_due_messages", {"now": now, "most": most})
        for row in due:
            tx.send("claim_message", {"message_id": row[0], "until": now + HOLD})
        found = [_claimed(store, tx, row) for row in due]
        return [row for row in found if row is not None]

    return store.database.write("outbox", work) if most > 0 else []


def _claimed(store: Store, tx: Transaction, row: Row) -> OutboxRow | None:
    """Open a message that was claimed; one that is damaged is put aside, so that it keeps no other back."""
    attempts = row[5] + 1
    try:
        return _row(store, tx, row)._replace(attempts=attempts)
    except CodecError as problem:
        key = {"message_id": row[0], "attempts": attempts, "next_at": row[6]}
        tx.send("note_failed", {**key, "status": "dead", "error": store.bodies.readable(f"CodecError: {problem}")})
        return None


def mark_sent(store: Store, row: OutboxRow) -> bool:
    """Note that a claimed message was heard; return whether it was still this caller's."""
    key = {"message_id": row.message_id, "attempts": row.attempts}
    return store.database.write("sent", lambda tx: tx.run("note_sent", {**key, "now": store.clock.now()})) > 0


def mark_failed(store: Store, row: OutboxRow, error: str, *, wait: int = 0, is_hopeless: bool = False) -> MessageStatus:
    """Note that a claimed message was not heard, and when it is tried again; return what it is from now on.

    `wait` is for how many milliseconds its receiver wants to be left alone.
    """
    now = store.clock.now()
    # Counted on when a dead one is sent again, which then has as many once more.
    is_last = is_hopeless or row.attempts % ATTEMPTS == 0
    status: MessageStatus = "dead" if is_last else "open"
    next_at = now if is_last else now + delay_after(row.attempts, wait)
    said = {"status": status, "next_at": next_at, "error": store.bodies.readable(error)}
    key = {"message_id": row.message_id, "attempts": row.attempts}
    store.database.write("failed", lambda tx: tx.send("note_failed", {**key, **said}))
    return status


def delay_after(attempts: int, wait: int = 0) -> int:
    """Return for how many milliseconds a message is put off after so many attempts; never the same twice, so that
    many that failed together do not come back together."""
    usual = BACK_OFF[(attempts - 1) % ATTEMPTS]
    return max(round(usual * random.uniform(0.8, 1.2)), min(wait, LONGEST_DELAY))


def next_message_at(store: Store) -> Instant | None:
    """Return when the next message is due."""
    row = store.database.read(lambda tx: tx.one("next_message", {}))
    return None if row is None else row[0]


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_message(store: Store, message_id: str) -> OutboxRow | None:
    """Read a message."""

    def work(tx: Transaction) -> OutboxRow | None:
        row = tx.one("read_message", {"message_id": message_id})
        return None if row is None else _row(store, tx, row)

    return store.database.read(work)


def list_messages(
    store: Store, status: MessageStatus, owner: str | None, *, after: OutboxRow | None = None, most: int = 100
) -> list[OutboxRow]:
    """List messages, newest first, behind the last one that was seen."""
    where = (AFTER_ALL, "") if after is None else (after.created_at, after.message_id)
    params = {"status": status, "owner": owner, "created_at": where[0], "before": where[1], "most": most}
    return store.database.read(lambda tx: [_row(store, tx, row) for row in tx.all("list_messages", params)])


def retry_dead(store: Store, message_id: str) -> bool:
    """Try a message again now that is dead, or is to be tried later; return whether it was not sent before."""
    params = {"message_id": message_id, "now": store.clock.now()}
    revived = store.database.write("retry", lambda tx: tx.run("revive_message", params)) > 0
    if revived:
        store.ring()
    return revived


def forget_messages(store: Store) -> int:
    """Delete messages that were sent, or given up, long ago; return how many."""
    now = store.clock.now()
    old = ({"status": "sent", "horizon": now - SENT_STAY}, {"status": "dead", "horizon": now - DEAD_STAY})
    return store.database.write("forget", lambda tx: sum(tx.run("forget_messages", params) for params in old))


def _row(store: Store, tx: Transaction, row: Row) -> OutboxRow:
    place = message_place(row[0])
    opened = store.bodies.open(tx, place, row[-1])
    with noticing_damage(place):
        body = cast("dict[str, Any]", PLAIN.decode(opened, "message"))
        return OutboxRow(*row[:-1], **body)


# ── After a dump was restored elsewhere ────────────────────────────────────────────────────────────────────────────


def mend_feed(store: Store) -> bool:
    """Let the feed go on in a PostgreSQL into which the dump of another was restored; return whether that was so.

    The other server had counted its transactions further, so that what it wrote seems to be still to come. These lines
    now come first, and each reader goes on where surely nothing is missed: what is made of a line again has the same
    id.
    """
    if not store.database.read(lambda tx: tx.all("feed_strays", {})):
        return False

    def work(tx: Transaction) -> None:
        now = store.clock.now()
        for name, old, _ in tx.all("list_bookmarks", {}):
            place = read_place(old)
            row = tx.one("first_untold", {"tx": place.tx})
            first = place.position + 1 if row is None or row[0] is None else row[0]
            new = f"0-{min(place.position, max(first - 1, 0))}"
            tx.send("move_bookmark", {"name": name, "old": old, "position": new, "now": now})
        tx.send("settle_strays", {})

    store.database.write("mend", work)
    return True
