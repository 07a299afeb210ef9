"""The end of a run: who was behind it comes next, its parent is told, its children are seen to."""

from __future__ import annotations

from typing import Any

from bide.clock import uuid7
from bide.errors import ConflictError
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


def tell_parent(writing: Writing, thread_id: str, run_id: str, report: Report) -> str:
    """Let the parent of a thread know how it ended, in the same transaction; return the delivery to match after it."""
    status: Any = report.status.value
    result = ChildResult(status, report.summary, thread_id, run_id, report.checkpoint_id, report.error)
    external_id = f"{run_id}:{report.status.value}:{writing.now}"
    return store_fact(writing, Fact("child", thread_id, result, "bide", external_id, writing.now))


def end_thread(
    writing: Writing, thread_id: str, run_id: str, report: Report, *, is_replaced: bool = False
) -> list[str]:
    """Do all of it for a run that is ended from outside; return the deliveries to match after the commit."""
    end_run(writing, thread_id, report.status, is_replaced=is_replaced)
    row = writing.tx.one("read_parent", {"thread_id": thread_id})
    if row is None or row[0] is None:
        return []
    return [tell_parent(writing, thread_id, run_id, report)]


def store_fact(writing: Writing, fact: Fact, digest: str = "") -> str:
    """Store a fact with the keys under which it can be waited for; it is matched after the commit."""
    tx, now, owner = writing.tx, writing.now, writing.bodies.owner
    delivery_id = uuid7(now)
    body = writing.bodies.close_small(delivery_place(delivery_id), PLAIN.encode(fact.payload, "delivery"))
    key = {"delivery_id": delivery_id, "owner": owner, "source": fact.source, "external_id": fact.external_id}
    params: dict[str, Any] = {**key, "kind": fact.kind, "name": fact.name, "digest": digest, "now": now, "body": body}
    tx.expect("insert_delivery", params, lambda _: AlreadyStored(fact.external_id))
    for correlation in correlations_of(fact):
        tx.send(
            "insert_delivery_key", {"correlation": owned(owner, correlation), "now": now, "delivery_id": delivery_id}
        )
    return delivery_id


def owned(owner: str, key: str) -> str:
    """Return a correlation key as an owner's own: nobody's facts wake another's threads."""
    return f"{owner}\n{key}" if owner else key
