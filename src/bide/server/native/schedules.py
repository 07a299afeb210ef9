"""Schedules: runs that are started after the words of cron, each under a name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from bide.runtime.scheduling import Schedule
from bide.server.auth.audit import audit
from bide.server.caller import READ, RUN
from bide.server.context import Context, Server, Who
from bide.server.door import need
from bide.server.native.described import Asked, Id, Length, Limit, Text, Told, refusals
from bide.server.problems import Problem, not_found

router = APIRouter(tags=["schedules"])

NAME = "^[A-Za-z0-9_.:@ -]{1,128}$"
Name = Annotated[str, Path(pattern=NAME, description="The name of a schedule.")]


class Plan(Asked):
    """A rule after which runs are started."""

    graph: Text
    cron: Annotated[str, Field(min_length=1, max_length=200, description='As "0 9 * * 1-5".')]
    timezone: Text = "UTC"
    input: Any = None
    thread_id: Id | None = Field(default=None, description="On which thread each time; without it, on a new one.")
    missed: Literal["once", "skip", "all"] = "once"
    jitter: Length | None = None
    until: datetime | None = None
    if_busy: Literal["reject", "enqueue", "interrupt", "rollback"] = "enqueue"
    queue: Text = "default"
    priority: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)] = 0


class ScheduleShown(Told):
    """A schedule, and when it is due."""

    name: str
    graph: str
    cron: str
    timezone: str
    explained: str = Field(description="When that is, in words.")
    next_at: datetime | None
    last_at: datetime | None
    is_paused: bool
    created_at: datetime
    error: str | None


class SchedulePage(Told):
    """Some schedules, by their names."""

    schedules: list[ScheduleShown]
    after: str | None = Field(description="For the next page; null when this was the last.")


@router.get("/schedules", responses=refusals())
def list_schedules(
    server: Server,
    who: Who,
    limit: Limit = 50,
    after: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = None,
) -> SchedulePage:
    """List schedules by their names."""
    need(who, READ)
    found = server.app.schedules(owner=who.owner, after=after, most=limit + 1)
    shown = [_shown(one) for one in found[:limit]]
    return SchedulePage(schedules=shown, after=shown[-1].name if len(found) > limit else None)


@router.get("/schedules/{name}", responses=refusals(404))
def get_schedule(server: Server, who: Who, name: Name) -> ScheduleShown:
    """Return a schedule."""
    need(who, READ)
    return _found(server, who.owner, name)


@router.put("/schedules/{name}", responses=refusals(404, 413))
def put_schedule(server: Server, who: Who, name: Name, body: Plan) -> ScheduleShown:
    """Make a schedule, or change the one that has this name; a paused one stays paused."""
    need(who, RUN)
    if server.app.graphs.find(body.graph) is None:
        raise Problem(422, f"There is no graph {body.graph!r} here. Known: {server.app.graphs.listed()}.")
    if body.thread_id is not None and server.app.store.owner_of(body.thread_id) not in (None, who.owner):
        raise not_found("thread", body.thread_id)
    if body.until is not None and body.until.tzinfo is None:
        raise Problem(422, "until has no time zone. Give an offset, as 2026-12-31T18:00:00Z.")
    said = body.model_dump(exclude={"graph", "cron", "timezone", "input"}, exclude_none=True)
    made = server.app.schedule(name, body.graph, body.cron, body.input, timezone=body.timezone, owner=who.owner, **said)
    audit(server, who, "schedule.put", name, None, "accepted", graph=body.graph, cron=body.cron)
    return _shown(made)


@router.delete("/schedules/{name}", status_code=204, response_class=Response, responses=refusals(404))
def delete_schedule(server: Server, who: Who, name: Name) -> Response:
    """Delete a schedule; what it has started goes on."""
    need(who, RUN)
    if not server.app.unschedule(name, owner=who.owner):
        raise not_found("schedule", name)
    audit(server, who, "schedule.delete", name, None, "accepted")
    return Response(status_code=204)


@router.post("/schedules/{name}/pause", responses=refusals(404))
def pause_schedule(server: Server, who: Who, name: Name) -> ScheduleShown:
    """Let a schedule start nothing until it is resumed."""
    need(who, RUN)
    _found(server, who.owner, name)
    paused = server.app.pause_schedule(name, owner=who.owner)
    audit(server, who, "schedule.pause", name, None, "accepted")
    return _shown(paused)


@router.post("/schedules/{name}/resume", responses=refusals(404))
def resume_schedule(server: Server, who: Who, name: Name) -> ScheduleShown:
    """Let a paused schedule go on from now."""
    need(who, RUN)
    _found(server, who.owner, name)
    resumed = server.app.resume_schedule(name, owner=who.owner)
    audit(server, who, "schedule.resume", name, None, "accepted")
    return _shown(resumed)


def _found(server: Context, owner: str, name: str) -> ScheduleShown:
    found = server.app.find_schedule(name, owner=owner)
    if found is None:
        raise not_found("schedule", name)
    return _shown(found)


def _shown(schedule: Schedule) -> ScheduleShown:
    return ScheduleShown(
        name=schedule.name,
        graph=schedule.graph,
        cron=schedule.cron,
        timezone=schedule.timezone,
        explained=schedule.explained,
        next_at=schedule.next_at,
        last_at=schedule.last_at,
        is_paused=schedule.is_paused,
        created_at=schedule.created_at,
        error=schedule.error,
    )
