"""Threads: all of them, and one with everything that is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query, Request, Response
from markupsafe import Markup

from bide.errors import BideError
from bide.runtime import Bide
from bide.runtime.reading import wait_of
from bide.runtime.views import Thread, Wait
from bide.server.auth.audit import audit
from bide.server.caller import READ, RUN, Caller
from bide.server.context import Server, Who
from bide.server.door import need, owned_thread
from bide.server.pages.assets import without_style
from bide.server.pages.bars import bars_of
from bide.server.pages.cards import card_of, whole
from bide.server.pages.look import now_of, page
from bide.server.pages.page_routes import Form, back_to, pages_router
from bide.server.pages.places import live_place, thread_place
from bide.server.pages.saying import BAD, Flash, address, flash_of
from bide.server.pages.talk import Spoken, spoken_in, with_times
from bide.server.pages.timeline import events_of, timeline
from bide.server.problems import not_found
from bide.types import RunStatus

router = pages_router()

PAGE = 50
_GOES_ON = ("ready", "running", "waiting", "queued")
"""In these, the life of a thread reaches up to now."""
_STATUSES = ("waiting", "running", "ready", "queued", "done", "failed", "cancelled", "blocked", "dead")

Text = Annotated[str, Query(max_length=300)]


@router.get("/inbox/threads")
def threads(
    request: Request, server: Server, who: Who, status: Text = "", graph: Text = "", after: Text = ""
) -> Response:
    """List threads, newest first."""
    need(who, READ)
    app, now = server.app, now_of(server.app)
    chosen = status if status in {one.value for one in RunStatus} else None
    seen = owned_thread(app, who, after) if after else None
    found = app.list(status=chosen, graph=graph or None, owner=who.owner, after=seen, most=PAGE + 1)
    shown = [(thread, [card_of(wait, now) for wait in _open_waits(app, thread)]) for thread in found[:PAGE]]
    return page(
        request,
        "threads.html",
        threads=shown,
        statuses=_STATUSES,
        chosen=chosen or "",
        graph=graph,
        graphs=[known.name for known in app.graphs],
        after=found[PAGE - 1].thread_id if len(found) > PAGE else "",
        flash=flash_of(app, who, request.query_params.get("said")),
        live="/inbox/live",
    )


def _open_waits(app: Bide, thread: Thread) -> Sequence[Wait]:
    return app.waits(thread_id=thread.thread_id, most=3) if thread.status == "waiting" else ()


@router.get("/inbox/threads/{thread_id:path}")
def thread(request: Request, server: Server, who: Who, thread_id: str) -> Response:
    """Show one thread."""
    need(who, READ)
    asked = request.query_params
    flash = flash_of(server.app, who, asked.get("said"), asked.get("wait"))
    return thread_page(request, server.app, who, thread_id, flash=flash)


def thread_page(
    request: Request, app: Bide, caller: Caller, thread_id: str, *, status: int = 200, flash: Flash | None = None
) -> Response:
    """Show a thread: what it waits for, what happened, where in its graph it is, and its state."""
    owned_thread(app, caller, thread_id)
    found, now = app.get(thread_id), now_of(app)
    events, is_clipped = events_of(app, thread_id)
    every = [wait_of(app.graphs, row) for row in app.store.waits_of(thread_id)]
    spoken = _spoken(app, found)
    end = now if str(found.status) in _GOES_ON else (found.updated_at or now)
    return page(
        request,
        "thread.html",
        status=status,
        thread=found,
        cards=[card_of(whole(app, wait), now) for wait in found.waits],
        settled=[card_of(wait, now) for wait in reversed(every) if wait.status.value != "open"],
        lines=list(reversed(timeline(events, {wait.id: wait for wait in every}, spoken))),
        is_clipped=is_clipped,
        bars=bars_of(events, every, end),
        picture=picture_of(app, found.graph, thread_id),
        spoken=spoken,
        runs=app.runs(thread_id, most=20),
        children=app.children(thread_id),
        flash=flash,
        live=live_place(thread_id),
    )


def _spoken(app: Bide, found: Thread) -> list[Spoken]:
    graph, spoken = app.graphs.find(found.graph), spoken_in(found.values)
    return with_times(graph, found.thread_id, spoken) if graph is not None and spoken else spoken


def picture_of(app: Bide, name: str, thread_id: str | None = None) -> Markup | None:
    """Draw a graph, and where a thread stands in it; None when it is not known here, or does not fit its code."""
    graph = app.graphs.find(name)
    if graph is None:
        return None
    config: Any = None if thread_id is None else {"configurable": {"thread_id": thread_id}}
    try:
        drawn = graph.get_graph(config) if config else graph.get_graph()
    except BideError:
        return None
    return Markup(without_style(drawn.draw_svg()))


@router.post("/inbox/threads/{thread_id:path}/{what}")
def act(request: Request, server: Server, who: Who, thread_id: str, what: str, typed: Form) -> Response:
    """Retry, release or cancel a thread."""
    need(who, RUN)
    app = server.app
    owned_thread(app, who, thread_id)
    if what not in ("retry", "release", "cancel"):
        raise not_found("page", what)
    try:
        said = _done(app, who, thread_id, what)
        audit(
            server, who, f"thread.{what}", thread_id, thread_id, "late" if said == "over" else "accepted", via="inbox"
        )
    except BideError as error:
        return thread_page(request, app, who, thread_id, status=409, flash=Flash(BAD, str(error)))
    return back_to(address(thread_place(thread_id), said))


def _done(app: Bide, caller: Caller, thread_id: str, what: str) -> str:
    if what == "retry":
        app.retry(thread_id)
        return "retried"
    if what == "release":
        return "released" if app.release(thread_id) else "over"
    is_done = app.cancel(thread_id, by=caller.identity, reason="cancelled in the inbox")
    return "cancelled" if is_done else "over"
