"""Schedules: what starts by the clock, and when it is due next."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import Request, Response

from bide.runtime import Bide
from bide.server.auth.audit import audit
from bide.server.caller import READ, RUN
from bide.server.context import Server, Who
from bide.server.door import need
from bide.server.pages.look import page
from bide.server.pages.page_routes import Form, back_to, pages_router
from bide.server.pages.saying import address, flash_of
from bide.server.problems import not_found

router = pages_router()


@router.get("/inbox/schedules")
def schedules(request: Request, server: Server, who: Who) -> Response:
    """List schedules."""
    need(who, READ)
    found = server.app.schedules(owner=who.owner, most=200)
    flash = flash_of(server.app, who, request.query_params.get("said"))
    return page(request, "schedules.html", schedules=found, flash=flash)


@router.post("/inbox/schedules/{what}")
def change(server: Server, who: Who, what: str, typed: Form) -> Response:
    """Pause a schedule, let it go on, or delete it."""
    need(who, RUN)
    name, does = typed.get("name", ""), _CHANGES.get(what)
    if does is None:
        raise not_found("page", what)
    is_done = does(server.app, name, who.owner)
    audit(server, who, f"schedule.{what}", name, None, "accepted" if is_done else "late", via="inbox")
    return back_to(address("/inbox/schedules", "scheduled" if is_done else "over"))


_CHANGES: Mapping[str, Callable[[Bide, str, str], bool]] = {
    "pause": lambda app, name, owner: bool(app.pause_schedule(name, owner=owner)),
    "resume": lambda app, name, owner: bool(app.resume_schedule(name, owner=owner)),
    "delete": lambda app, name, owner: app.unschedule(name, owner=owner),
}
