"""Facts from outside: what came in, whom it woke, and what another one would do."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from bide.clock import uuid7
from bide.errors import BideError
from bide.runtime import Bide
from bide.runtime.explaining import Explanation, explain_fact
from bide.runtime.reading import delivery_of
from bide.server.caller import READ
from bide.server.context import Server, Who
from bide.server.door import need
from bide.server.pages.fields import FieldProblem, Typed, read_json
from bide.server.pages.look import page
from bide.server.pages.page_routes import Form, pages_router
from bide.server.problems import not_found
from bide.waits.facts import Fact, check_fact

router = pages_router()

PAGE = 50
KINDS = ("event", "webhook", "email")
_EMPTY = {"kind": "email", "name": "", "payload": ""}
_NEWEST = "~"

Text = Annotated[str, Query(max_length=300)]


@router.get("/inbox/deliveries")
def deliveries(request: Request, server: Server, who: Who, only: Text = "", before: Text = "") -> Response:
    """List facts, newest first."""
    need(who, READ)
    return _page(request, server, who, listed=(only == "unmatched", before or _NEWEST))


@router.get("/inbox/deliveries/{delivery_id}")
def delivery(request: Request, server: Server, who: Who, delivery_id: str) -> Response:
    """Show one fact, and why it did or did not wake somebody."""
    need(who, READ)
    row = server.app.store.delivery(delivery_id)
    if row is None or row[0].owner != who.owner:
        raise not_found("delivery", delivery_id)
    return page(request, "delivery.html", fact=delivery_of(*row), explained=server.app.explain(delivery_id))


@router.post("/inbox/deliveries/try")
def try_out(request: Request, server: Server, who: Who, typed: Form) -> Response:
    """Say whom a fact would wake, and why not the others. Nothing is stored, and nobody is woken."""
    need(who, READ)
    try:
        name, kind = typed.get("name", "").strip(), typed.get("kind", "")
        text = typed.get("payload", "").strip()
        payload = read_json(text) if text else None
        if not name:
            raise FieldProblem("give the fact a name: of a mail, that of its mailbox")
        if kind not in KINDS:
            raise FieldProblem(f"a fact is one of {', '.join(KINDS)}")
        explained = _tried(server.app, who.owner, Fact(kind, name, payload, "", "", 0))
    except (FieldProblem, BideError) as problem:
        return _page(request, server, who, status=422, typed=typed, problem=str(problem))
    return _page(request, server, who, typed=typed, explained=explained)


def _tried(app: Bide, owner: str, fact: Fact) -> Explanation:
    """Explain a fact that has not come. Unlike `app.explain`, this takes no name for the id of something that is there,
    and perhaps another's."""
    now = app.store.clock.now()
    given = fact._replace(source=f"{fact.kind}:{fact.name}", external_id=uuid7(now), received_at=now)
    return explain_fact(app.store, check_fact(given), None, owner)


def _page(
    request: Request,
    server: Server,
    who: Who,
    *,
    status: int = 200,
    listed: tuple[bool, str] = (False, _NEWEST),
    typed: Typed | None = None,
    problem: str = "",
    explained: Explanation | None = None,
) -> Response:
    is_unmatched, before = listed
    found = server.app.deliveries(unmatched=is_unmatched, owner=who.owner, most=PAGE + 1, before=before)
    return page(
        request,
        "deliveries.html",
        status=status,
        facts=found[:PAGE],
        more=found[PAGE - 1].id if len(found) > PAGE else "",
        is_unmatched=is_unmatched,
        kinds=KINDS,
        typed={**_EMPTY, **(typed or {})},
        problem=problem,
        explained=explained,
        live="/inbox/live",
    )
