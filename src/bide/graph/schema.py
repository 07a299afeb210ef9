"""State schemas: TypedDict, dataclass, pydantic model or a dict of types, read into channels."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence, Set
from typing import Any, NamedTuple, get_args, get_origin

from bide.engine.channels import COPIED, Channel, LastValue, Reduced, lend
from bide.errors import GraphError, InvalidUpdateError
from bide.types import UNSET

Read = Callable[[Mapping[str, Any]], Any]

_ABSTRACT: dict[Any, type] = {
    Sequence: list,
    MutableSequence: list,
    Mapping: dict,
    MutableMapping: dict,
    Set: set,
    MutableSet: set,
}


class Schema(NamedTuple):
    """A state schema, read once."""

    keys: Mapping[str, Any]
    """Key → its annotation, with everything in `Annotated`."""
    read: Read
    """Makes what a node gets from channel values."""
    is_dict: bool


def read_schema(schema: Any) -> Schema:
    """Read a schema, or say why it is none."""
    if isinstance(schema, Mapping):
        return Schema(dict(schema), _dict_reader(tuple(schema)), is_dict=True)
    if not isinstance(schema, type):
        raise GraphError(_not_a_schema(schema))
    if typing.is_typeddict(schema) or (issubclass(schema, dict) and schema is not dict):
        keys = _hints(schema)
        return Schema(keys, _dict_reader(tuple(keys)), is_dict=True)
    if dataclasses.is_dataclass(schema):
        hints = _hints(schema)
        fields = {field.name: hints[field.name] for field in dataclasses.fields(schema)}
        return Schema(fields, _class_reader(schema, tuple(fields)), is_dict=False)
    if hasattr(schema, "model_fields"):
        hints = _hints(schema)
        fields = {name: hints[name] for name in schema.model_fields}
        return Schema(fields, _model_reader(schema, tuple(fields)), is_dict=False)
    raise GraphError(_not_a_schema(schema))


def is_schema(thing: Any) -> bool:
    """Whether a node's annotation names a state schema of its own."""
    if not isinstance(thing, type):
        return False
    return typing.is_typeddict(thing) or dataclasses.is_dataclass(thing) or hasattr(thing, "model_fields")


def _not_a_schema(schema: Any) -> str:
    return (
        f"{schema!r} is no state schema. Give StateGraph a TypedDict, a dataclass, a pydantic model, or a dict of key "
        f"→ type; a single value is a state with one key."
    )


def _hints(schema: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(schema, include_extras=True)
    except NameError as problem:
        raise GraphError(
            f"The annotations of {schema.__name__!r} cannot be read: {problem}. Define the types they name at the top "
            f"level of a module, or drop `from __future__ import annotations` there."
        ) from problem


# ── Channels ───────────────────────────────────────────────────────────────────────────────────────────────────────


def channel_of(key: str, annotation: Any) -> Channel:
    """Return the merge rule that an annotation asks for."""
    while get_origin(annotation) in (typing.Required, typing.NotRequired):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is not typing.Annotated:
        return LastValue()
    kind, *extras = get_args(annotation)
    for extra in reversed(extras):
        if isinstance(extra, Channel):
            return extra
        if isinstance(extra, type) and issubclass(extra, Channel):
            return extra()
        if callable(extra) and not isinstance(extra, type):
            return Reduced(_checked_reducer(key, extra), _empty(kind))
    return LastValue()


def _checked_reducer(key: str, reducer: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    try:
        parameters = inspect.signature(reducer).parameters.values()
    except (TypeError, ValueError):
        return reducer
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 2 or (len(positional) < 2 and not takes_any):
        name = getattr(reducer, "__name__", repr(reducer))
        raise GraphError(
            f"The reducer {name!r} of state key {key!r} must take two arguments (the value so far, the update); "
            f"it takes {len(required)}."
        )
    return reducer


def _empty(kind: Any) -> Callable[[], Any] | None:
    origin = get_origin(kind) or kind
    origin = _ABSTRACT.get(origin, origin)
    if origin in (list, dict, set, frozenset, tuple, int, float, str, bool, bytes, deque):
        return typing.cast("Callable[[], Any]", origin)
    return None


# ── What a node gets ───────────────────────────────────────────────────────────────────────────────────────────────
# Lists, dicts and sets are lent as copies, all the way down: what a node changes in place is its own business until it
# returns it.


def _dict_reader(keys: tuple[str, ...]) -> Read:
    return lambda values: _lent(values, keys)


def reader_with_extras(joins: frozenset[str]) -> Read:
    """Read the whole state, with keys that an edit brought in; only the graph's own barriers are left out."""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        if COPIED.isdisjoint(map(type, values.values())):
            lent = dict(values)
        else:
            lent = {key: lend(value) for key, value in values.items()}
        for join in joins:
            lent.pop(join, None)
        return lent

    return read


def _class_reader(schema: type, keys: tuple[str, ...]) -> Read:
    def read(values: Mapping[str, Any]) -> Any:
        try:
            return schema(**_lent(values, keys))
        except TypeError as problem:
            missing = [key for key in keys if key not in values]
            raise InvalidUpdateError(
                f"The state cannot be made into {schema.__name__}: {problem}. Keys without a value yet: "
                f"{', '.join(map(repr, missing)) or 'none'}. Give them in the input, or give the fields defaults."
            ) from problem

    return read


def _model_reader(schema: Any, keys: tuple[str, ...]) -> Read:
    return lambda values: schema.model_validate(_lent(values, keys))


def _lent(values: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: lend(values[key]) for key in keys if key in values}


# ── What a node gives back ─────────────────────────────────────────────────────────────────────────────────────────


def read_update(update: Any) -> Mapping[str, Any] | None:
    """Turn a dict, a dataclass instance or a model instance into key → value; None when it is none of them."""
    if update.__class__ is dict or isinstance(update, Mapping):
        return update
    if isinstance(update, type):
        return None
    if dataclasses.is_dataclass(update):
        return {field.name: getattr(update, field.name, UNSET) for field in dataclasses.fields(update)}
    if hasattr(update, "model_fields_set"):
        return {name: getattr(update, name) for name in update.model_fields_set}
    return None
