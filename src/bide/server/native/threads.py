"""Threads: listing them, what happened in one, its picture, and what can be done to one as a whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from bide.runtime.following import Following
from bide.runtime.views import Thread, moment
from bide.server.auth.audit import audit
from bide.server.caller import READ, RUN
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_thread
from bide.server.native.described import Asked, Id, Limit, ThreadId, Wanted, Words, refusals
from bide.server.native.resting import standing
from bide.server.native.thread_shapes import (
    Ended,
    RunShown,
    StatusWord,
    ThreadPage,
    Timeline,
    event_shown,
    run_shown,
    thread_shown,
)
from bide.server.problems import not_found
from bide.store.listing import read_shown

router = APIRouter(tags=["threads"])

After = Annotated[
    str | None, Query(pattern=r"^[0-9]{1,14}\.[^\x00]{1,300}$", description="The `after` of the page before.")
]


class Cancellation(Asked):
    """What of a thread is cancelled, and why."""

    reason: Words = "cancelled"
    run_id: Id | None = None


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/threads", responses=refusals(404))
def list_threads(
    server: Server,
    who: Who,
    *,
    status: StatusWord | None = None,
    graph: Wanted = None,
    parent: Annotated[Id | None, Query(description="Only those that this thread has spawned.")] = None,
    limit: Limit = 50,
    after: After = None,
) -> ThreadPage:
    """List threads, newest first."""
    need(who, READ)
    if parent is not None:
        owned_thread(server.app, who, parent)
    return _page(server, who.owner, limit, after, status=status, graph=graph, parent=parent)


@router.get("/threads/{thread_id}/children", responses=refusals(404))
def list_children(server: Server, who: Who, thread_id: ThreadId, limit: Limit = 50, after: After = None) -> ThreadPage:
    """List the threads that a thread has spawned, newest first."""
    need(who, READ)
    owned_thread(server.app, who, thread_id)
    return _page(server, who.owner, limit, after, parent=thread_id)


def _page(server: Context, owner: str, limit: int, after: str | None, **wanted: Any) -> ThreadPage:
    place = None if after is None else _place(after)
    found = server.app.list(owner=owner, after=place, most=limit + 1, **wanted)
    shown = found[:limit]
    is_more = len(found) > limit
    next_ = f"{round(shown[-1].created_at.timestamp() * 1000)}.{shown[-1].thread_id}" if is_more else None
    return ThreadPage(threads=[thread_shown(thread) for thread in shown], after=next_)


def _place(after: str) -> Thread:
    """Read where a list goes on: also when the thread that was seen last is gone since."""
    instant, _, thread_id = after.partition(".")
    created_at: Any = moment(int(instant))
    return Thread(thread_id, "", None, created_at, None)


@router.get("/threads/{thread_id}/timeline", responses=refusals(404))
def timeline(
    server: Server,
    who: Who,
    thread_id: ThreadId,
    *,
    since: Annotated[
        str | None,
        Query(pattern=r"^[0-9]{1,15}\.[0-9]{1,15}(\.[0-9a-f]{0,8})?$", description="The `since` of the part before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Timeline:
    """Tell what happened in a thread: the lines of its log and its finished steps, in one order."""
    need(who, READ)
    owned_thread(server.app, who, thread_id)
    following = Following(server.app.store, server.app.graphs, thread_id, since, None)
    events = following.so_far()
    told = events[:limit]
    cursor = told[-1].id if told else since
    # What a run tells while it runs is for streams.
    worth = [event for event in told if not event.kind.startswith("told.")]
    return Timeline(events=[event_shown(event) for event in worth], since=cursor, is_at_end=not events)


Format = Literal["svg", "png", "mermaid", "ascii"]
_TYPES = {"svg": "image/svg+xml", "png": "image/png", "mermaid": "text/plain", "ascii": "text/plain"}


@router.get(
    "/threads/{thread_id}/picture",
    response_class=Response,
    responses={
        200: {"description": "The picture.", "content": {kind: {} for kind in dict.fromkeys(_TYPES.values())}},
        **refusals(404),
    },
)
def picture(server: Server, who: Who, thread_id: ThreadId, format: Format = "svg", xray: bool = False) -> Response:
    """Draw the graph of a thread, and where the thread stands in it."""
    need(who, READ)
    owned_thread(server.app, who, thread_id)
    found = read_shown(server.app.store, thread_id)
    graph = None if found is None else server.app.graphs.find(found.graph)
    if graph is None:
        raise not_found("graph for the thread", thread_id)
    drawn = graph.get_graph({"configurable": {"thread_id": thread_id}}, xray=xray)
    draw = {"svg": drawn.draw_svg, "png": drawn.draw_png, "mermaid": drawn.draw_mermaid, "ascii": drawn.draw_ascii}
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response(draw[format](), media_type=_TYPES[format], headers=headers)  # type: ignore[operator]


# ── Doing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/threads/{thread_id}/cancel", responses=refusals(404))
def cancel_thread(server: Server, who: Who, thread_id: ThreadId, body: Cancellation | None = None) -> Ended:
    """Cancel a thread: its runs, its questions and its children; or one run of it. One that is over stays as it is."""
    need(who, RUN)
    owned_thread(server.app, who, thread_id)
    said = body or Cancellation()
    is_done = server.app.cancel(thread_id, run_id=said.run_id, reason=said.reason, by=who.identity)
    audit(server, who, "thread.cancel", thread_id, thread_id, "accepted" if is_done else "late", reason=said.reason)
    return _ended(server, thread_id, is_done)


@router.post("/threads/{thread_id}/retry", responses=refusals(404, 409))
def retry_thread(server: Server, who: Who, thread_id: ThreadId) -> RunShown:
    """Go on with a thread whose last run failed or was cancelled: only what did not finish runs again."""
    need(who, RUN)
    owned_thread(server.app, who, thread_id)
    run = server.app.retry(thread_id)
    audit(server, who, "thread.retry", thread_id, thread_id, "accepted", run=run.run_id)
    return run_shown(run)


@router.post("/threads/{thread_id}/release", responses=refusals(404))
def release_thread(server: Server, who: Who, thread_id: ThreadId) -> Ended:
    """Put a thread back into service whose run is dead or blocked."""
    need(who, RUN)
    owned_thread(server.app, who, thread_id)
    is_done = server.app.release(thread_id)
    audit(server, who, "thread.release", thread_id, thread_id, "accepted" if is_done else "late")
    return _ended(server, thread_id, is_done)


def _ended(server: Context, thread_id: str, is_done: bool) -> Ended:
    found = read_shown(server.app.store, thread_id)
    status = None if found is None or found.run is None else found.run.status
    return Ended(thread_id=thread_id, is_done=is_done, status=standing(status))
