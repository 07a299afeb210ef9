"""The end of a run: who was behind it comes next, its parent is told, its children are seen to."""

from __future__ import annotations

from typing import Any

from bide.clock import uuid7
from bide.errors import ConflictError
from bide.store.correlating import written_key
from bide.store.facts import delivery_place
from bide.store.needed import PLAIN
from bide.store.rows import Report
from bide.store.writes import Writing
from bide.types import RunStatus
from bide.waits.facts import Fact
from bide.waits.leaves import correlations_of
from bide.waits.wake import ChildResult

ENDED = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.DEAD)
"""Where a run does not go on by itself, and its parent must hear of it."""


class AlreadyStored(ConflictError):
    """Somebody stored the same fact at the same moment, and was first."""


def end_run(writing: Writing, thread_id: str, status: RunStatus, *, is_replaced: bool = False) -> None:
    """Do what belongs to the end of a run, in its transaction: who was behind it comes next, its children follow."""
    tx, now = writing.tx, writing.now
    if status is not RunStatus.DEAD and not is_replaced:
        tx.send("promote_next", {"thread_id": thread_id, "now": now})
    if status in (RunStatus.DONE, RunStatus.CANCELLED):
        is_cancelled = int(status is RunStatus.CANCELLED)
        tx.send("close_children", {"thread_id": thread_id, "is_cancelled": is_cancelled})


def tell_parent(writing: Writing, thread_id: str, run_id: str, report: Report, owner: str) -> str:
    """Let the parent of a thread know how it ended, in the same transaction; return the delivery to match after it."""
    return store_fact(writing, _fact(writing, thread_id, run_id, report), owner)


def tell_whoever_waits(writing: Writing, thread_id: str, run_id: str, report: Report, owner: str) -> None:
    """Do the same for a thread that nobody has spawned, if somebody waits for it: the database knows."""
    fact = _fact(writing, thread_id, run_id, report)
    delivery_id, now = uuid7(writing.now), writing.now
    body = writing.bodies.close_small(delivery_place(delivery_id), PLAIN.encode(fact.payload, "delivery"))
    said = {"source": fact.source, "external_id": fact.external_id, "kind": fact.kind, "name": fact.name}
    key = {"delivery_id": delivery_id, "now": now}
    writing.tx.send("tell_waiters", {**key, **said, "thread_id": thread_id, "body": body})
    for correlation in correlations_of(fact):
        writing.tx.send("tell_waiters_under", {**key, "correlation": written_key(writing.bodies, owner, correlation)})


def _fact(writing: Writing, thread_id: str, run_id: str, report: Report) -> Fact:
    external_id = f"{run_id}:{report.status.value}:{writing.now}"
    return Fact("child", thread_id, result_of(thread_id, run_id, report), "bide", external_id, writing.now)


def result_of(thread_id: str, run_id: str, report: Report) -> ChildResult:
    """Return how a thread ended, as whoever waits for it sees it."""
    status: Any = report.status.value
    return ChildResult(status, report.summary, thread_id, run_id, report.checkpoint_id, report.error)


def end_thread(
    writing: Writing, thread_id: str, run_id: str, report: Report, *, is_replaced: bool = False
) -> list[str]:
    """Do all of it for a run that is ended from outside; return the deliveries to match after the commit."""
    end_run(writing, thread_id, report.status, is_replaced=is_replaced)
    row = writing.tx.one("read_parent", {"thread_id": thread_id})
    if is_replaced or row is None or row[0] is None:
        return []
    return [tell_parent(writing, thread_id, run_id, report, row[2])]


def store_fact(writing: Writing, fact: Fact, owner: str, digest: str = "") -> str:
    """Store a fact with the keys under which it can be waited for; it is matched after the commit."""
    tx, now = writing.tx, writing.now
    delivery_id = uuid7(now)
    body = writing.bodies.close_small(delivery_place(delivery_id), PLAIN.encode(fact.payload, "delivery"))
    key = {"delivery_id": delivery_id, "owner": owner, "source": fact.source, "external_id": fact.external_id}
    params: dict[str, Any] = {**key, "kind": fact.kind, "name": fact.name, "digest": digest, "now": now, "body": body}
    tx.expect("insert_delivery", params, lambda _: AlreadyStored(fact.external_id))
    for correlation in correlations_of(fact):
        tx.send(
            "insert_delivery_key",
            {"correlation": written_key(writing.bodies, owner, correlation), "now": now, "delivery_id": delivery_id},
        )
    return delivery_id
