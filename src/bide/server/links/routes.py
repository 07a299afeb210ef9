"""Links for callers with a key: make one, list those of a wait, withdraw one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from bide.clock import iso
from bide.server.auth.audit import audit
from bide.server.caller import READ, RESOLVE
from bide.server.context import Server, Who
from bide.server.door import need, owned_wait
from bide.server.links.making import DEFAULT, make_link
from bide.server.links.offers import ANY
from bide.server.problems import Problem, not_found
from bide.store.signed_links import LinkRow, find_link, links_of, revoke_link

router = APIRouter(tags=["links"])

Name = Annotated[str, Field(min_length=1, max_length=200)]


class NewLink(BaseModel):
    """What a link shall be good for."""

    model_config = ConfigDict(extra="forbid")

    actions: list[Name] = Field([ANY], min_length=1, max_length=50, description="What may be decided; '*' is all.")
    recipient: str = Field("", max_length=320, description="Who gets it, and will have decided.")
    expires: str | int = Field(DEFAULT, description="How long it is good for: '7d', '2h30m', or seconds.")
    leaf: str = Field("", max_length=1000, description="Which part of a wait that needs several decisions.")


class Link(BaseModel):
    """A link, without its address."""

    link_id: str
    wait_id: str
    actions: list[str]
    recipient: str
    leaf: str
    created_at: str
    expires_at: str
    used_at: str | None
    revoked_at: str | None
    is_open: bool
    """Whether it can still decide, as far as the link itself is concerned."""


class NewlyMadeLink(Link):
    """A link and its address, which is told this once."""

    url: str


_REFUSALS: dict[int | str, dict[str, Any]] = {
    403: {"description": "The key is not good for this."},
    404: {"description": "There is no such wait or link."},
}


@router.post(
    "/waits/{wait_id}/links",
    status_code=201,
    responses={**_REFUSALS, 409: {"description": "There is nothing left to decide."}},
)
def make(wait_id: str, asked: NewLink, request: Request, server: Server, caller: Who) -> NewlyMadeLink:
    """Make a link by which somebody without an account decides about a wait, once."""
    need(caller, RESOLVE)
    wait = owned_wait(server.app, caller, wait_id)
    made = make_link(
        server,
        wait_id,
        asked.actions,
        asked.recipient,
        asked.expires,
        leaf=asked.leaf,
        base=str(request.base_url),
    )
    said = {"link": made.link.link_id, "recipient": asked.recipient, "actions": list(made.link.actions)}
    audit(server, caller, "link.make", wait_id, wait.thread_id, "accepted", **said)
    return NewlyMadeLink(**_shown(made.link, server.app.store.clock.now()), url=made.url)


@router.get("/waits/{wait_id}/links", responses=_REFUSALS)
def list_links(wait_id: str, server: Server, caller: Who) -> list[Link]:
    """List the links of a wait, oldest first, without their addresses."""
    need(caller, READ)
    owned_wait(server.app, caller, wait_id)
    now = server.app.store.clock.now()
    return [Link(**_shown(row, now)) for row in links_of(server.app.store, wait_id)]


@router.delete(
    "/links/{link_id}",
    status_code=204,
    responses={**_REFUSALS, 409: {"description": "It was used before."}},
)
def revoke(link_id: str, server: Server, caller: Who) -> Response:
    """Withdraw a link: it decides nothing from now on."""
    need(caller, RESOLVE)
    store = server.app.store
    row = find_link(store, link_id)
    if row is None or row.owner != caller.owner:
        raise not_found("link", link_id)
    is_new = revoke_link(store, link_id)
    now_is = row if is_new else find_link(store, link_id)
    if not is_new and now_is is not None and now_is.used_at is not None:
        raise Problem(409, f"Link {link_id} was used {iso(now_is.used_at)}: what it has decided stands.")
    if is_new:
        audit(server, caller, "link.revoke", row.wait_id, None, "accepted", link=link_id, recipient=row.recipient)
    return Response(status_code=204)


def _shown(row: LinkRow, now: int) -> dict[str, Any]:
    times = {
        name: None if at is None else iso(at)
        for name, at in (
            ("created_at", row.created_at),
            ("expires_at", row.expires_at),
            ("used_at", row.used_at),
            ("revoked_at", row.revoked_at),
        )
    }
    is_open = row.used_at is None and row.revoked_at is None and now < row.expires_at
    said = {"link_id": row.link_id, "wait_id": row.wait_id, "actions": list(row.actions), "leaf": row.leaf}
    return {**said, "recipient": row.recipient, **times, "is_open": is_open}
