"""What the server writes into the audit log: one line for every attempt to decide or change something."""

from __future__ import annotations

from typing import Any

from bide.server.caller import Caller
from bide.server.context import Context
from bide.store.audit import AuditEntry


def audit(
    ctx: Context,
    caller: Caller,
    action: str,
    subject: str,
    thread_id: str | None,
    outcome: str,
    **details: Any,
) -> AuditEntry:
    """Write down that a caller has tried something, and what came of it; when this returns, it is durable.

    `action` is as "wait.answer", `subject` the id of what it was done to, `outcome` as "accepted", "refused", "late" or
    "duplicate". `details` are plain values; secrets have no place among them.
    """
    if caller.display_name and caller.display_name != caller.identity:
        details = {"name": caller.display_name, **details}
    return ctx.app.store.audit_add(
        caller.owner, caller.identity, action, subject, outcome=outcome, thread_id=thread_id, details=details
    )
