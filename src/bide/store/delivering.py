"""Deliveries: a fact is stored, once; then it is matched with whoever waits for it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from bide.errors import CodecError
from bide.store.correlating import known_keys, owned
from bide.store.database import Row, Transaction
from bide.store.ending import AlreadyStored, store_fact
from bide.store.facts import fact_of, read_delivery_row, read_wait_row
from bide.store.locks import hold_keys
from bide.store.needed import PLAIN, open_needs
from bide.store.queue_rows import Delivered, DeliveryRow, WaitView
from bide.store.settling import Held, Settling
from bide.store.writes import Writing
from bide.types import WaitStatus
from bide.waits.addresses import only_address_of
from bide.waits.facts import Fact
from bide.waits.leaves import Leaf, correlations_of, leaves
from bide.waits.matching import match
from bide.waits.wake import Wake

if TYPE_CHECKING:
    from bide.store.store import Store

logger = logging.getLogger("bide.store")

PAGE = 500
"""How many who wait are looked at in one transaction."""


PARTS = 4
"""A fact may be so many times smaller than the largest value: several may have to fit into one answer."""


class Candidate(NamedTuple):
    """A leaf that waits for facts under a key."""

    wait_id: str
    number: int
    is_exclusive: bool
    created_at: int
    thread_id: str
    is_open: bool
    needs: bytes | None

    @property
    def place(self) -> tuple[int, str, int]:
        """Where it stands among those who wait for the same."""
        return self.created_at, self.wait_id, self.number


class Delivering:
    """The part of a `Store` that takes facts in."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    def deliver(self, fact: Fact, owner: str | None = None) -> Delivered:
        """Store a fact and wake whoever waits for it. One that came before changes nothing, and is told as it was."""
        store = self._store
        # It becomes a part of answers, which must not be too large either.
        store.bodies.check_size("deliveries", len(PLAIN.encode(fact.payload, "delivery")) * PARTS)
        digest = PLAIN.digest(fact.payload)
        whose = store.bodies.owner if owner is None else owner
        key = {"owner": whose, "source": fact.source, "external_id": fact.external_id}

        def take(tx: Transaction) -> tuple[str, bool, int]:
            known = tx.one("find_delivery", key)
            if known is not None:
                before = read_delivery_row(known)
                return before.delivery_id, False, before.wakes
            return store_fact(Writing(tx, store.bodies, store.clock.now()), fact, whose, digest), True, 0

        try:
            delivery_id, is_new, wakes = store.database.write("deliver", take)
        except AlreadyStored:
            delivery_id, is_new, wakes = store.database.write("deliver", take)
        threads = self.match_delivery(delivery_id) if is_new else ()
        return Delivered(delivery_id, is_new, wakes + len(threads), threads)

    def match_delivery(self, delivery_id: str) -> tuple[str, ...]:
        """Wake whoever waits for a fact that is stored, some at a time; return the threads."""
        store, woken = self._store, dict[str, None]()
        after: dict[str, tuple[int, str, int]] = {}

        def look(tx: Transaction) -> tuple[bool, _Matching | None]:
            row = tx.one("read_delivery", {"delivery_id": delivery_id})
            if row is None or not read_delivery_row(row).is_pending:
                return True, None
            matching = _Matching(Settling(Writing(tx, store.bodies, store.clock.now())), read_delivery_row(row))
            is_over = matching.page(after)
            matching.finish(is_over)
            return is_over, matching

        is_over = False
        while not is_over:
            is_over, matching = store.database.write("match", look)
            # Only now: a database may take a transaction back and do it again, and then nobody may be passed over.
            if matching is not None:
                after.update(matching.seen)
                woken.update(matching.settling.touched)
        if woken:
            store.ring()
        return tuple(woken)

    def match_pending(self, most: int = 100) -> int:
        """Go on with facts whose matching was broken off; return how many there were."""
        rows = self._store.database.read(lambda tx: tx.all("list_pending_deliveries", {"most": most}))
        for row in rows:
            try:
                self.match_delivery(row[0])
            except CodecError:
                # It stays where it is, to be looked at; but it must not stand in the way of the others.
                logger.exception("Delivery %s cannot be matched.", row[0])
                self._store.database.write("match", partial(_give_up, row[0]))
        return len(rows)

    def deliveries(
        self, *, before: str = "~", most: int = 100, unmatched: bool = False, owner: str | None = None
    ) -> list[tuple[DeliveryRow, Fact]]:
        """List facts, newest first; those of one owner, or everybody's."""
        store = self._store

        def read(tx: Transaction) -> list[tuple[DeliveryRow, Fact]]:
            params: dict[str, object] = {"before": before, "most": most, "only_unmatched": int(unmatched)}
            name = "list_deliveries"
            if owner is not None:
                name, params["owner"] = "list_deliveries_of_owner", owner
            rows = map(read_delivery_row, tx.all(name, params))
            return [(row, fact_of(store.bodies, tx, row)) for row in rows]

        return store.database.read(read)

    def delivery(self, delivery_id: str) -> tuple[DeliveryRow, Fact] | None:
        """Read a fact."""
        store = self._store

        def read(tx: Transaction) -> tuple[DeliveryRow, Fact] | None:
            row = tx.one("read_delivery", {"delivery_id": delivery_id})
            return None if row is None else (read_delivery_row(row), fact_of(store.bodies, tx, read_delivery_row(row)))

        return store.database.read(read)

    # ── For those who ask why ──────────────────────────────────────────────────────────────────────────────────────

    def waiting_for(self, fact: Fact, most: int, owner: str | None = None) -> list[tuple[WaitView, Leaf]]:
        """List the open leaves that wait for facts under the keys of this one, longest first; if there are none, those
        that wait for facts of its kind at all."""
        store = self._store

        def read(tx: Transaction) -> list[tuple[WaitView, Leaf]]:
            whose = store.bodies.owner if owner is None else owner
            keys = [known for key in correlations_of(fact) for known in known_keys(store.bodies, whose, key)]
            rows = [
                row for key in keys for row in tx.all("list_candidates", {**_from(key, (-1, "", -1)), "most": most})
            ]
            if not rows:
                rows = list(tx.all("list_waiting_kind", {"kind": fact.kind, "owner": whose, "most": most}))
            found: list[tuple[WaitView, Leaf]] = []
            for candidate in sorted(map(_candidate, rows), key=lambda one: one.place)[:most]:
                row = tx.one("find_wait", {"wait_id": candidate.wait_id}) if candidate.is_open else None
                if row is not None:
                    view = read_wait_row(store.bodies, tx, row)
                    assert view.needs.condition is not None, "a leaf belongs to a condition"
                    found.append((view, leaves(view.needs.condition, view.created_at)[candidate.number]))
            return found

        return store.database.read(read)

    def woken_by(self, delivery_id: str) -> list[tuple[str, int, str]]:
        """List what a fact satisfied: wait, leaf, thread."""
        rows = self._store.database.read(lambda tx: tx.all("list_woken", {"delivery_id": delivery_id}))
        return [(row[0], row[1], row[2]) for row in rows]

    def facts_under(self, owner: str, key: str, most: int) -> list[tuple[str, Fact]]:
        """List the newest facts under a correlation key of an owner."""
        store = self._store

        def read(tx: Transaction) -> list[tuple[str, Fact]]:
            pages = [
                tx.all("facts_under", {"correlation": known, "most": most})
                for known in known_keys(store.bodies, owner, key)
            ]
            rows = sorted((read_delivery_row(row) for page in pages for row in page), key=_came, reverse=True)[:most]
            return [(row.delivery_id, fact_of(store.bodies, tx, row)) for row in rows]

        return store.database.read(read)


def _give_up(delivery_id: str, tx: Transaction) -> int:
    return tx.run("finish_delivery", {"delivery_id": delivery_id})


class _Matching:
    """One transaction that brings a fact to some of those who wait for it."""

    def __init__(self, settling: Settling, row: DeliveryRow) -> None:
        self.settling = settling
        self.tx = settling.tx
        self.bodies = settling.writing.bodies
        self.row = row
        self.fact = fact_of(self.bodies, self.tx, row)
        self.seen: dict[str, tuple[int, str, int]] = {}

    def page(self, after: dict[str, tuple[int, str, int]]) -> bool:
        """Look at the next of those who wait; return whether these were the last."""
        owner, correlations = self.row.owner, correlations_of(self.fact)
        keys = [owned(owner, key) for key in correlations]
        hold_keys(self.tx, keys)
        known = [one for key in correlations for one in known_keys(self.bodies, owner, key)]
        # It was read before the keys were held: meanwhile somebody who looked back may have taken it.
        now_held = self.tx.ask("read_delivery", {"delivery_id": self.row.delivery_id})
        asked = [(key, self.tx.ask("list_candidates", _from(key, after.get(key, (-1, "", -1))))) for key in known]
        if not now_held() or not read_delivery_row(now_held()[0]).is_pending:
            return True
        self.row = read_delivery_row(now_held()[0])
        is_over, found = True, list[Candidate]()
        for key, answer in asked:
            rows = answer()
            is_over = is_over and len(rows) < PAGE
            found += map(_candidate, rows)
            if rows:
                self.seen[key] = found[-1].place
        found.sort(key=lambda candidate: candidate.place)
        fitting = [candidate for candidate in found if self._fits(candidate)]
        held = self.settling.hold((candidate.wait_id, candidate.thread_id) for candidate in fitting)
        served: set[str] = set()
        for candidate in fitting:
            wait = held.get(candidate.wait_id)
            if wait is not None and self._can_have(wait, candidate, served):
                held[candidate.wait_id] = self._bring(wait, candidate)
                served.add(candidate.wait_id)
        return is_over

    def _fits(self, candidate: Candidate) -> bool:
        if not candidate.is_open:
            # Its wait was settled otherwise; nobody needs to find it again.
            self.tx.send("close_conditions", {"wait_id": candidate.wait_id})
            return False
        try:
            needs = open_needs(self.bodies, self.tx, candidate.wait_id, candidate.needs)
            assert needs.condition is not None, "a leaf belongs to a condition"
            leaf = leaves(needs.condition, 0)[candidate.number]
        except (CodecError, IndexError, AssertionError):
            logger.exception("Wait %s cannot be read; it is left as it is.", candidate.wait_id)
            return False
        return match(leaf.plain, self.fact).fits

    def _can_have(self, wait: Held, candidate: Candidate, served: set[str]) -> bool:
        """Whether the wait still needs it. One fact counts for one leaf of a wait, and for one exclusive wait."""
        if not wait.is_open or candidate.number not in wait.open or wait.wait_id in served:
            return False
        if any(wake.delivery == self.row.delivery_id for wake in wait.satisfied.values()):
            return False
        return not candidate.is_exclusive or self.row.taken_by in (None, wait.wait_id)

    def _bring(self, wait: Held, candidate: Candidate) -> Held:
        try:
            settled = self.settling.satisfy(wait, candidate.number, wake_of(self.row, self.fact))
        except CodecError:
            # Too large together with what is there already, say: that is between this fact and this wait.
            logger.exception("Delivery %s cannot be brought to wait %s.", self.row.delivery_id, wait.wait_id)
            return wait
        if settled.status is WaitStatus.EXPIRED:
            return settled
        if candidate.is_exclusive:
            self.tx.send("take_delivery", {"delivery_id": self.row.delivery_id, "wait_id": wait.wait_id})
            self.row = self.row._replace(taken_by=wait.wait_id)
        self.tx.send("count_wake", {"delivery_id": self.row.delivery_id})
        return settled

    def finish(self, is_over: bool) -> None:
        """Mark a fact that nobody else waits for."""
        if is_over:
            self.tx.send("finish_delivery", {"delivery_id": self.row.delivery_id})


def wake_of(row: DeliveryRow, fact: Fact) -> Wake:
    """Return a fact as what it wakes with."""
    by = only_address_of(fact.payload.get("from")) if fact.kind == "email" and isinstance(fact.payload, dict) else None
    return Wake(
        value=fact.payload,
        kind=fact.kind,
        by=by,
        at=fact.received_at,
        via=fact.source,
        delivery=row.delivery_id,
    )


def _came(row: DeliveryRow) -> tuple[int, str]:
    return row.received_at, row.delivery_id


def _from(key: str, after: tuple[int, str, int]) -> dict[str, object]:
    return {"correlation": key, "since": after[0], "after": after[1], "number": after[2], "most": PAGE}


def _candidate(row: Row) -> Candidate:
    wait_id, number, exclusive, created_at, thread_id, status, consumed, needs = row
    is_open = status == WaitStatus.OPEN.value and not consumed
    return Candidate(wait_id, number, bool(exclusive), created_at, thread_id, is_open, needs)
