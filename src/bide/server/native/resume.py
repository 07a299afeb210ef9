"""`POST /threads/{id}/resume`: answer the question of a thread, and be told truthfully what came of it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query
from pydantic import Field

from bide.runtime.views import Wait
from bide.server.caller import RESOLVE, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_thread, owned_wait
from bide.server.native.answering import Answered, Given, answered_under, give
from bide.server.native.described import (
    Asked,
    Id,
    IdempotencyKey,
    IfMatch,
    LimitedAnswer,
    Text,
    ThreadId,
    Words,
    refusals,
    version_in,
)
from bide.server.native.resting import Rest, rest_of, standing, until_rest
from bide.server.problems import Problem, not_found
from bide.store.listing import read_shown

router = APIRouter(tags=["threads"])


class Resume(Asked):
    """An answer to what a thread waits for."""

    value: Any = Field(default=None, description="The answer; only where nothing is asked it may be left out.")
    wait_id: Id | None = Field(default=None, description="Which question; it may be left out when there is one.")
    interrupt_id: Id | None = Field(default=None, description="The same, as clients of LangGraph call it.")
    leaf: Text | None = Field(default=None, description="Where a wait needs several decisions: which one this is.")
    comment: Words | None = Field(default=None, description="What is said beside it: the node hears it, too.")
    idempotency_key: Text | None = Field(default=None, description="As the header `Idempotency-Key`.")


class Resumed(Answered):
    """What came of an answer, and, if somebody waited for it, of the run that went on."""

    result: Rest | None = None


class _Call(NamedTuple):
    server: Context
    caller: Caller
    thread_id: str


@router.post(
    "/threads/{thread_id}/resume",
    responses=refusals(404, 409, 410, 412, 413),
    dependencies=[LimitedAnswer],
)
async def resume_thread(
    server: Server,
    who: Who,
    thread_id: ThreadId,
    body: Resume,
    *,
    wait: Annotated[bool, Query(description="Whether to wait until the thread rests again.")] = False,
    longest: Annotated[
        float, Query(alias="timeout", ge=0, le=300, description="How many seconds to wait at most.")
    ] = 30.0,
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> Resumed:
    """Answer the question of a thread, which goes on, once.

    A thread that is not paused is 400, with its status: `already_completed`, `running`, `failed` and so on. With
    `wait=true` the answer comes when the thread rests again, with its values in `result`.
    """
    need(who, RESOLVE)
    call = _Call(server, who, thread_id)
    key = idempotency_key or body.idempotency_key
    answered = await run_sync(_resume, call, body, key, version_in(if_match))
    if not wait:
        return Resumed(**answered.model_dump())
    await until_rest(server, thread_id, longest)
    return Resumed(**answered.model_dump(), result=await run_sync(rest_of, server.app, thread_id))


def _resume(call: _Call, body: Resume, key: str | None, expected: str | None) -> Answered:
    owned_thread(call.server.app, call.caller, call.thread_id)
    wait_id = body.wait_id or body.interrupt_id
    if wait_id is None:
        wait_id = _only_question(call, body, key)
    elif owned_wait(call.server.app, call.caller, wait_id).thread_id != call.thread_id:
        raise not_found("wait", wait_id)
    given = Given(body.value, "resume", body.leaf, key, expected, comment=body.comment)
    return give(call.server, call.caller, wait_id, given)


def _only_question(call: _Call, body: Resume, key: str | None) -> str:
    """Return the one wait that an answer can be for."""
    waiting = call.server.app.waits(thread_id=call.thread_id, most=100)
    if not waiting:
        return answered_under(call.server, call.caller, call.thread_id, key) or _not_paused(call)
    if len(waiting) > 1:
        listed = [{"wait_id": wait.id, "waiting_for": wait.waiting_for} for wait in waiting]
        raise Problem(
            422,
            f"Thread {call.thread_id!r} has {len(waiting)} open questions. Say which one this answers: wait_id.",
            error="AmbiguousResumeError",
            waits=listed,
        )
    if not _is_answer(waiting[0], body):
        raise Problem(422, f"Thread {call.thread_id!r} asks something. Give the answer as value; null is one, too.")
    return waiting[0].id


def _is_answer(wait: Wait, body: Resume) -> bool:
    """Whether a body says something: nothing at all must not pass for an answer, except where nothing is asked."""
    return wait.kind == "pause" or "value" in body.model_fields_set


def _not_paused(call: _Call) -> str:
    found = read_shown(call.server.app.store, call.thread_id)
    status = standing(None if found is None or found.run is None else found.run.status)
    word = {"done": "already_completed", "waiting": "running"}.get(status, status)
    raise Problem(
        400,
        f"Thread {call.thread_id!r} is not paused: it is {word}. Nothing was written.",
        error="Thread is not paused",
        status=word,
    )
