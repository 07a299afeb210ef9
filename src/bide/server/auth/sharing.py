"""Callers who share an owner, and whom only the filters of the application's handlers keep apart.

The routes that LangGraph's clients know ask those handlers themselves, with what they are about to do. All others are
asked for here, before they run: one that is about a thread or a wait passes if the thread matches the filter; one that
is about many at once, and could not leave any out, passes only for callers without a filter.
"""

from __future__ import annotations

import re

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from bide.server.auth.access import is_safe
from bide.server.auth.authorize import aauthorize
from bide.server.auth.filters import matches
from bide.server.auth.paths import path_of
from bide.server.auth.refusal import Refused
from bide.server.caller import Caller
from bide.server.problems import Problem, not_found
from bide.store import Store
from bide.store.notes import noted_thread

_ASKS_ITSELF = re.compile(
    r"/(assistants|runs|store)(/.*)?"
    r"|/threads(/(search|count|prune))?"
    r"|/threads/[^/]+(/(state|history|runs|stream|copy|commands)(/.*)?)?"
    r"|/(info|docs|openapi\.json|keys|audit|metrics)(/.*)?",
    re.DOTALL,
)
_LISTS_THREADS = re.compile(r"/threads")
_OF_A_WAIT = re.compile(r"(?:/inbox)?/waits/([^/]+)(?:/.*)?", re.DOTALL)
_OF_A_THREAD = re.compile(r"/threads/([^/]+)/.*|/conversations/([^/]+)(?:/.*)?|/inbox/threads/(.+)", re.DOTALL)


async def check_shared(store: Store, caller: Caller, scope: Scope) -> None:
    """Refuse a request to a route that does not ask the application's handlers, unless it may be sent."""
    path, is_read = path_of(scope), scope["type"] == "websocket" or is_safe(scope["method"])
    asks_itself = _ASKS_ITSELF.fullmatch(path) and not (is_read and _LISTS_THREADS.fullmatch(path))
    if caller.authorizer is None or asks_itself:
        return
    try:
        await _check(store, caller, path, is_read)
    except Problem as problem:
        raise Refused(problem.status, problem.detail, problem.headers) from None


async def _check(store: Store, caller: Caller, path: str, is_read: bool) -> None:
    wait_id, thread_id = _subject(path, is_read)
    if not wait_id and not thread_id:
        if await aauthorize(caller, "threads", "search", {}):
            raise Refused(
                403,
                "This shows or changes things of several callers at once, and the application's handlers let this one "
                "see only some. Let the authenticate handler return an `owner`: then each sees their own.",
            )
        return
    if wait_id:
        thread_id = await run_in_threadpool(_thread_of, store, wait_id)
    filter_ = await aauthorize(caller, "threads", "read" if is_read else "update", {"thread_id": thread_id})
    if not filter_:
        return
    thread = await run_in_threadpool(noted_thread, store, caller.owner, thread_id)
    if thread is None or not matches(filter_, thread.metadata):
        raise not_found("wait", wait_id) if wait_id else not_found("thread", thread_id)


def _subject(path: str, is_read: bool) -> tuple[str, str]:
    """Return the wait or the thread that a request is about."""
    wait, thread = _OF_A_WAIT.fullmatch(path), _OF_A_THREAD.fullmatch(path)
    if wait is not None:
        return wait[1], ""
    name = "" if thread is None else next(filter(None, thread.groups()))
    if thread is not None and thread[3] and not is_read:
        name = name.rpartition("/")[0]  # what is to be done stands behind the id, which may hold slashes itself
    return "", name


def _thread_of(store: Store, wait_id: str) -> str:
    wait = store.wait(wait_id)
    return "" if wait is None else wait.thread_id
