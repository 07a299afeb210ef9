"""What a caller may do with a thing, where the application has handlers for that: `@auth.on.threads.create` and so on.

A route asks once, before it does anything, with what it is about to do. The handler may change that (`value`), and
answers with a filter: what does not match is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.from_thread
from starlette.requests import HTTPConnection

from bide.server.auth.custom import CustomAuth, refusal_of
from bide.server.auth.filters import Filter, matches, unknown_operators
from bide.server.auth.refusal import Refused
from bide.server.caller import ANONYMOUS, Caller
from bide.server.problems import Problem, not_found

__all__ = ["Filter", "aauthorize", "authorize", "check_visible", "matches"]


@dataclass(slots=True)
class AuthContext:
    """What a handler is told about who does what; the same names as LangGraph's."""

    permissions: list[str]
    user: Any
    resource: str
    action: str


def authorize(
    who: HTTPConnection | Caller, resource: str, action: str, value: MutableMapping[str, Any] | None = None
) -> Filter | None:
    """Ask whether a caller may do something; return which metadata it must have, or None for anything.

    For routes that are a plain `def`. `value` is what is going to be done, and may be changed by the handler. A no is a
    `Problem` with 403.
    """
    caller = _caller(who)
    if not isinstance(caller.authorizer, CustomAuth) or caller.authorizer.handler(resource, action) is None:
        return None
    _check_no_loop()
    return anyio.from_thread.run(partial(aauthorize, caller, resource, action, value))


async def aauthorize(
    who: HTTPConnection | Caller, resource: str, action: str, value: MutableMapping[str, Any] | None = None
) -> Filter | None:
    """Do what `authorize` does, on an event loop."""
    caller = _caller(who)
    custom = caller.authorizer
    handler = custom.handler(resource, action) if isinstance(custom, CustomAuth) else None
    if handler is None:
        return None
    user = caller.user
    context = AuthContext(list(getattr(user, "permissions", [])), user, resource, action)
    try:
        said = await handler(ctx=context, value={} if value is None else value)
    except Exception as problem:
        raise _problem(refusal_of(problem, 403)) from problem
    if said is None or said is True:
        return None
    if said is False:
        raise Problem(403, f"The application does not let {caller.identity!r} do {action!r} with {resource}.")
    return _checked(said, resource, action)


def check_visible(filter_: Filter | None, metadata: Mapping[str, Any] | None, what: str, name: str) -> None:
    """Say that something is not there, if its caller may not see it."""
    if not matches(filter_, metadata):
        raise not_found(what, name)


def _checked(said: Any, resource: str, action: str) -> Filter:
    """Refuse a filter that could not be checked: passed over, it would let too much through."""
    if not isinstance(said, Mapping):
        problem = f"returned a {type(said).__name__}: it must be None, True, False or a filter"
    elif unknown := unknown_operators(said):
        problem = f"returned a filter with {', '.join(unknown)}; only $eq and $contains are known"
    else:
        return said
    raise _problem(refusal_of(TypeError(f"the handler for {resource}.{action} {problem}"), 403))


def _problem(refused: Refused) -> Problem:
    return Problem(refused.status, refused.detail, headers=refused.headers)


def _caller(who: HTTPConnection | Caller) -> Caller:
    found: Caller = who if isinstance(who, Caller) else who.scope.get("bide.caller", ANONYMOUS)
    return found


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("authorize() was called on the event loop, which it would block: await aauthorize() there.")
