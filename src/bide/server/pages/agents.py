"""The graphs of the application, each with its picture and a form to start it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request, Response
from markupsafe import Markup

from bide.errors import BideError, GraphError
from bide.graph.compiled import CompiledGraph
from bide.runtime import Bide
from bide.server.caller import READ, RUN
from bide.server.context import Server, Who
from bide.server.door import checked_id, need
from bide.server.pages.fields import (
    Field,
    FieldProblem,
    Typed,
    field_of,
    filled_in,
    read_fields,
    read_json,
    with_value,
)
from bide.server.pages.look import page
from bide.server.pages.page_routes import Form, back_to, pages_router
from bide.server.pages.places import thread_place
from bide.server.pages.saying import BAD, Flash, address, flash_of
from bide.server.pages.threads import picture_of
from bide.server.problems import not_found
from bide.shape import json_schema

router = pages_router()

INPUT = "json"


@dataclass(frozen=True, slots=True)
class Agent:
    """A graph as it is shown."""

    name: str
    about: str
    picture: Markup | None
    fields: tuple[Field, ...]
    raw: Field
    is_raw: bool = False
    thread_id: str = ""
    problem: str = ""


def agent_of(app: Bide, name: str) -> Agent:
    """Show one graph of the application."""
    graph = app.graphs.find(name)
    if graph is None:
        raise not_found("agent", name)
    return Agent(
        name, _about(graph), picture_of(app, name), input_fields(graph), Field(INPUT, "Input", "json", True, "{}")
    )


def _about(graph: CompiledGraph) -> str:
    """Return what the author says about the state that it works on, where that was said."""
    schema = getattr(graph.builder, "state_schema", None)
    text = (getattr(schema, "__doc__", None) or "").strip()
    # Typed dictionaries and dataclasses without a word of their own have one that Python gave them.
    is_given = text.startswith(("dict(", f"{getattr(schema, '__name__', '')}("))
    return "" if is_given else text.splitlines()[0] if text else ""


def input_fields(graph: CompiledGraph) -> tuple[Field, ...]:
    """Return a field for each key of a graph's input; which of them are needed, only its nodes know."""
    keys = getattr(getattr(graph.builder, "input", None), "keys", None) or {}
    return tuple(field_of(f"field.{key}", key, _schema(annotation), {}, False) for key, annotation in keys.items())


def _schema(annotation: Any) -> dict[str, Any]:
    try:
        return json_schema(annotation)
    except BideError:
        return {}


@router.get("/inbox/agents")
def agents(request: Request, server: Server, who: Who) -> Response:
    """Show all graphs."""
    need(who, READ)
    shown = [agent_of(server.app, known.name) for known in server.app.graphs]
    return page(request, "agents.html", agents=shown, flash=flash_of(server.app, who, request.query_params.get("said")))


@router.post("/inbox/agents/{name}/start")
def start(request: Request, server: Server, who: Who, name: str, typed: Form) -> Response:
    """Start a run; what does not fit is shown again with what was typed."""
    need(who, RUN)
    app = server.app
    agent = agent_of(app, name)
    try:
        given = _input(agent, typed)
        thread_id = typed.get("thread", "").strip()
        # The same form sent twice starts one run.
        options: dict[str, Any] = {"owner": who.owner, "key": f"inbox:{who.owner}:{typed.get('key', '')}"}
        if thread_id:
            options["thread_id"] = _own_id(app, who.owner, thread_id)
        run = app.start(name, given, **options)
    except (BideError, FieldProblem) as problem:
        return _again(request, app, agent, typed, str(problem))
    return back_to(address(thread_place(run.thread_id), "started"))


def _own_id(app: Bide, owner: str, thread_id: str) -> str:
    """Return the id of a thread that is there and the caller's, or not there yet."""
    whose = app.store.owner_of(checked_id("thread", thread_id))
    if whose not in (None, owner):
        raise GraphError(f"The id {thread_id!r} is taken. Give another one, or none.")
    return thread_id


def _input(agent: Agent, typed: Typed) -> Any:
    if typed.get("how") == "json" or not agent.fields:
        return read_json(typed.get(INPUT, ""))
    given, wrong = read_fields([field for field in agent.fields if typed.get(field.name, "").strip()], typed)
    if wrong:
        raise FieldProblem("; ".join(f"{name.removeprefix('field.')}: {text}" for name, text in wrong.items()))
    return given


def _again(request: Request, app: Bide, agent: Agent, typed: Typed, problem: str) -> Response:
    again = replace(
        agent,
        fields=tuple(filled_in(agent.fields, typed)),
        raw=with_value(agent.raw, typed.get(INPUT, agent.raw.value)),
        is_raw=typed.get("how") == "json",
        thread_id=typed.get("thread", ""),
        problem=problem,
    )
    shown = [again if known.name == agent.name else agent_of(app, known.name) for known in app.graphs]
    flash = Flash(BAD, f"{agent.name} was not started. See below.")
    return page(request, "agents.html", status=422, agents=shown, flash=flash)
