"""What must be true when all parcels have arrived: the ledger against the store, and the store against itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from bide import Bide
from tests.faults.audit import differing
from tests.fleet.parcel import BOOKED, IDEMPOTENT, ONCE, TOLD
from tests.fleet.place import Place, Query

# What no row may look like when everything has come to rest, each with what it would mean.
IMPOSSIBLE = {
    "a run is not done": "SELECT thread_id, status FROM runs WHERE status <> 'done'",
    "a run is held": "SELECT thread_id FROM runs WHERE worker_id IS NOT NULL",
    "a thread has two runs": "SELECT thread_id FROM runs GROUP BY thread_id HAVING count(*) > 1",
    "a run still has its input": "SELECT thread_id FROM runs WHERE input IS NOT NULL",
    "a finished thread has a journal": "SELECT thread_id FROM journal",
    "a question is open": "SELECT thread_id FROM waits WHERE status = 'open' OR consumed = 0",
    "a question was settled in another way": "SELECT thread_id, status FROM waits WHERE status <> 'answered'",
    "a condition is open": "SELECT wait_id FROM conditions WHERE is_open = 1",
    "a fact was never matched": "SELECT delivery_id FROM deliveries WHERE is_pending = 1",
    "a fact woke nobody, or two": "SELECT external_id, wakes FROM deliveries WHERE wakes <> 1",
    "the log has a hole": "SELECT thread_id FROM events GROUP BY thread_id "
    "HAVING count(*) <> max(number) OR min(number) <> 1",
    "the log was miscounted": "SELECT thread_id FROM threads t "
    "WHERE events <> (SELECT count(*) FROM events e WHERE e.thread_id = t.thread_id)",
    "history has a hole": "SELECT thread_id FROM checkpoints GROUP BY thread_id, ns "
    "HAVING count(*) <> max(seq) OR min(seq) <> 1",
    "history has two branches": "SELECT thread_id FROM checkpoints WHERE coalesce(parent, 0) <> seq - 1",
    "an epoch went back": "SELECT thread_id FROM (SELECT thread_id, epoch, lag(epoch) OVER "
    "(PARTITION BY thread_id, ns, run_id ORDER BY seq) AS before FROM checkpoints) c WHERE epoch < before",
    "a run ended twice": "SELECT thread_id FROM events WHERE kind = 'run.done' GROUP BY thread_id HAVING count(*) > 1",
}


def check_nothing_lost_or_doubled(app: Bide, place: Place, parcels: Iterable[str]) -> None:
    """Compare ledger and store, for parcels that have all arrived."""
    wanted = set(parcels)
    assert wanted
    check_told(app, wanted)
    check_outside_effects(place, wanted)
    with place.looking() as query:
        check_bookings(query, wanted)
        check_rows(query, wanted)
    assert app.store.verify().is_sound, app.store.verify()


def check_told(app: Bide, parcels: set[str]) -> None:
    """Every parcel has the state that it has in a peaceful world."""
    wrong = {parcel: told for parcel in parcels if (told := app.get(parcel).values["told"]) != TOLD}
    assert not wrong, f"{len(wrong)} of {len(parcels)} parcels are not as in a peaceful world: {wrong}"


def check_outside_effects(place: Place, parcels: set[str]) -> None:
    """What may happen once has, and what may be repeated came with its old key."""
    effects = place.ledger.effects
    once = Counter((effect.order, effect.what) for effect in effects if effect.how == "once")
    wanted = [(parcel, what) for parcel in parcels for what in ONCE]
    assert once == dict.fromkeys(wanted, 1), f"done twice, or not at all: {differing(once, wanted)}"
    keys = {(effect.order, effect.what, effect.key) for effect in effects}
    every = len(parcels) * (len(ONCE) + len(IDEMPOTENT))
    assert len(keys) == len({key for _, _, key in keys}) == every, "an effect has two keys, or a key two effects"


def check_bookings(query: Query, parcels: set[str]) -> None:
    """What was booked in the store's own transaction is there exactly once."""
    booked: Counter[Any] = Counter(query("SELECT parcel, what FROM bookings"))
    wanted = [(parcel, what) for parcel in parcels for what in BOOKED]
    assert booked == dict.fromkeys(wanted, 1), f"booked twice, or lost: {differing(booked, wanted)}"


def check_rows(query: Query, parcels: set[str]) -> None:
    """The store contradicts itself nowhere."""
    found = {what: rows for what, wrong in IMPOSSIBLE.items() if (rows := query(wrong))}
    assert not found, found
    assert {name for (name,) in query("SELECT thread_id FROM threads")} == parcels


def digest(place: Place) -> str:
    """Return a name for all that happened outside."""
    lines = sorted(f"{effect.order} {effect.what} {effect.how}" for effect in place.ledger.effects)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]
