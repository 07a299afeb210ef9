"""Finds the form of a type: a list of questions, of which the first that says yes decides."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import math
import typing
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin
from uuid import UUID

from bide.errors import InterruptError
from bide.shape import strings
from bide.shape.forms import (
    Alias,
    Alternatives,
    Anything,
    Choice,
    Constrained,
    Field,
    Form,
    Inner,
    Items,
    Record,
    Row,
    Scalar,
    Table,
)
from bide.shape.model_form import Model
from bide.shape.models import is_model
from bide.shape.plain import NotPlainError, to_plain
from bide.shape.vocabulary import Schema

ACCEPTED = (
    "a JSON Schema dict, a pydantic model, a dataclass, a TypedDict, a NamedTuple, an Enum, str, int, float, bool, "
    "None, Any, datetime, date, time, UUID, Decimal, or Literal, Optional, Union, Annotated, list, tuple, set and dict "
    "of these"
)


def form_of(shape: object) -> Form:
    """Return the form of a type, or raise InterruptError when an answer cannot have it."""
    for recognise in _QUESTIONS:
        if (form := recognise(shape)) is not None:
            return form
    raise InterruptError(f"{shape!r} cannot say what an answer must look like. Give {ACCEPTED}.")


def _later(shape: object) -> Inner:
    return partial(form_of, shape)


# --- single values ----------------------------------------------------------------------------------------------------


def _as_is(value: object) -> object:
    return value


_SCALARS = (
    Scalar(str, {"type": "string"}, _as_is),
    Scalar(bool, {"type": "boolean"}, _as_is),
    Scalar(int, {"type": "integer"}, int),
    Scalar(float, {"type": "number"}, float),
    Scalar(NoneType, {"type": "null"}, _as_is),
    Scalar(datetime, {"type": "string", "format": "date-time"}, strings.parse_datetime),
    Scalar(date, {"type": "string", "format": "date"}, strings.parse_date),
    Scalar(time, {"type": "string", "format": "time"}, strings.parse_time),
    Scalar(UUID, {"type": "string", "format": "uuid"}, strings.parse_uuid),
    # No checker knows the format "decimal", so the pattern does the work.
    Scalar(Decimal, {"type": "string", "format": "decimal", "pattern": strings.DECIMAL_PATTERN}, strings.parse_decimal),
)


def _scalar(shape: object) -> Form | None:
    if shape is None:
        shape = NoneType
    return next((scalar for scalar in _SCALARS if scalar.type is shape), None)


def _anything(shape: object) -> Form | None:
    return Anything() if shape is Any or shape is object else None


def _choice(shape: object) -> Form | None:
    if isinstance(shape, type) and issubclass(shape, Enum):
        return Choice(tuple(shape), shape)
    return Choice(get_args(shape)) if get_origin(shape) is Literal else None


# --- named types with parts -------------------------------------------------------------------------------------------


def _model(shape: object) -> Form | None:
    return Model(shape) if is_model(shape) else None


def _dataclass(shape: object) -> Form | None:
    if not isinstance(shape, type) or not dataclasses.is_dataclass(shape):
        return None
    hints = _hints(shape)
    for name, hint in hints.items():
        if isinstance(hint, dataclasses.InitVar) or hint is dataclasses.InitVar:
            raise InterruptError(
                f"The dataclass {shape.__name__!r} has the InitVar {name!r}, which cannot be read back from an "
                f"instance. Make it a field, or give another type."
            )
    fields = tuple(
        Field(part.name, _later(hints[part.name]), _is_required(part), _default(part.default))
        for part in dataclasses.fields(shape)
        if part.init
    )
    return Record(shape, fields, _documentation(shape), has_instances=True)


def _is_required(part: dataclasses.Field[Any]) -> bool:
    return part.default is dataclasses.MISSING and part.default_factory is dataclasses.MISSING


def _typed_dict(shape: object) -> Form | None:
    # By its attribute, since typing_extensions has a TypedDict of its own.
    if not isinstance(shape, type) or not issubclass(shape, dict) or not hasattr(shape, "__required_keys__"):
        return None
    fields = tuple(
        Field(name, _later(hint), _requirement(hint, name in shape.__required_keys__))
        for name, hint in _hints(shape).items()
    )
    return Record(shape, fields, _documentation(shape), has_instances=False)


_QUALIFIERS = (Required, NotRequired, getattr(typing, "ReadOnly", Required))


def _requirement(hint: object, by_default: bool) -> bool:
    # `__required_keys__` knows nothing of a Required inside an annotation that was written as a string.
    while (origin := get_origin(hint)) in (Annotated, *_QUALIFIERS):
        if origin in (Required, NotRequired):
            return origin is Required
        hint = get_args(hint)[0]
    return by_default


def _named_tuple(shape: object) -> Form | None:
    if not isinstance(shape, type) or not issubclass(shape, tuple) or not hasattr(shape, "_fields"):
        return None
    names: tuple[str, ...] = shape._fields
    hints = _hints(shape)
    places = tuple(_later(hints.get(name, Any)) for name in names)
    return Row(places, names, optional=len(getattr(shape, "_field_defaults", ())), owner=shape)


def _hints(owner: type) -> dict[str, Any]:
    try:
        return _resolved(owner)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise InterruptError(
            f"An annotation of {owner.__name__!r} cannot be resolved: {error}. Define the types it names in its module."
        ) from error


def _resolved(owner: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError:
        # A class that is defined inside a function and holds itself: its own name is the one we do know.
        return typing.get_type_hints(owner, localns={owner.__name__: owner}, include_extras=True)


def _documentation(owner: type) -> Schema:
    text = owner.__dict__.get("__doc__")
    if not isinstance(text, str) or text.startswith(f"{owner.__name__}("):  # what dataclass writes by itself
        return {}
    return {"description": inspect.cleandoc(text)}


def _default(default: object) -> Schema:
    """Return the default as a note to the form, if JSON can write it."""
    if default is dataclasses.MISSING:
        return {}
    try:
        plain = to_plain(default)
    except NotPlainError:
        return {}
    is_json = plain is None or isinstance(plain, (str, int)) or (isinstance(plain, float) and math.isfinite(plain))
    return {"default": plain} if is_json else {}


# --- types of types ---------------------------------------------------------------------------------------------------

_LISTS: dict[type, Callable[[list[object]], object]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
}
_SETS: dict[type, Callable[[list[object]], object]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _items(shape: object) -> Form | None:
    origin = get_origin(shape) or shape
    if not isinstance(origin, type):
        return None
    item = _later((*get_args(shape), Any)[0])
    if origin in _LISTS:
        return Items(_LISTS[origin], item)
    return Items(_SETS[origin], item, unique=True) if origin in _SETS else None


def _tuple(shape: object) -> Form | None:
    if shape is tuple or shape is typing.Tuple:  # noqa: UP006 - the old name, without brackets
        return Items(tuple, _later(Any))
    if get_origin(shape) is not tuple:
        return None
    places = get_args(shape)
    if len(places) == 2 and places[1] is ...:
        return Items(tuple, _later(places[0]))
    return Row(tuple(_later(place) for place in places))


def _table(shape: object) -> Form | None:
    if not any((get_origin(shape) or shape) is table for table in _TABLES):
        return None
    key, value = get_args(shape) or (Any, Any)
    return Table(_later(key), _later(value))


def _wrapper(shape: object) -> Form | None:
    origin, inner = get_origin(shape), get_args(shape)
    if origin in (Union, UnionType):
        return Alternatives(inner, tuple(_later(member) for member in inner))
    if origin is Annotated:
        return Constrained(_later(inner[0]), inner[1:])
    if origin in _QUALIFIERS:
        return form_of(inner[0])
    return None


def _alias(shape: Any) -> Form | None:
    if isinstance(shape, typing.NewType):
        return form_of(shape.__supertype__)
    # By its name, since Python 3.11 has it only in typing_extensions.
    if type(shape).__name__ == "TypeAliasType":
        return Alias(shape.__name__, shape, lambda: form_of(shape.__value__))
    return None


_QUESTIONS: tuple[Callable[[object], Form | None], ...] = (
    _scalar,
    _anything,
    _choice,
    _model,
    _dataclass,
    _typed_dict,
    _named_tuple,
    _items,
    _tuple,
    _table,
    _wrapper,
    _alias,
)
