"""The commands of the thread protocol, each done by what the other routes do as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from bide.errors import AlreadyAnsweredError, InvalidAnswerError, ResumeError
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.door import owned_thread
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.drawn import drawn
from bide.server.langgraph.run_requests import CommandBody, RunBody, start_run
from bide.server.problems import Problem
from bide.server.streams.protocol import ALL_MODES
from bide.store.notes import noted_thread

Params = Mapping[str, Any]


class CommandError(Exception):
    """A command that was understood, and refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def perform(ctx: Context, request: Any, who: Caller, thread_id: str, method: str, params: Params) -> dict[str, Any]:
    """Do one command."""
    done = _COMMANDS.get(method)
    if done is None:
        raise CommandError("unknown_command", f"There is no command {method!r}. There are {', '.join(_COMMANDS)}.")
    if not isinstance(params, Mapping):
        raise CommandError("invalid_argument", "params must be an object.")
    return done(ctx, request, who, thread_id, params)


def _start(ctx: Context, request: Any, who: Caller, thread_id: str, params: Params) -> dict[str, Any]:
    strategy = params.get("multitask_strategy") or params.get("multitaskStrategy")
    body = _body(
        {
            "assistant_id": params.get("assistant_id"),
            "input": params.get("input"),
            "config": params.get("config"),
            "metadata": params.get("metadata"),
            "multitask_strategy": strategy,
            "if_not_exists": "create",
        }
    )
    return {"run_id": _run(ctx, request, who, thread_id, body)}


def _respond(ctx: Context, request: Any, who: Caller, thread_id: str, params: Params) -> dict[str, Any]:
    owned_thread(ctx.app, who, thread_id)
    responses = params.get("responses")
    given = responses if isinstance(responses, list) else [params]
    answers = {str(one.get("interrupt_id")): one.get("response") for one in given if isinstance(one, Mapping)}
    waits = {wait.id for wait in ctx.app.waits(thread_id=thread_id)}
    for name in answers:
        if name not in waits:
            raise CommandError("no_such_interrupt", f"Thread {thread_id!r} has no open question {name!r}.")
    thread = noted_thread(ctx.app.store, who.owner, thread_id)
    assistant = None if thread is None else thread.metadata.get("assistant_id") or thread.graph
    body = _body(
        {"assistant_id": assistant, "config": params.get("config"), "metadata": params.get("metadata")},
        CommandBody(resume=answers, update=params.get("update"), goto=params.get("goto")),
    )
    try:
        _run(ctx, request, who, thread_id, body)
    except AlreadyAnsweredError as late:
        raise CommandError("no_such_interrupt", str(late)) from late
    except InvalidAnswerError as unfit:
        raise CommandError("invalid_argument", str(unfit)) from unfit
    except ResumeError as stale:
        raise CommandError("no_such_interrupt", str(stale)) from stale
    return {}


def _tree(ctx: Context, request: Any, who: Caller, thread_id: str, params: Params) -> dict[str, Any]:
    owned_thread(ctx.app, who, thread_id)
    thread = ctx.app.store.thread(thread_id)
    graph = None if thread is None else ctx.app.graphs.find(thread.graph)
    return {"tree": None if graph is None else drawn(graph.spec)}


def _body(said: dict[str, Any], command: CommandBody | None = None) -> RunBody:
    try:
        body = RunBody(**{key: value for key, value in said.items() if value is not None})
    except ValidationError as problem:
        raise CommandError("invalid_argument", str(problem)) from problem
    body.command = command
    body.stream_mode = [mode for mode in ALL_MODES if mode != "subgraphs"]
    body.stream_subgraphs = True
    return body


def _run(ctx: Context, request: Any, who: Caller, thread_id: str, body: RunBody) -> str:
    value = {"thread_id": thread_id, "assistant_id": body.assistant_id, "metadata": body.metadata or {}}
    allow(ctx, request, "threads", "create_run", value, thread_id)
    body.metadata = value["metadata"]  # type: ignore[assignment]
    try:
        return start_run(ctx, request, who, thread_id, body).run_id
    except Problem as problem:
        code = "permission_denied" if problem.status == 403 else "invalid_argument"
        raise CommandError("no_such_interrupt" if problem.status == 409 else code, problem.detail) from problem


_COMMANDS: Mapping[str, Callable[[Context, Any, Caller, str, Params], dict[str, Any]]] = {
    "run.start": _start,
    "input.respond": _respond,
    "agent.getTree": _tree,
}
