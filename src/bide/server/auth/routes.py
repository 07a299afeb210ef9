"""Keys and the audit log over HTTP: for admins, each for their own owner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from bide.clock import Instant, iso
from bide.server.auth.audit import audit
from bide.server.auth.keys import DEFAULT_SCOPES, LONGEST_NAME, create_key, list_keys, revoke_key
from bide.server.context import Server, Who
from bide.server.problems import Problem, not_found
from bide.shape.shown import jsonable
from bide.store.api_keys import ApiKeyRow
from bide.store.audit import AuditEntry

router = APIRouter(tags=["keys"])

DAY = 86_400
Most = Annotated[int, Query(alias="limit", ge=1, le=1000)]


class NewKey(BaseModel):
    """A key that is asked for. Whose it is, is not: it is the caller's owner's."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]+$")
    scopes: list[str] = Field(default=list(DEFAULT_SCOPES), min_length=1, max_length=4)
    expires_in: int | None = Field(default=None, ge=1, le=3650 * DAY, description="Seconds; None for a key that stays.")


class KeyView(BaseModel):
    """A key as it stands."""

    key_id: str
    name: str
    owner: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


class MadeKey(KeyView):
    """A new key, with what is shown only this once."""

    key: str


class AuditView(BaseModel):
    """A line of the audit log."""

    entry_id: str
    at: str
    actor: str
    action: str
    subject: str
    thread_id: str | None
    outcome: str
    details: dict[str, Any]


@router.post("/keys", summary="Make an API key", status_code=201)
def make_key(new: NewKey, ctx: Server, who: Who) -> MadeKey:
    """Make a key for the caller's owner; its text is in this response and nowhere else."""
    store = ctx.app.store
    expires = None if new.expires_in is None else store.clock.now() + new.expires_in * 1000
    key, row = create_key(store, new.name, who.owner, new.scopes, expires)
    audit(ctx, who, "key.create", row.key_id, None, "accepted", key_name=row.name, scopes=list(row.scopes))
    return MadeKey(**_shown(row).model_dump(), key=key)


@router.get("/keys", summary="List API keys")
def keys(ctx: Server, who: Who, after: str = "", most: Most = 100) -> list[KeyView]:
    """List the keys of the caller's owner, also those that were revoked."""
    return [_shown(row) for row in list_keys(ctx.app.store, who.owner, after=after, most=most)]


@router.delete("/keys/{key_id}", summary="Revoke an API key", status_code=204, response_class=Response)
def revoke(key_id: str, ctx: Server, who: Who) -> Response:
    """Let a key open nothing any more. Said again, it changes nothing."""
    store = ctx.app.store
    row = store.api_key(key_id)
    if row is None or row.owner != who.owner:
        raise not_found("key", key_id)
    if revoke_key(store, key_id):
        audit(ctx, who, "key.revoke", key_id, None, "accepted", key_name=row.name)
    return Response(status_code=204)


@router.get("/audit", summary="Who has decided what")
def audit_log(
    ctx: Server,
    who: Who,
    subject: str | None = None,
    thread_id: str | None = None,
    before: Annotated[str | None, Query(max_length=64)] = None,
    most: Most = 100,
) -> list[AuditView]:
    """List the lines of the caller's owner, newest first; `before` is the `entry_id` of the last one seen."""
    if subject is not None and thread_id is not None:
        raise Problem(422, "Ask for the lines of a subject or of a thread, not of both.")
    found = ctx.app.store.audit_entries(who.owner, subject=subject, thread_id=thread_id, before=before, most=most)
    return [_line(entry) for entry in found]


def _shown(row: ApiKeyRow) -> KeyView:
    return KeyView(
        key_id=row.key_id,
        name=row.name,
        owner=row.owner,
        scopes=list(row.scopes),
        created_at=iso(row.created_at),
        expires_at=_moment(row.expires_at),
        revoked_at=_moment(row.revoked_at),
        used_at=_moment(row.used_at),
    )


def _line(entry: AuditEntry) -> AuditView:
    said = {name: value for name, value in entry._asdict().items() if name not in ("owner", "at")}
    # It may hold what a stranger has typed, and must be shown all the same.
    return AuditView(at=iso(entry.at), **jsonable(said))


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
