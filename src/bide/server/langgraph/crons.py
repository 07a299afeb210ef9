"""Crons over HTTP: schedules of the application that clients make, look at and change."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from fastapi import APIRouter, Request, Response

from bide.runtime import Bide
from bide.runtime.views import moment
from bide.server.auth.authorize import authorize, check_visible, matches
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.door import owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.assistant_shapes import Assistant, Fields
from bide.server.langgraph.choosing import holds, ordered, selected
from bide.server.langgraph.cron_shapes import Cron, CronCount, CronCreate, CronPatch, CronSearch
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.resolving import find_assistant, usable_assistant
from bide.server.langgraph.scheduled_runs import options_of
from bide.server.langgraph.wire import iso, paged
from bide.server.problems import Problem, not_found
from bide.store.notes import note_thread

router = APIRouter(tags=["crons"], route_class=PlainJsonRoute)


@router.post("/runs/crons")
def create(ctx: Server, caller: Who, asked: CronCreate) -> Fields:
    """Make a cron whose runs have a thread of their own each, which goes when the run is over, unless it is kept."""
    return _made(ctx, caller, asked, None)


@router.post("/threads/{thread_id}/runs/crons")
def create_for_thread(ctx: Server, caller: Who, request: Request, thread_id: str, asked: CronCreate) -> Fields:
    """Make a cron whose runs go on with one thread; it is over when that is deleted."""
    owned_thread(ctx.app, caller, thread_id)
    value = {"thread_id": thread_id, "assistant_id": asked.assistant_id, "metadata": asked.metadata or {}}
    allow(ctx, request, "threads", "create_run", value, thread_id)
    return _made(ctx, caller, asked, thread_id)


@router.post("/runs/crons/search")
def search(ctx: Server, caller: Who, response: Response, asked: CronSearch | None = None) -> list[Fields]:
    """List crons, the newest first."""
    asked = asked or CronSearch()
    by = asked.sort_by or "created_at"
    shown = [cron.shown() for cron in _meant(ctx, caller, asked)]
    found = ordered(shown, lambda one: None if one[by] is None else (one[by], one["cron_id"]), asked.sort_order)
    paged(response, len(found), asked.offset, asked.limit)
    now = iso(ctx.app.store.clock.now())
    return [selected({**one, "now": now}, asked.select or list(one)) for one in asked.of(found)]


@router.post("/runs/crons/count")
def count(ctx: Server, caller: Who, asked: CronCount | None = None) -> int:
    """Count crons."""
    return len(_meant(ctx, caller, asked or CronCount()))


@router.get("/runs/crons/{cron_id}")
def get(ctx: Server, caller: Who, cron_id: str) -> Fields:
    """Return a cron."""
    return _visible(ctx, caller, cron_id, "read").shown()


@router.patch("/runs/crons/{cron_id}")
def patch(ctx: Server, caller: Who, cron_id: str, asked: CronPatch) -> Fields:
    """Change a cron; what it has started goes on as it was."""
    cron = _visible(ctx, caller, cron_id, "update", {"payload": asked.of_the_run(), "schedule": asked.schedule})
    if not cron.is_clients:
        return _paused_or_resumed(ctx.app, caller, cron, asked)
    assistant = usable_assistant(ctx, caller, cron.assistant_id)
    _put(ctx, caller, assistant, _merged(cron, asked))
    return _found(ctx.app, caller, cron_id).shown()


@router.delete("/runs/crons/{cron_id}", status_code=204, response_class=Response)
def delete(ctx: Server, caller: Who, cron_id: str) -> None:
    """Delete a cron; what it has started goes on."""
    ctx.app.unschedule(_visible(ctx, caller, cron_id, "delete").plan.name, owner=caller.owner)


# ── Making and changing ────────────────────────────────────────────────────────────────────────────────────────────


def _made(ctx: Context, caller: Caller, asked: CronCreate, thread_id: str | None) -> Fields:
    assistant = usable_assistant(ctx, caller, asked.assistant_id)
    cron_id = str(uuid4())
    said: Fields = {
        "cron_id": cron_id,
        "thread_id": thread_id,
        "schedule": asked.schedule,
        "timezone": asked.timezone,
        "end_time": asked.end_time,
        "on_run_completed": asked.on_run_completed or "delete",
        "enabled": asked.enabled is not False,
        "metadata": asked.metadata or {},
        "payload": asked.of_the_run(),
        "user_id": caller.identity if caller.is_authenticated else None,
    }
    authorize(caller, "crons", "create", said)
    _put(ctx, caller, assistant, said)
    return _found(ctx.app, caller, cron_id).shown()


def _merged(cron: Cron, asked: CronPatch) -> Fields:
    """Return what is to hold from now on."""
    row, plan, given = cron.row, cron.plan, asked.model_fields_set
    payload = cron.said.get("payload") or {}
    end_at: datetime | None = asked.end_time if "end_time" in given else moment(plan.end_at)
    return {
        "cron_id": cron.cron_id,
        "thread_id": plan.thread_id,
        "schedule": asked.schedule or row.cron,
        "timezone": asked.timezone or cron.said.get("timezone"),
        "end_time": end_at,
        "on_run_completed": asked.on_run_completed or plan.on_end,
        "enabled": not row.is_paused if asked.enabled is None else asked.enabled,
        "metadata": {**(cron.said.get("metadata") or {}), **(asked.metadata or {})},
        "payload": {**payload, **asked.of_the_run()},
        "user_id": cron.said.get("user_id"),
    }


def _put(ctx: Context, caller: Caller, assistant: Assistant, said: Fields) -> None:
    """Keep a cron as a schedule: under its id, with what the client said about it."""
    noted = {"graph_id": assistant.graph_id, "assistant_id": assistant.assistant_id}
    told = {**said["metadata"], "cron_id": said["cron_id"]}
    kept = {name: said[name] for name in ("cron_id", "timezone", "metadata", "payload", "user_id")}
    about = {**kept, "assistant_id": assistant.assistant_id, "updated_at": ctx.app.store.clock.now()}
    options = options_of(ctx, caller, assistant, said["payload"], told)
    options |= {"thread_id": said["thread_id"], "owner": caller.owner}
    ctx.app.schedule(
        said["cron_id"],
        assistant.graph_id,
        said["schedule"],
        said["payload"].get("input"),
        timezone=said["timezone"] or "UTC",
        until=said["end_time"],
        paused=not said["enabled"],
        on_end="keep" if said["thread_id"] is not None else said["on_run_completed"],
        is_of_thread=True,
        metadata={**told, **noted},
        about=about,
        **options,
    )
    if said["thread_id"] is not None:
        note_thread(ctx.app.store, caller.owner, said["thread_id"], noted, is_new=True)


def _paused_or_resumed(app: Bide, caller: Caller, cron: Cron, asked: CronPatch) -> Fields:
    """Pause or resume a schedule of the application's own: the rest of it is said in its code."""
    if asked.model_fields_set - {"enabled"} or asked.enabled is None:
        raise Problem(
            409,
            f"Schedule {cron.plan.name!r} is made by the application, which would change it back. Only 'enabled' can "
            f"be changed here.",
        )
    change = app.resume_schedule if asked.enabled else app.pause_schedule
    change(cron.plan.name, owner=caller.owner)
    return _found(app, caller, cron.cron_id).shown()


# ── Finding ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _crons(app: Bide, caller: Caller) -> list[Cron]:
    return [Cron(row, plan) for row, plan in app.store.planned(caller.owner)]


def _found(app: Bide, caller: Caller, cron_id: str) -> Cron:
    found = next((cron for cron in _crons(app, caller) if cron.cron_id == cron_id), None)
    if found is None:
        raise not_found("cron", cron_id)
    return found


def _visible(ctx: Context, caller: Caller, cron_id: str, action: str, said: Fields | None = None) -> Cron:
    """Return a cron with which the caller may do something, as the application's own handlers say."""
    seen = authorize(caller, "crons", action, {"cron_id": cron_id, **(said or {})})
    found = _found(ctx.app, caller, cron_id)
    check_visible(seen, found.metadata, "cron", cron_id)
    return found


def _meant(ctx: Context, caller: Caller, asked: CronCount) -> list[Cron]:
    said = {**asked.model_dump(), "metadata": asked.metadata or {}}
    seen = authorize(caller, "crons", "search", said)
    if said["assistant_id"] is not None:
        assistant = find_assistant(ctx.app, caller, str(said["assistant_id"]))
        said["assistant_id"] = None if assistant is None else assistant.assistant_id
        if assistant is None:
            return []
    return [cron for cron in _crons(ctx.app, caller) if _fits(cron, said) and matches(seen, cron.metadata)]


def _fits(cron: Cron, said: Fields) -> bool:
    return (
        said["assistant_id"] in (None, cron.assistant_id)
        and said["thread_id"] in (None, cron.plan.thread_id)
        and said["enabled"] in (None, not cron.row.is_paused)
        and holds(cron.metadata, said["metadata"] or {})
    )
