"""One address for a whole conversation: what is sent starts it, answers what it asks, or is its next turn."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Response
from pydantic import Field

from bide.runtime.views import Thread, Wait
from bide.server.caller import READ, RESOLVE, RUN, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_thread
from bide.server.native.answering import Given, answered_under, give
from bide.server.native.described import ID, Asked, IdempotencyKey, LimitedAnswer, Text, refusals
from bide.server.native.resting import Rest, preferred_wait, rest_of, sentence, until_rest
from bide.server.problems import Problem, not_found
from bide.types import RunStatus
from bide.waits.leaves import leaves

router = APIRouter(tags=["conversations"])

WAIT_SECONDS = 10.0
"""How long a client waits for what comes of its turn, unless it says otherwise."""

ConversationId = Annotated[
    str, Path(pattern=ID, description="The id of a conversation: of its thread, it is the same.")
]
Prefer = Annotated[
    str | None, Header(max_length=200, description="`wait=30`: how many seconds to wait for what comes of it.")
]


class Turn(Asked):
    """What somebody says in a conversation."""

    graph: Text | None = Field(default=None, description="Who is spoken to; needed to begin.")
    input: Any = Field(default=None, description="The input of a turn, or the answer to what is asked. A text will do.")
    if_busy: Literal["reject", "enqueue"] = Field(
        default="reject", description="While the last turn is still worked on: refuse this one, or put it behind."
    )


class _Call(NamedTuple):
    server: Context
    caller: Caller
    thread_id: str
    key: str | None


@router.post(
    "/conversations/{conversation_id}",
    responses={202: {"model": Rest, "description": "It is still worked on."}, **refusals(404, 409, 410, 413)},
    dependencies=[LimitedAnswer],
)
async def converse(
    server: Server,
    who: Who,
    conversation_id: ConversationId,
    body: Turn,
    response: Response,
    *,
    prefer: Prefer = None,
    idempotency_key: IdempotencyKey = None,
) -> Rest:
    """Say something: it starts the conversation, answers what it asks, or is its next turn.

    The answer comes when the thread rests again: `waiting` with a question, `done`, or `failed`; or, after the time
    that the client prefers to wait, 202 and `running`.
    """
    call = _Call(server, who, conversation_id, idempotency_key)
    await run_sync(_take, call, body)
    is_at_rest = await until_rest(server, conversation_id, preferred_wait(prefer, WAIT_SECONDS))
    response.status_code = 200 if is_at_rest else 202
    return await run_sync(rest_of, server.app, conversation_id)


@router.get("/conversations/{conversation_id}", responses=refusals(404))
def get_conversation(server: Server, who: Who, conversation_id: ConversationId) -> Rest:
    """Return how a conversation stands: what it asks, or what has come out."""
    need(who, READ)
    owned_thread(server.app, who, conversation_id)
    return rest_of(server.app, conversation_id)


def _take(call: _Call, turn: Turn) -> None:
    """Do what a turn means, as the thread stands."""
    app, owner = call.server.app, call.server.app.store.owner_of(call.thread_id)
    if owner is not None and owner != call.caller.owner:
        raise not_found("conversation", call.thread_id)
    if _was_taken(call):
        return
    if owner is None:
        _start(call, turn, None)
        return
    thread = app.get(call.thread_id)
    if thread.graph and turn.graph not in (None, thread.graph):
        raise Problem(409, f"This is a conversation with {thread.graph!r}. Begin another one under an id of its own.")
    if thread.status is RunStatus.WAITING:
        _answer(call, turn, thread)
    elif thread.status in (RunStatus.BLOCKED, RunStatus.DEAD):
        why = sentence(f"Thread {call.thread_id!r} is {thread.status}: {thread.error}")
        raise Problem(409, f"{why} Somebody must see to it, and release it.", status=thread.status.value)
    else:
        _start(call, turn, thread)


def _was_taken(call: _Call) -> bool:
    """Whether a request under the same key has come before: what it did must not be done again, whatever that was."""
    if call.key is None:
        return False
    if call.server.app.store.request_of(call.caller.owner, call.key) == call.thread_id:
        return True
    return answered_under(call.server, call.caller, call.thread_id, call.key) is not None


def _answer(call: _Call, turn: Turn, thread: Thread) -> None:
    need(call.caller, RESOLVE)
    asking = [wait for wait in thread.waits for _ in range(_questions_in(wait))]
    if len(asking) != 1:
        listed = [{"wait_id": wait.id, "waiting_for": wait.waiting_for} for wait in thread.waits]
        why = "several questions are open" if asking else "nobody is asked anything"
        detail = f"Thread {call.thread_id!r} waits, and {why}. See its waits, and answer one of them there."
        raise Problem(409, detail, status="waiting", waits=listed)
    give(call.server, call.caller, asking[0].id, Given(turn.input, "conversation", None, call.key))


def _questions_in(wait: Wait) -> int:
    """Count what a wait asks of people."""
    if wait.condition is None:
        return 1
    return sum(leaf.kind == "approval" for leaf in leaves(wait.condition, 0))


def _start(call: _Call, turn: Turn, thread: Thread | None) -> None:
    need(call.caller, RUN)
    app, name = call.server.app, turn.graph or (None if thread is None else thread.graph)
    graph = None if name is None else app.graphs.find(name)
    if name is None or graph is None:
        said = "Say who is spoken to: graph" if name is None else f"There is no graph {name!r} here"
        raise Problem(422, f"{said}. Known: {app.graphs.listed()}.")
    given = turn.input
    if isinstance(given, str) and "messages" in graph.spec.channels:
        given = {"messages": [{"role": "user", "content": given}]}
    app.start(
        name,
        {} if given is None else given,
        thread_id=call.thread_id,
        owner=call.caller.owner,
        key=call.key,
        if_busy=turn.if_busy,
    )
