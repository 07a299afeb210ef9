"""Assistants over HTTP: the one of each graph, and those that clients make of them."""

from __future__ import annotations

from uuid import uuid4

from fastapi import APIRouter, Response

from bide.runtime import Bide
from bide.server.auth.authorize import authorize
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.door import checked_id, is_id
from bide.server.langgraph.assistant_shapes import (
    Assistant,
    AssistantCount,
    AssistantCreate,
    AssistantPatch,
    AssistantSearch,
    Fields,
    Latest,
    VersionSearch,
)
from bide.server.langgraph.choosing import holds, ordered, selected
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.resolving import (
    UNTITLED,
    assistant_of,
    find_assistant,
    is_visible,
    system_assistants,
    unknown,
    visible_assistant,
)
from bide.server.langgraph.wire import paged, read_bool
from bide.server.problems import Problem
from bide.store.assistants import Assistants, Wording
from bide.store.notes import noted_threads

router = APIRouter(tags=["assistants"], route_class=PlainJsonRoute)


@router.post("/assistants/search")
def search(ctx: Server, caller: Who, response: Response, asked: AssistantSearch | None = None) -> list[Fields]:
    """List assistants, the newest first."""
    asked = asked or AssistantSearch()
    by = asked.sort_by or "created_at"
    found = ordered(_meant(ctx, caller, asked), lambda one: (getattr(one, by), one.assistant_id), asked.sort_order)
    paged(response, len(found), asked.offset, asked.limit)
    return [selected(one.shown(), asked.select) for one in asked.of(found)]


@router.post("/assistants/count")
def count(ctx: Server, caller: Who, asked: AssistantCount | None = None) -> int:
    """Count assistants."""
    return len(_meant(ctx, caller, asked or AssistantCount()))


@router.post("/assistants")
def create(ctx: Server, caller: Who, asked: AssistantCreate) -> Fields:
    """Make an assistant of a graph."""
    assistant_id = checked_id("assistant_id", asked.assistant_id or str(uuid4()))
    said = {**asked.model_dump(), "assistant_id": assistant_id, "metadata": asked.metadata or {}}
    seen = authorize(caller, "assistants", "create", said)
    _check_graph(ctx.app, said["graph_id"])
    there = find_assistant(ctx.app, caller, assistant_id)
    if there is None:
        row = Assistants(ctx.app.store).make(caller.owner, assistant_id, _wording(said))
        if row is not None:
            return assistant_of(row).shown()
        there = find_assistant(ctx.app, caller, assistant_id)  # somebody was faster
    if there is None or asked.if_exists == "raise" or not is_visible(seen, there):
        raise Problem(409, f"There is an assistant {assistant_id!r} already. Choose another id, or leave it out.")
    return there.shown()


@router.get("/assistants/{assistant_id}")
def get(ctx: Server, caller: Who, assistant_id: str) -> Fields:
    """Return an assistant by its id, or by the name of its graph."""
    return visible_assistant(ctx, caller, assistant_id).shown()


@router.patch("/assistants/{assistant_id}")
def patch(ctx: Server, caller: Who, assistant_id: str, asked: AssistantPatch) -> Fields:
    """Make a new version of an assistant, which is the present one from now on."""
    changes = asked.changes()
    there = _own(ctx, caller, assistant_id, "update", changes)
    if "graph_id" in changes:
        _check_graph(ctx.app, changes["graph_id"])
        changes["graph"] = changes.pop("graph_id")
    row = Assistants(ctx.app.store).change(caller.owner, there.assistant_id, **changes)
    if row is None:
        raise unknown(ctx.app, assistant_id)
    return assistant_of(row).shown()


@router.delete("/assistants/{assistant_id}", status_code=204, response_class=Response)
def delete(ctx: Server, caller: Who, assistant_id: str, delete_threads: str = "") -> None:
    """Delete an assistant with all its versions, and its threads, if that is asked for."""
    there = _own(ctx, caller, assistant_id, "delete")
    if not Assistants(ctx.app.store).delete(caller.owner, there.assistant_id):
        raise unknown(ctx.app, assistant_id)
    while read_bool(delete_threads):
        found = noted_threads(ctx.app.store, caller.owner, ("assistant_id", there.assistant_id))
        for thread in found:
            ctx.app.store.delete_thread(thread.thread_id)
        if not found:
            break


@router.post("/assistants/{assistant_id}/versions")
def versions(
    ctx: Server, caller: Who, response: Response, assistant_id: str, asked: VersionSearch | None = None
) -> list[Fields]:
    """List the versions of an assistant, newest first."""
    asked = asked or VersionSearch()
    there = visible_assistant(ctx, caller, assistant_id)
    if there.is_system:
        found = [there]
    else:
        found = [assistant_of(row) for row in Assistants(ctx.app.store).versions(caller.owner, there.assistant_id)]
    meant = [one for one in found if holds(one.metadata, asked.metadata or {})]
    paged(response, len(meant), asked.offset, asked.limit)
    return [one.version_shown() for one in asked.of(meant)]


@router.post("/assistants/{assistant_id}/latest")
def set_latest(ctx: Server, caller: Who, assistant_id: str, asked: Latest) -> Fields:
    """Let one of its versions be the present one."""
    there = visible_assistant(ctx, caller, assistant_id, "update", {"version": asked.version})
    if there.is_system and asked.version == there.version:
        return there.shown()
    row = Assistants(ctx.app.store).choose(caller.owner, there.assistant_id, asked.version)
    if row is None:
        raise Problem(404, f"Assistant {assistant_id!r} has no version {asked.version}. See its versions.")
    return assistant_of(row).shown()


def _meant(ctx: Context, caller: Caller, asked: AssistantCount) -> list[Assistant]:
    """Find those that are meant: names and metadata are sealed, so each one is looked at."""
    said = {**asked.model_dump(), "metadata": asked.metadata or {}}
    seen = authorize(caller, "assistants", "search", said)
    graph, wanted, part = said["graph_id"], said["metadata"] or {}, (said["name"] or "").casefold()
    made = map(assistant_of, Assistants(ctx.app.store).all(caller.owner, graph if graph and is_id(graph) else None))
    return [
        one
        for one in (*system_assistants(ctx.app), *made)
        if (not graph or one.graph_id == graph)
        and part in one.name.casefold()
        and holds(one.metadata, wanted)
        and is_visible(seen, one)
    ]


def _own(ctx: Context, caller: Caller, assistant_id: str, action: str, said: Fields | None = None) -> Assistant:
    """Return an assistant that can be changed."""
    found = visible_assistant(ctx, caller, assistant_id, action, said)
    if found.is_system:
        raise Problem(
            403,
            f"The assistant of graph {found.graph_id!r} comes with the server, and stays as it is. Make one of your "
            f"own with graph_id={found.graph_id!r}, and change that.",
        )
    return found


def _wording(said: Fields) -> Wording:
    parts = (said[name] or {} for name in ("config", "context", "metadata"))
    return Wording(said["graph_id"], said["name"] or UNTITLED, said["description"], *parts)


def _check_graph(app: Bide, graph: str) -> None:
    if app.graphs.find(graph) is None:
        raise Problem(404, f"Graph {graph[:80]!r} not found. Expected one of {app.graphs.listed()}.")
