"""What clients of LangGraph say when they start a run, read once, and made into a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from bide.errors import NotWaitingError, UnknownInterruptError
from bide.runtime.starts import StartOptions
from bide.runtime.views import Run
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.door import checked_id
from bide.server.hooks.targets import check_target
from bide.server.langgraph.answering import answering
from bide.server.langgraph.assistant_shapes import Assistant
from bide.server.langgraph.resolving import usable_assistant
from bide.server.langgraph.wire import jsonable
from bide.server.payloads import read_resume
from bide.server.problems import Problem, not_found
from bide.store.listing import read_shown
from bide.store.notes import forget_run, note_thread, noted_thread
from bide.store.passing import let_go_when_it_ends
from bide.store.queue_rows import RunView
from bide.types import UNSET, Command, RunStatus, Send

DEFAULT_MODES = ("values",)
LIVE = (RunStatus.READY, RunStatus.RUNNING)
MODES = (
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
    "tools",
    "lifecycle",
)


def modes_in(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the stream modes that somebody asks for, one or several; whoever asks for none wants the values."""
    chosen = (given,) if isinstance(given, str) else tuple(given or DEFAULT_MODES)
    unknown = [mode for mode in chosen if mode not in MODES]
    if unknown:
        raise Problem(422, f"There is no stream mode {unknown[0]!r}. There are {', '.join(MODES)}.")
    return chosen


class CommandBody(BaseModel):
    """An answer, an update, a way to go."""

    model_config = ConfigDict(extra="ignore")

    resume: Any = None
    update: Any = None
    goto: Any = None


class RunBody(BaseModel):
    """A run as clients ask for it. What is not known here is passed over, as their own server does."""

    model_config = ConfigDict(extra="ignore")

    assistant_id: str = Field(min_length=1, max_length=200)
    input: Any = None
    command: CommandBody | None = None
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    webhook: str | None = Field(None, max_length=8000)
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    stream_mode: str | list[str] | None = None
    stream_subgraphs: bool | None = False
    stream_resumable: bool | None = False
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = None
    after_seconds: float | None = Field(None, ge=0, le=10 * 366 * 86_400)
    durability: Literal["sync", "async", "exit"] | None = None
    strict_resume: bool | None = None

    @property
    def modes(self) -> tuple[str, ...]:
        """The stream modes that were asked for."""
        return modes_in(self.stream_mode)

    @property
    def goes_on(self) -> bool:
        """Whether it brings no input of its own."""
        return self.command is not None or self.input is None


def start_run(ctx: Context, request: Request, caller: Caller, thread_id: str | None, body: RunBody) -> Run:
    """Accept a run; on a thread that waits it takes over, with the answers that it brings."""
    assistant = usable_assistant(ctx, caller, body.assistant_id)
    modes = body.modes
    if body.webhook is not None:
        check_target(body.webhook, ctx.settings)
    is_stateless = thread_id is None
    live = None if thread_id is None else _live_run(ctx, caller, checked_id("thread", thread_id), body)
    known = None if thread_id is None else noted_thread(ctx.app.store, caller.owner, thread_id)
    metadata = _metadata(assistant, body, {} if known is None else known.metadata)
    options: StartOptions = {
        **said_of(body, assistant, caller, metadata),
        "thread_id": thread_id,
        "owner": caller.owner,
        "by": caller.identity,
        "tell": (*modes, "subgraphs") if body.stream_subgraphs else modes,
        "notes": notes_of(body, assistant, metadata, is_temporary=is_stateless and body.on_completion != "keep"),
        **_when_busy(ctx, assistant, body, None if live is None else live.status),
    }
    given, options["comments"] = _given(ctx, thread_id, body)
    _check_input(ctx, assistant, given, thread_id)
    _check_place(ctx, assistant, given, options)
    with answering(ctx, caller, thread_id, given):
        run = _started(ctx, assistant.graph_id, given, options, body)
    if live is not None and options.get("if_busy") == "rollback" and live.status in LIVE:
        forget_run(ctx.app.store, run.thread_id, live.run_id)
    stamp = {"graph_id": assistant.graph_id, "assistant_id": assistant.assistant_id}
    note_thread(ctx.app.store, caller.owner, run.thread_id, {**(body.metadata or {}), **stamp}, is_new=True)
    if is_stateless and body.on_completion != "keep":
        ctx.app.store.database.write("let_go", lambda tx: let_go_when_it_ends(tx, run.thread_id))
    return run


def _live_run(ctx: Context, caller: Caller, thread_id: str, body: RunBody) -> RunView | None:
    """Return the live or newest run of a thread of the caller's; one that is not there is made, or refused."""
    owner = ctx.app.store.owner_of(thread_id)
    if owner is None and body.if_not_exists == "create":
        return None
    if owner != caller.owner:
        raise not_found("thread", thread_id)
    shown = read_shown(ctx.app.store, thread_id)
    return None if shown is None else shown.run


def _metadata(assistant: Assistant, body: RunBody, thread: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said about a run, and with it about every checkpoint and message of it."""
    configured = _object(body.config, "metadata")
    stamp = {"graph_id": assistant.graph_id, "assistant_id": assistant.assistant_id}
    return {**(assistant.metadata or {}), **thread, **configured, **(body.metadata or {}), **stamp}


def said_of(
    body: RunBody, assistant: Assistant, caller: Caller, metadata: Mapping[str, Any] | None = None
) -> StartOptions:
    """Return what is the same for every run: config, context, where it pauses, and from where it begins."""
    config = _merged(assistant.config, body.config)
    inner = dict(config.get("configurable") or {})
    inner.pop("thread_id", None)
    configured = inner.pop("checkpoint_id", None)
    inner.pop("checkpoint_ns", None)
    named = body.checkpoint_id or (body.checkpoint or {}).get("checkpoint_id") or configured
    inner["assistant_id"], inner["graph_id"] = assistant.assistant_id, assistant.graph_id
    if caller.is_authenticated:
        inner["langgraph_auth_user_id"] = caller.identity
        inner["langgraph_auth_user"] = jsonable({**caller.user, "identity": caller.identity})
    metadata = _metadata(assistant, body, {}) if metadata is None else metadata
    said: StartOptions = {
        "config": {**config, "configurable": inner, "metadata": {**(config.get("metadata") or {}), **metadata}},
        "context": {**(assistant.context or {}), **(body.context or {})} or None,
        "interrupt_before": body.interrupt_before,
        "interrupt_after": body.interrupt_after,
        "durability": body.durability,
    }
    if named:
        said["begin_at"] = str(named)
    if body.after_seconds:
        said["delay"] = body.after_seconds
    return said


def _merged(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = {**(first or {}), **(second or {})}
    for key in ("configurable", "metadata"):
        inner = {**_object(first, key), **_object(second, key)}
        if inner:
            merged[key] = inner
    return merged


def _object(config: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    found = (config or {}).get(key) or {}
    if not isinstance(found, Mapping):
        raise Problem(422, f"config.{key} must be an object, as {{…}}; it is a {type(found).__name__}.")
    return found


def _when_busy(ctx: Context, assistant: Assistant, body: RunBody, status: RunStatus | None) -> StartOptions:
    """Say what becomes of a live run. One that waits is not busy, to LangGraph's clients; a broken one is replaced."""
    strategy = body.multitask_strategy or "enqueue"
    if status in (RunStatus.BLOCKED, RunStatus.DEAD) and strategy != "reject":
        return {"if_busy": "interrupt"}
    graph = ctx.app.graphs.find(assistant.graph_id)
    policy = "resume" if graph is not None and graph.build.on_paused == "resume" else "restart"
    if status is RunStatus.WAITING and strategy in ("interrupt", "rollback"):
        strategy = "enqueue"
    if body.after_seconds and strategy in ("interrupt", "rollback"):
        raise Problem(422, f"multitask_strategy={strategy!r} means now, and after_seconds later. Give one of them.")
    return {"if_busy": strategy, "if_waiting": "take_over", "on_paused": policy}  # type: ignore[typeddict-item]


def _given(ctx: Context, thread_id: str | None, body: RunBody) -> tuple[Any, dict[str, str]]:
    """Return the input; a command wins over it, since clients send an empty input beside one. With it, what is said
    beside the answers that it brings."""
    if body.command is None:
        return body.input, {}
    command = body.command
    has_answer = "resume" in command.model_fields_set and not (
        command.resume is None and (command.goto is not None or command.update is not None)
    )
    resume, comments = _answers(ctx, thread_id, command.resume) if has_answer else (UNSET, {})
    return Command(resume=resume, update=command.update, goto=_places(command.goto)), comments


def _check_input(ctx: Context, assistant: Assistant, given: Any, thread_id: str | None) -> None:
    """Refuse to go on with what has not begun."""
    graph = ctx.app.graphs.find(assistant.graph_id)
    if given is not None or graph is None:
        return
    place = {"thread_id": thread_id}
    if thread_id is None or graph.get_state({"configurable": place}).created_at is None:
        raise Problem(
            422, "A run needs an input, unless its thread has a state to go on with.", error="EmptyInputError"
        )


def _check_place(ctx: Context, assistant: Assistant, given: Any, options: StartOptions) -> None:
    """Refuse to answer at an older checkpoint: what it asks was dealt with. Naming the newest one says nothing."""
    place = options.get("begin_at")
    graph = ctx.app.graphs.find(assistant.graph_id)
    if place is None or graph is None or not isinstance(given, Command) or given.resume is UNSET:
        return
    head = graph.get_state({"configurable": {"thread_id": options["thread_id"]}}).config["configurable"]
    if head.get("checkpoint_id") != place:
        raise Problem(
            409,
            f"Checkpoint {place!r} is not the newest one, and what it asks was dealt with. Nothing was started. To "
            f"answer differently, start a run there without input, and answer what that asks.",
        )
    del options["begin_at"]


def _answers(ctx: Context, thread_id: str | None, resume: Any) -> tuple[Any, dict[str, str]]:
    """Return an answer in the form that each wait asks for, from whichever form the client's inbox has sent."""
    waits = [] if thread_id is None else [wait for wait in ctx.app.waits(thread_id=thread_id) if wait.kind != "pause"]
    return read_resume(waits, resume)


def _places(goto: Any) -> Any:
    """Return where to go: names, and what is sent along."""
    listed: Sequence[Any] = goto if isinstance(goto, list) else [] if goto is None else [goto]
    return [_place(one) for one in listed]


def _place(one: Any) -> str | Send:
    if isinstance(one, str):
        return one
    if isinstance(one, Mapping) and isinstance(one.get("node"), str):
        return Send(one["node"], one.get("input"))
    raise Problem(422, f"goto={one!r} is no place to go: give the name of a node, or {{node, input}}.")


def _started(ctx: Context, graph: str, given: Any, options: StartOptions, body: RunBody) -> Run:
    try:
        return ctx.app.start(graph, given, **options)
    except (NotWaitingError, UnknownInterruptError) as stale:
        if ctx.settings.stale_resume == "conflict" or body.strict_resume:
            raise Problem(409, str(stale), error=type(stale).__name__) from stale
        return ctx.app.start(graph, None, **options)


def notes_of(
    body: RunBody, assistant: Assistant, metadata: Mapping[str, Any] | None = None, *, is_temporary: bool = False
) -> dict[str, Any]:
    """Return what is kept of a request for whoever looks at the run later."""
    asked = body.model_dump(exclude={"assistant_id", "metadata", "multitask_strategy"})
    asked |= {"command": None if body.command is None else body.command.model_dump(exclude_unset=True)}
    asked |= {"stream_mode": list(body.modes), "subgraphs": bool(body.stream_subgraphs)}
    asked |= {"context": body.context or {}, "durability": body.durability or "sync"}
    asked |= {"resumable": True, "feedback_keys": None, "temporary": is_temporary}
    metadata = _metadata(assistant, body, {}) if metadata is None else metadata
    place = {"graph_id": assistant.graph_id, "assistant_id": assistant.assistant_id}
    inner = {**((body.config or {}).get("configurable") or {}), **place}
    asked["config"] = {**(body.config or {}), "configurable": inner, "metadata": metadata}
    return {
        "assistant_id": assistant.assistant_id,
        "metadata": metadata,
        "multitask_strategy": body.multitask_strategy or "enqueue",
        "kwargs": jsonable(asked),
        "webhook": body.webhook,
        "goes_on": body.goes_on,
    }
