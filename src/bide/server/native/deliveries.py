"""Facts from outside: bringing one, trying what one would do, and why one woke nobody."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from bide.runtime.reading import delivery_of
from bide.runtime.views import Delivery
from bide.server.auth.audit import audit
from bide.server.caller import READ, RESOLVE
from bide.server.context import Server, Who
from bide.server.door import need
from bide.server.native.described import ID, Asked, DeliveryId, Limit, Text, Told, refusals
from bide.server.native.wait_shapes import ExplanationShown, explanation_shown
from bide.server.problems import not_found
from bide.shape.shown import jsonable

router = APIRouter(tags=["deliveries"])


class Fact(Asked):
    """A fact: an event, a webhook's call, or a mail."""

    name: Text = Field(description="Of an event or a webhook, its name; of a mail, the mailbox.")
    payload: Any = None
    kind: Literal["event", "webhook", "email"] = "event"
    source: Text | None = Field(default=None, description="Where it comes from; by default its kind and name.")
    external_id: Text | None = Field(default=None, description="Its id there: the same again changes nothing.")


class DeliveryShown(Told):
    """A fact that is stored, and what came of it."""

    id: str
    kind: str
    name: str
    source: str
    external_id: str
    received_at: datetime
    payload: Any
    wakes: int
    status: Literal["matched", "unmatched", "pending"]


class Delivered(DeliveryShown):
    """What came of bringing a fact; of a trial, only `explanation`."""

    is_new: bool = Field(description="Whether it was not there before.")
    threads: list[str] = Field(description="Whom this very call woke.")


class Trial(Told):
    """What a fact would do; nothing was stored."""

    dry_run: Literal[True] = True
    explanation: ExplanationShown


class DeliveryExplained(DeliveryShown):
    """A fact, and why it woke whom."""

    explanation: ExplanationShown


class DeliveryPage(Told):
    """Some facts, newest first."""

    deliveries: list[DeliveryShown]
    after: str | None = Field(description="For the next page; null when this was the last.")


@router.post("/deliveries", responses=refusals(409, 413))
def deliver(
    server: Server,
    who: Who,
    body: Fact,
    dry_run: Annotated[bool, Query(description="Only say who would wake, and why the others would not.")] = False,
) -> Delivered | Trial:
    """Bring a fact. It is stored before this returns, and whoever waits for it goes on."""
    if dry_run:
        need(who, READ)
        explained = server.app.foresee(body.name, body.payload, kind=body.kind, source=body.source, owner=who.owner)
        return Trial(explanation=explanation_shown(explained))
    need(who, RESOLVE)
    found = server.app.deliver(
        body.name,
        body.payload,
        kind=body.kind,
        source=body.source,
        external_id=body.external_id,
        owner=who.owner,
    )
    outcome = "accepted" if found.is_new else "duplicate"
    audit(server, who, "delivery.bring", found.id, None, outcome, kind=found.kind, wakes=found.wakes)
    return Delivered(**_fields(found), is_new=found.is_new, threads=list(found.threads))


@router.get("/deliveries", responses=refusals())
def list_deliveries(
    server: Server,
    who: Who,
    *,
    unmatched: Annotated[bool, Query(description="Only those that woke nobody.")] = False,
    limit: Limit = 50,
    after: Annotated[str | None, Query(pattern=ID, description="The `after` of the page before.")] = None,
) -> DeliveryPage:
    """List facts, newest first."""
    need(who, READ)
    found = server.app.deliveries(unmatched=unmatched, owner=who.owner, most=limit + 1, before=after or "~")
    shown = [DeliveryShown(**_fields(one)) for one in found[:limit]]
    return DeliveryPage(deliveries=shown, after=shown[-1].id if len(found) > limit else None)


@router.get("/deliveries/{delivery_id}", responses=refusals(404))
def get_delivery(server: Server, who: Who, delivery_id: DeliveryId) -> DeliveryExplained:
    """Return a fact, whom it woke, and why the others did not."""
    need(who, READ)
    found = server.app.store.delivery(delivery_id)
    if found is None or found[0].owner != who.owner:
        raise not_found("delivery", delivery_id)
    explained = explanation_shown(server.app.explain(delivery_id))
    return DeliveryExplained(**_fields(delivery_of(*found)), explanation=explained)


def _fields(found: Delivery) -> dict[str, Any]:
    return {
        "id": found.id,
        "kind": found.kind,
        "name": found.name,
        "source": found.source,
        "external_id": found.external_id,
        "received_at": found.received_at,
        "payload": jsonable(found.payload),
        "wakes": found.wakes,
        "status": found.status,
    }
