"""An application's own way of authentication: an `Auth` object as LangGraph's, loaded by what it holds.

Nothing of `langgraph_sdk` is imported: `_authenticate_handler`, `_handlers` and `_global_handlers` are what its source
promises to servers, and any object with these three will do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from bide.errors import SettingsError
from bide.server.auth.paths import routes_of
from bide.server.auth.refusal import Refused
from bide.server.auth.users import User

logger = logging.getLogger("bide.auth")

Inject = Callable[[Request], Awaitable[Any]]


class CustomAuth:
    """What an application has said about who may come in, and who may do what."""

    def __init__(self, handler: Any) -> None:
        auth = load_auth(handler) if isinstance(handler, str) else handler
        missing = [
            name for name in ("_authenticate_handler", "_handlers", "_global_handlers") if not hasattr(auth, name)
        ]
        if missing:
            raise SettingsError(
                f"auth.handler is a {type(auth).__name__}, and no Auth object: it has no {', '.join(missing)}. Make "
                f"one with `from langgraph_sdk import Auth; auth = Auth()`."
            )
        if auth._authenticate_handler is None:
            raise SettingsError("The Auth object has no handler that says who calls: add one with @auth.authenticate.")
        self.auth = auth
        self.authenticator: Callable[..., Any] = auth._authenticate_handler
        self._wanted = _wanted(self.authenticator)

    async def user(self, request: Request) -> User:
        """Ask the application who has sent a request."""
        given = {name: await _INJECTED[name](request) for name in self._wanted}
        try:
            if inspect.iscoroutinefunction(self.authenticator):
                said = await self.authenticator(**given)
            else:
                said = await run_in_threadpool(self.authenticator, **given)
            return User(said)
        except Exception as problem:
            raise refusal_of(problem, 401) from problem

    def handler(self, resource: str, action: str) -> Callable[..., Any] | None:
        """Return the most specific handler for what is about to be done."""
        for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")):
            found = self.auth._handlers.get(key)
            if found:
                handler: Callable[..., Any] = found[-1]
                return handler
        return self.auth._global_handlers[-1] if self.auth._global_handlers else None


def refusal_of(problem: Exception, status: int) -> Refused:
    """Return what a caller is told of what a handler raised.

    An HTTPException, LangGraph's or Starlette's, is respected; an assertion that does not hold is a no; whatever else
    is a failure of the handler, and a door that fails stays shut.
    """
    if isinstance(problem, Refused):
        return problem
    said = getattr(problem, "status_code", None)
    if isinstance(said, int):
        headers = dict(getattr(problem, "headers", None) or {})
        if said == 401 and not any(name.lower() == "www-authenticate" for name in headers):
            headers["WWW-Authenticate"] = 'Bearer realm="bide"'
        return Refused(said, str(getattr(problem, "detail", "") or problem), headers)
    if isinstance(problem, AssertionError):
        return Refused(status, str(problem) or "The application says no.")
    logger.error("The handler of the application failed: %s", problem, exc_info=problem)
    return Refused(500, "Who calls could not be found out; the server's log says why.")


# ── What a handler may ask for, by the names of its parameters ─────────────────────────────────────────────────────


class _Headers(dict[bytes, bytes]):
    """Headers as LangGraph hands them over, by bytes; who asks with a text is answered with one."""

    def __getitem__(self, name: Any) -> Any:
        return (
            super().__getitem__(name) if isinstance(name, bytes) else super().__getitem__(_raw(name)).decode("latin-1")
        )

    def __contains__(self, name: object) -> bool:
        return super().__contains__(_raw(name) if isinstance(name, str) else name)

    def get(self, name: Any, default: Any = None) -> Any:
        """Return a header, or something else."""
        return self[name] if name in self else default  # noqa: SIM401 — that would be this very method


def _raw(name: str) -> bytes:
    return name.lower().encode("latin-1")


async def _body(request: Request) -> Any:
    try:
        return await request.json()
    except (ValueError, RecursionError):
        return {}


async def _path_params(request: Request) -> dict[str, Any]:
    """Return what the path says; the route has not been looked for yet."""
    for route in routes_of(request.scope.get("app")):
        match, found = route.matches(request.scope)
        if match.value == 2:  # Match.FULL
            return dict(found.get("path_params", {}))
    return {}


async def _of(value: Any) -> Any:
    return value


_INJECTED: Mapping[str, Inject] = {
    "request": lambda request: _of(request),
    "body": _body,
    "path": lambda request: _of(request.url.path),
    "method": lambda request: _of(request.method),
    "path_params": _path_params,
    "query_params": lambda request: _of(dict(request.query_params)),
    "headers": lambda request: _of(_Headers(request.headers.raw)),
    "authorization": lambda request: _of(request.headers.get("authorization")),
    "scopes": lambda request: _of([]),
    "scope": lambda request: _of(request.scope),
}


def _wanted(handler: Callable[..., Any]) -> list[str]:
    """Name what a handler is to be given, or refuse one that asks for something else."""
    parameters = inspect.signature(handler).parameters.values()
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    unknown = [one.name for one in named if one.name not in _INJECTED and one.default is one.empty]
    if unknown:
        raise SettingsError(
            f"The handler {getattr(handler, '__name__', handler)!r} asks for {', '.join(unknown)}, which nobody gives "
            f"it. It may ask for {', '.join(_INJECTED)}."
        )
    return [one.name for one in named if one.name in _INJECTED]


# ── Where the object comes from ────────────────────────────────────────────────────────────────────────────────────


def load_auth(place: str) -> Any:
    """Import what "file.py:auth" or "package.module:auth" names."""
    source, _, name = place.rpartition(":")
    if not source or not name:
        raise SettingsError(f"auth.handler {place!r} names no object: write 'file.py:auth' or 'package.module:auth'.")
    try:
        module = _from_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
    except ImportError as problem:
        raise SettingsError(f"auth.handler {place!r} cannot be imported: {problem}.") from problem
    if not hasattr(module, name):
        raise SettingsError(f"There is no {name!r} in {source!r}, which auth.handler names.")
    return getattr(module, name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bide_auth_{path.stem}", path.resolve())
    if not path.is_file() or spec is None or spec.loader is None:
        raise SettingsError(f"There is no file {str(path)!r}, which auth.handler names.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # or dataclasses in it could not find their own module
    spec.loader.exec_module(module)
    return module
