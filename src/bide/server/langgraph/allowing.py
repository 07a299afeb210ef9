"""Whether a caller may do something with a thread, where the application has handlers for that."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from fastapi import Request

from bide.server.auth.authorize import Filter, authorize, check_visible
from bide.server.caller import Caller
from bide.server.context import Context, caller_of
from bide.store.notes import noted_thread


def allow(
    ctx: Context,
    request: Request | Caller,
    resource: str,
    action: str,
    value: MutableMapping[str, Any],
    thread_id: str | None = None,
) -> Filter | None:
    """Refuse what the application does not allow; a thread whose metadata does not match is not there."""
    filter_ = authorize(request, resource, action, value)
    if filter_ and thread_id is not None:
        caller = request if isinstance(request, Caller) else caller_of(request)
        thread = noted_thread(ctx.app.store, caller.owner, thread_id)
        if thread is not None:
            check_visible(filter_, thread.metadata, "thread", thread_id)
    return filter_
