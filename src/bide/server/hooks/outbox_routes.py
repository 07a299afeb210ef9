"""What was told to receivers outside, what was not heard, and how they know that it is ours. For administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from bide.clock import iso
from bide.server.caller import ADMIN
from bide.server.context import Context, Server, Who
from bide.server.door import need
from bide.server.hooks.receivers import OF_RUNS, Endpoint, receivers_of
from bide.server.hooks.signing import Signing
from bide.server.problems import Problem, not_found
from bide.store.outbox import MessageStatus, OutboxRow, bookmark, list_messages, read_message, retry_dead

router = APIRouter(tags=["webhooks"])


class MessageShown(BaseModel):
    """A message to a receiver outside."""

    id: str
    """The `webhook-id` that it is sent with, each time."""
    kind: str
    url: str
    thread_id: str | None
    status: MessageStatus
    attempts: int
    created_at: str
    next_at: str | None
    """When it is tried again."""
    sent_at: str | None
    error: str | None
    payload: str


class ReceiverShown(BaseModel):
    """Somebody who is told."""

    url: str | None
    """None: whoever is named as `webhook` when a run is started."""
    events: list[str]
    secret: str
    """What its receiver checks signatures with; several, with blanks between them, while one is replaced."""
    cursor: str
    """Up to where it was told."""


@router.get("/outbox", summary="List messages to receivers outside")
def messages(
    server: Server,
    caller: Who,
    status: MessageStatus = "dead",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(max_length=64, description="The id of the last one that was seen.")] = None,
) -> list[MessageShown]:
    """List messages of the caller's threads, newest first: those that were given up, unless another status is named."""
    need(caller, ADMIN)
    last = None if after is None else _owned(server, caller.owner, after)
    return [_shown(row) for row in list_messages(server.app.store, status, caller.owner, after=last, most=limit)]


@router.get("/outbox/{message_id}", summary="Get a message to a receiver outside")
def message(server: Server, caller: Who, message_id: Annotated[str, Path(max_length=64)]) -> MessageShown:
    """Show a message, and what came of it."""
    need(caller, ADMIN)
    return _shown(_owned(server, caller.owner, message_id))


@router.post("/outbox/{message_id}/retry", summary="Send a message again that was not heard")
def retry(server: Server, caller: Who, message_id: Annotated[str, Path(max_length=64)]) -> MessageShown:
    """Send a message again, at once, that was given up or is to be tried later."""
    need(caller, ADMIN)
    _owned(server, caller.owner, message_id)
    if not retry_dead(server.app.store, message_id):
        raise Problem(409, f"Message {message_id!r} was heard; it is not sent again.")
    return _shown(_owned(server, caller.owner, message_id))


@router.get("/webhooks", summary="List the receivers outside, with their secrets")
def webhooks(server: Server, caller: Who) -> list[ReceiverShown]:
    """List who is told of the caller's threads alone, with the secrets to check signatures with. Who is told of
    everybody's is shown to the owner of the server."""
    need(caller, ADMIN)
    receivers = receivers_of(server.app, server.settings)
    endpoints = {one.name: one.webhook for one in receivers if isinstance(one, Endpoint)}
    signing = Signing(server.app.store, endpoints)
    return [
        ReceiverShown(
            url=endpoints[one.name].url if one.name in endpoints else None,
            events=list(endpoints[one.name].events) if one.name in endpoints else ["run.finished"],
            secret=signing.shown_for(one.name, caller.owner),
            cursor=bookmark(server.app.store, one.name),
        )
        for one in receivers
        if one.name == OF_RUNS or (one.owner or "") == caller.owner
    ]


def _owned(server: Context, owner: str, message_id: str) -> OutboxRow:
    row = read_message(server.app.store, message_id)
    if row is None or row.owner != owner:
        raise not_found("message", message_id)
    return row


def _shown(row: OutboxRow) -> MessageShown:
    return MessageShown(
        id=row.message_id,
        kind=row.kind,
        url=row.url,
        thread_id=row.thread_id,
        status=row.status,
        attempts=row.attempts,
        created_at=iso(row.created_at),
        next_at=iso(row.next_at) if row.status == "open" else None,
        sent_at=None if row.sent_at is None else iso(row.sent_at),
        error=row.error,
        payload=row.payload,
    )
