"""`store.reseal()`: whatever is not sealed as the store seals today is sealed anew. So keys are changed.

Each page of rows is read in a snapshot of its own, and written in a small transaction, a body only if it is still as it
was read: nobody waits, and it may stop anywhere and begin again.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bide.errors import CodecError, CorruptDataError, UnknownKeyError
from bide.store.bodies import Bodies, collect_blobs
from bide.store.database import Transaction
from bide.store.notes import rewrite_labels
from bide.store.pruning import unused_blobs
from bide.store.recorrelating import rewrite_keys_of_delivery, rewrite_keys_of_wait
from bide.store.saver_places import (
    saver_blobs,
    saver_checkpoint_place,
    saver_metadata_place,
    saver_value_place,
    saver_write_place,
)
from bide.store.seal import REFERENCE, is_reference, open_reference
from bide.store.stored_rows import (
    BESIDE_THREADS,
    DELIVERIES,
    NOTES,
    OF_A_THREAD,
    OF_SAVERS,
    PAGE,
    THREAD_NOTES,
    WAITS,
    Table,
    Values,
    page_after,
)
from bide.store.verify_beside import LOST, lost_threads

if TYPE_CHECKING:
    from bide.store.store import Store

NO_LIMIT = sys.maxsize

logger = logging.getLogger("bide.store")


class _Changed(Exception):
    """A row is no longer as it was read; the transaction is taken back."""


def reseal(store: Store, most: int | None = None) -> int:
    """Seal anew what is not sealed as the store seals today; return how many bodies that were.

    When all is done that can be, what could not be opened is an error: 0 says that older keys can go.
    """
    work = _Resealing(store, NO_LIMIT if most is None else most)
    for thread_id in _all_threads(store):
        for table in (*OF_A_THREAD, *NOTES):
            work.table(table, thread_id)
        if work.is_over:
            return work.count
        work.let_go_of_blobs(thread_id)
    for table in BESIDE_THREADS:
        work.table(table)
    if not work.is_over:
        work.let_go_of_the_rest()
        work.refuse_what_is_left()
    return work.count


def _all_threads(store: Store) -> Iterator[str]:
    """Name every thread, and then those of which only rows are left."""
    after = ""
    while True:
        params = {"thread_id": after, "most": PAGE}
        page = store.database.read(lambda tx, params=params: tx.all("page_threads", params))  # type: ignore[misc]
        yield from (str(row[0]) for row in page)
        if len(page) < PAGE:
            break
        after = page[-1][0]
    yield from store.database.read(lambda tx: {name for table in LOST for name in lost_threads(tx, table, NO_LIMIT)})


class _Resealing:
    """One call: how many bodies it may still write, and how many it has written."""

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        # What is stored already may be larger than what this store would take.
        self.bodies = Bodies(store.bodies.seal, store.bodies.owner, NO_LIMIT)
        self.left = most
        self.count = 0
        self.unread: dict[str, CodecError] = {}
        """What could not be opened, by its place, and why."""
        self.savers: set[str] = set()
        """Threads of LangGraph's of which large values have moved."""

    @property
    def is_over(self) -> bool:
        """Whether no more may be written."""
        return self.left <= 0

    def table(self, table: Table, thread_id: str | None = None) -> None:
        """Go through a table."""
        after: Values | None = None
        while not self.is_over:
            page = self._page(table, after, thread_id)
            stale = [(row, column) for row in page for column in table.places if self._is_stale(row[column])]
            try:
                if stale:
                    self._write(table, stale)
            except _Changed:
                continue  # somebody was faster: look again
            if len(page) < table.page:
                return
            after = page[-1]

    def _page(self, table: Table, after: Values | None, thread_id: str | None) -> list[Values]:
        return self.store.database.read(lambda tx: page_after(tx, table, after, thread_id))

    def _is_stale(self, stored: object) -> bool:
        return isinstance(stored, bytes) and not self.bodies.seal.is_current(stored)

    def _write(self, table: Table, stale: list[tuple[Values, str]]) -> None:
        count = self.store.database.write("reseal", lambda tx: self._write_all(tx, table, stale))
        self.count += count
        self.left -= count

    def _write_all(self, tx: Transaction, table: Table, stale: list[tuple[Values, str]]) -> int:
        count = 0
        for row, column in stale:
            if count >= self.left:
                break
            count += self._write_one(tx, table, row, column)
        return count

    def _write_one(self, tx: Transaction, table: Table, row: Values, column: str) -> int:
        place, old = table.places[column](row), row[column]
        try:
            body = self.bodies.open(tx, place, old)
        except CodecError as problem:
            self.unread[place] = problem
            return 0
        is_theirs = table in OF_SAVERS
        user = saver_blobs(row["thread_id"]) if is_theirs else row.get("thread_id", "")
        if column in table.in_row:
            new = self.bodies.close_small(place, body)
        else:
            new = self.bodies.close(tx, user, place, body, self.store.clock.now())
        key = {name: row[name] for name in (*table.key, *(["thread_id"] if table.is_of_threads else []))}
        if tx.run(f"reseal_{table.name}_{column}", {**key, "old": old, "new": new}) != 1:
            raise _Changed
        if (table, column) == (WAITS, "needs"):
            rewrite_keys_of_wait(self.bodies, tx, row["thread_id"], row["wait_id"], new)
        elif table is DELIVERIES:
            rewrite_keys_of_delivery(self.bodies, tx, row["delivery_id"])
        elif table is THREAD_NOTES:
            rewrite_labels(self.bodies, tx, row["thread_id"])
        if is_theirs and is_reference(old):
            self.savers.add(row["thread_id"])
        return 1

    def refuse_what_is_left(self) -> None:
        """Raise, if a body could not be opened: whoever throws the old key away now would lose it."""
        if not self.unread:
            return
        first = next(iter(self.unread.values()))
        left = "reseal() left what it could not open as it is"
        done = (
            f"All the rest is sealed with the current key ({self.count} written by this call). Do not throw an older "
            f"key away yet."
        )
        keys = Counter(problem.key_id for problem in self.unread.values() if isinstance(problem, UnknownKeyError))
        if not keys:
            count = _bodies(len(self.unread))
            raise CorruptDataError(f"{left}: {count}, which verify() names. {done} The first: {first}") from first
        of_keys = ", ".join(f"{_bodies(count)} of the key {key_id!r}" for key_id, count in sorted(keys.items()))
        raise UnknownKeyError(
            f"{left}: {of_keys}. {done} Give every key that is named here, Encryption({{{sorted(keys)[0]!r}: …, …}}, "
            f"current=…), and call it again. If a key is lost, so is what it sealed: verify() names the threads.",
            key_id=", ".join(sorted(keys)),
        ) from first

    # ── Blobs: what was written with another key is found under another address ───────────────────────────────────

    def let_go_of_blobs(self, thread_id: str) -> None:
        """Let go of the blobs that the rows of a thread spoke of before."""

        def let_go(tx: Transaction) -> None:
            found = unused_blobs(tx, self.bodies, thread_id)
            for owner, hash_ in sorted(found):
                # Whoever is about to use it again has touched it, and is waited for; then its row can be seen.
                tx.one("hold_blob", {"owner": owner, "hash": hash_})
            unused = sorted(unused_blobs(tx, self.bodies, thread_id) & found)
            for owner, hash_ in unused:
                tx.run("drop_blob_use", {"thread_id": thread_id, "owner": owner, "hash": hash_})
            collect_blobs(tx, unused)

        try:
            if self.store.database.read(lambda tx: unused_blobs(tx, self.bodies, thread_id)):
                self.store.database.write("reseal", let_go)
        except CodecError as problem:
            # A row that cannot be read may speak of any of them: all stay.
            self._tell_kept(thread_id, problem)

    def let_go_of_the_rest(self) -> None:
        """Let go of the blobs of LangGraph's threads, and of those that nobody uses."""
        for thread_id in sorted(self.savers):
            try:
                self.store.database.write("reseal", lambda tx, name=thread_id: self._note_uses(tx, name))  # type: ignore[misc]
            except CodecError as problem:
                self._tell_kept(thread_id, problem)
        self.store.database.write("reseal", lambda tx: collect_blobs(tx, tx.all("unused_blobs", {"most": NO_LIMIT})))

    def _tell_kept(self, thread_id: str, problem: CodecError) -> None:
        if not self.unread:  # else that is raised at the end, and tells more
            logger.warning("reseal() keeps all large values of thread %r: %s", thread_id, problem)

    def _note_uses(self, tx: Transaction, thread_id: str) -> None:
        """Say again which blobs a thread of LangGraph's uses, while nobody writes to it."""
        tx.one("saver_hold_thread", {"thread_id": thread_id})
        user = {"thread_id": saver_blobs(thread_id)}
        before = tx.all("list_blob_uses", user)
        tx.run("delete_blob_uses", user)
        for place, stored in _large_of_saver(tx, thread_id):
            reference = open_reference(self.bodies.seal, place, stored)
            tx.run("use_blob", {**user, "owner": reference[32:].decode(), "hash": reference[:32]})
        collect_blobs(tx, before)


def _bodies(count: int) -> str:
    return "1 body" if count == 1 else f"{count} bodies"


def _large_of_saver(tx: Transaction, thread_id: str) -> Iterator[tuple[str, bytes]]:
    """Give the places of a thread of LangGraph's whose bodies are blobs, and what is there."""
    large = {"thread_id": thread_id, "reference": REFERENCE}
    for *key, metadata, body in tx.all("saver_thread_checkpoints", {"thread_id": thread_id}):
        for place, stored in ((saver_metadata_place(key), metadata), (saver_checkpoint_place(key), body)):
            if is_reference(stored):
                yield place, stored
    for *key, body in tx.all("saver_large_values", large):
        yield saver_value_place([thread_id, *key]), body
    for *key, body in tx.all("saver_large_writes", large):
        yield saver_write_place([thread_id, *key]), body
