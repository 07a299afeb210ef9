"""What a story has left behind, without whatever is different each time."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from tests.fleet.place import Place
from tests.fleet.stories import Graphs
from tests.fleet.telling import teller

# What no row may look like at rest, each with what it would mean.
IMPOSSIBLE = {
    "a run is not at rest": "SELECT thread_id, status FROM runs WHERE status IN ('ready', 'running', 'queued', 'dead')",
    "a run is held": "SELECT thread_id FROM runs WHERE worker_id IS NOT NULL",
    "a run that has ended has its input": "SELECT thread_id FROM runs WHERE input IS NOT NULL",
    "a thread that has ended has a journal": "SELECT j.thread_id FROM journal j WHERE NOT EXISTS "
    "(SELECT 1 FROM runs r WHERE r.thread_id = j.thread_id AND r.status IN ('waiting', 'cancelled'))",
    "a fact was never matched": "SELECT delivery_id FROM deliveries WHERE is_pending = 1",
    "the log has a hole": "SELECT thread_id FROM events GROUP BY thread_id "
    "HAVING count(*) <> max(number) OR min(number) <> 1",
    "history has a hole": "SELECT thread_id FROM checkpoints GROUP BY thread_id, ns "
    "HAVING count(*) <> max(seq) OR min(seq) <> 1",
    "a child is still to be closed": "SELECT thread_id FROM threads WHERE on_close = 'due'",
}
CHILD = re.compile(r"-[0-9a-f]{12}$")


class Picture(NamedTuple):
    """What is left of a story."""

    threads: list[Any]
    """Name, state, and how its runs stand."""
    waits: list[Any]
    facts: list[Any]
    schedules: list[Any]
    booked: list[Any]
    once: dict[Any, int]
    """What may happen once, and how often it did."""
    asked_for: list[Any]
    """What may be repeated, with how many keys."""


def picture_of(place: Place) -> Picture:
    """Look at what a story has left, and whether it contradicts itself."""
    told = teller(place, Graphs(place).all())
    with told.app, told.app.store, place.looking() as query:
        found = {what: rows for what, wrong in IMPOSSIBLE.items() if (rows := query(wrong))}
        assert not found, found
        assert told.app.store.verify().is_sound, told.app.store.verify()
        threads = [
            (CHILD.sub("", name), told.app.get(name).values, statuses(query, name))
            for (name,) in query("SELECT thread_id FROM threads")
        ]
        return Picture(
            sorted(threads, key=repr),
            sorted((CHILD.sub("", name), *rest) for name, *rest in query("SELECT thread_id, node, status FROM waits")),
            sorted((CHILD.sub("", name), *rest) for name, *rest in query("SELECT name, kind, wakes FROM deliveries")),
            query("SELECT schedule_id, next_at, last_at FROM schedules"),
            sorted(query("SELECT parcel, what FROM bookings")),
            dict(Counter((one.order, one.what) for one in place.ledger.effects if one.how == "once")),
            sorted({(one.order, one.what, one.how) for one in place.ledger.effects}),
        )


def statuses(query: Any, thread_id: str) -> list[str]:
    return sorted(status for (status,) in query("SELECT status FROM runs WHERE thread_id = ?", thread_id))
