"""How a store is doing: a few counts for whoever looks every few seconds, each found by an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bide.clock import Instant
from bide.store.database import Transaction
from bide.store.workers import is_gone

if TYPE_CHECKING:
    from bide.store.store import Store


@dataclass(frozen=True)
class Pulse:
    """What was counted, in one snapshot."""

    at: Instant
    runs: Mapping[str, int]
    """By status: all that live, those that are queued, and those that failed."""
    claimable: int
    """Runs that a worker could claim by now."""
    claimable_since: Instant | None
    """Since when the first of them could be."""
    open_waits: int
    oldest_open_wait: Instant | None
    next_due: Instant | None
    """When the clock brings something next; in the past if that is late."""
    pending_deliveries: int
    outbox_open: int
    outbox_oldest: Instant | None
    outbox_dead: int
    workers_alive: int


def read_pulse(store: Store) -> Pulse:
    """Count. The work grows with what is open, and not with what is over."""
    now = store.clock.now()
    next_due = store.next_due()
    return store.database.read(lambda tx: _counted(tx, now, next_due))


def _counted(tx: Transaction, now: Instant, next_due: Instant | None) -> Pulse:
    counts = ("count_live_runs", "count_running", "count_queued", "count_pending_deliveries")
    asked = [tx.ask(query, {}) for query in counts]
    ready = [tx.ask(query, {"now": now}) for query in ("count_ready", "count_ready_limited")]
    rest = [tx.ask(query, {}) for query in ("count_stuck", "count_open_waits", "count_outbox", "list_workers")]
    live, running, queued, pending = (int(answer()[0][0]) for answer in asked)
    lanes = [answer()[0] for answer in ready]
    stuck, ((waits, oldest_wait),), ((waiting_out, oldest_out, dead_out),), workers = (answer() for answer in rest)
    runs = {"blocked": 0, "dead": 0, "failed": 0} | {str(status): int(count) for status, count in stuck}
    runs |= {"queued": queued, "running": running, "ready": sum(int(lane[0]) for lane in lanes)}
    # Nothing finds those that wait by themselves; they are the rest of what lives.
    runs["waiting"] = max(0, live - sum(runs[status] for status in ("running", "ready", "blocked", "dead")))
    since = min((lane[2] for lane in lanes if lane[2] is not None), default=None)
    return Pulse(
        at=now,
        runs=runs,
        claimable=sum(int(lane[1]) for lane in lanes),
        claimable_since=since if since is not None and since <= now else None,
        open_waits=int(waits),
        oldest_open_wait=oldest_wait,
        next_due=next_due,
        pending_deliveries=pending,
        outbox_open=int(waiting_out),
        outbox_oldest=oldest_out,
        outbox_dead=int(dead_out),
        workers_alive=sum(not is_gone(host, pid, began, until, now) for _, host, pid, began, until in workers),
    )
