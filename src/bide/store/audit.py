"""The audit log: who has decided, changed or tried what, and what came of it. It is only ever added to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bide.clock import Instant, uuid7
from bide.store.needed import PLAIN
from bide.store.places import audit_place
from bide.store.reads import noticing_damage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bide.store.bodies import Bodies
    from bide.store.database import Row, Transaction
    from bide.store.store import Store

_LAST = "g"
"""Behind every id, which are hexadecimal."""


class AuditEntry(NamedTuple):
    """One line: on behalf of `owner`, `actor` did `action` to `subject`, and `outcome` says what came of it."""

    entry_id: str
    owner: str
    actor: str
    action: str
    subject: str
    thread_id: str | None
    at: Instant
    outcome: str
    details: Mapping[str, Any]


class Auditing:
    """The part of a `Store` that keeps the audit log."""

    @property
    def _audited(self) -> Store:
        return cast("Store", self)

    def audit_add(
        self,
        owner: str,
        actor: str,
        action: str,
        subject: str,
        *,
        outcome: str,
        thread_id: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        """Add a line; when this returns, it is durable."""
        store = self._audited
        at = store.clock.now()
        entry = AuditEntry(uuid7(at), owner, actor, action, subject, thread_id, at, outcome, dict(details or {}))
        row = entry._asdict()
        said = PLAIN.encode({"outcome": row.pop("outcome"), "details": row.pop("details")}, "audit")
        row["body"] = store.bodies.close_small(audit_place(row), said)
        store.database.write("audit", lambda tx: tx.run("add_audit_entry", row))
        return entry

    def audit_entries(
        self,
        owner: str,
        *,
        subject: str | None = None,
        thread_id: str | None = None,
        before: str | None = None,
        most: int = 100,
    ) -> Sequence[AuditEntry]:
        """List an owner's lines, newest first: all, or those about a subject or a thread.

        `before` is the id of the last one that was seen.
        """
        store = self._audited
        params: dict[str, Any] = {"owner": owner, "before": before or _LAST, "most": most}
        query = "list_audit"
        if subject is not None:
            query, params["subject"] = "list_audit_of_subject", subject
        elif thread_id is not None:
            query, params["thread_id"] = "list_audit_of_thread", thread_id

        def read(tx: Transaction) -> list[AuditEntry]:
            found = [_opened(store.bodies, tx, row) for row in tx.all(query, params)]
            return [entry for entry in found if thread_id is None or entry.thread_id == thread_id]

        return store.database.read(read)


def _opened(bodies: Bodies, tx: Transaction, row: Row) -> AuditEntry:
    entry_id, owner, actor, action, subject, thread_id, at, body = row
    place = audit_place(dict(zip(AuditEntry._fields, row, strict=False)))
    opened = bodies.open(tx, place, body)
    with noticing_damage(place):
        said = cast("dict[str, Any]", PLAIN.decode(opened, "audit"))
        came, details = said["outcome"], said["details"]
    return AuditEntry(entry_id, owner, actor, action, subject, thread_id, at, came, details)
