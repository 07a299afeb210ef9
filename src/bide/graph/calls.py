"""How a user's function wants to be called: which parameter is the state, and which ones the engine fills."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bide.engine.spec import Call
from bide.errors import GraphError
from bide.types import Command, Runtime, StreamWriter

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = {name: name for name in ("config", "runtime", "writer", "store", "previous", "error", "parallel_results")}


def read_call(function: Any, what: str) -> Call:
    """Read the signature of a node or of a conditional edge; a mistake is told with the parameter's name."""
    target, twin = _callable(function, what)
    is_async = _is_async(target)
    if twin is not None or not callable(function):
        return Call(target, is_async, True, _config_of(target), twin)
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return Call(target, is_async)
    hints = _hints(target)
    injected: list[tuple[str, str]] = []
    takes_state = False
    for parameter in parameters:
        filled = _filled(parameter, hints)
        if filled is not None and (takes_state or parameter.name in _BY_NAME):
            injected.append((parameter.name, filled))
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            takes_state = takes_state or parameter.kind is parameter.VAR_POSITIONAL
        elif not takes_state and parameter.kind is not parameter.KEYWORD_ONLY:
            takes_state = True
        elif parameter.default is parameter.empty:
            raise GraphError(
                f"{what} has a parameter {parameter.name!r} that nobody fills. A node takes the state first, and may "
                f"name `config`, `runtime`, `store`, `writer` or `previous`; give others a default."
            )
    return Call(target, is_async, takes_state, tuple(injected))


def injected_of(function: Callable[..., Any]) -> tuple[tuple[tuple[str, str], ...], None, tuple[str, ...]]:
    """Return the parameters of a task that are filled for it, and the names of all that may come by position."""
    parameters = inspect.signature(function).parameters.values()
    hints = _hints(function)
    filled = [(parameter.name, _filled(parameter, hints)) for parameter in parameters]
    names = tuple(parameter.name for parameter in parameters if parameter.kind in _BY_POSITION)
    return tuple((name, what) for name, what in filled if what is not None), None, names


def types_of(function: Any) -> list[Any]:
    """Return the annotations of a function: what its values may be."""
    return list(_hints(function).values())


def own_schema(function: Any) -> Any:
    """Return the annotation of the state parameter, for nodes that read a schema of their own."""
    target = function if callable(function) else getattr(function, "invoke", None)
    try:
        first = next(iter(inspect.signature(target).parameters.values()), None)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if first is None or first.name in _BY_NAME else _hints(target).get(first.name)


def destinations_of(function: Any) -> tuple[str, ...]:
    """Return the names in a return annotation: `Literal["a", "b"]`, or `Command[Literal["a", "b"]]`."""
    hint = _hints(function).get("return") if callable(function) else None
    found: list[str] = []
    for part in (hint, *get_args(hint)):
        for inner in (part, *(get_args(part) if get_origin(part) is Command else ())):
            if get_origin(inner) is Literal:
                found += [name for name in get_args(inner) if isinstance(name, str)]
    return tuple(dict.fromkeys(found))


def name_of(function: Any) -> str | None:
    """Return the name under which a function is added when none is given."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) and name != "<lambda>" else None


def _callable(function: Any, what: str) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return what to call, and its async form if it has one: a runnable (`invoke`, `ainvoke`) has both."""
    sync, twin = getattr(function, "invoke", None), getattr(function, "ainvoke", None)
    is_plain = inspect.isroutine(function) or isinstance(function, functools.partial) or inspect.isclass(function)
    if not is_plain and (callable(sync) or callable(twin)):
        return (sync, twin) if callable(sync) else (twin, None)  # type: ignore[return-value]
    if callable(function):
        return function, None
    raise GraphError(f"{what} is {function!r}, which cannot be called. Give a function, or something with .invoke().")


def _config_of(invoke: Callable[..., Any]) -> tuple[tuple[str, str], ...]:
    """Hand a runnable the config of the run, if it takes one: callbacks, tags and metadata go with it."""
    try:
        return (("config", "config"),) if "config" in inspect.signature(invoke).parameters else ()
    except (TypeError, ValueError):
        return ()


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004 — its own, not whether


def _hints(function: Any) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    for target in (function, getattr(function, "__call__", None)):  # noqa: B004
        try:
            hints = get_type_hints(target)
        except (NameError, TypeError, AttributeError):
            hints = dict(getattr(target, "__annotations__", {}))
        if hints:
            return hints
    return {}


def _filled(parameter: inspect.Parameter, hints: dict[str, Any]) -> str | None:
    hint = hints.get(parameter.name)
    if hint is Runtime or get_origin(hint) is Runtime:
        return "runtime"
    if hint == StreamWriter or getattr(hint, "__name__", "") == "StreamWriter":
        return "writer"
    if getattr(hint, "__name__", "") in ("RunnableConfig", "BaseStore", "ItemStore", "NodeError"):
        return {"RunnableConfig": "config", "NodeError": "error"}.get(hint.__name__, "store")  # type: ignore[union-attr]
    return _BY_NAME.get(parameter.name)
