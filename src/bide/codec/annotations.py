"""Finding the classes that an annotation speaks of."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

from bide.codec.models import is_pydantic_model


def types_in(annotation: object) -> Iterator[type]:
    """Yield every dataclass, pydantic model, Enum and NamedTuple that the annotation or its fields mention, once.

    Names that cannot be resolved, such as those imported for type checkers only, are passed over: a value of such a
    class is then refused when it is written, with its path.
    """
    seen: set[int] = set()
    waiting: list[object] = [annotation]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        if isinstance(found, type):
            # Only what lives as long as its module is remembered by id: ids of passing objects are used again.
            seen.add(id(found))
            if _is_storable(found):
                yield found
            waiting += reversed(_field_annotations(found))
        else:
            if type(found).__name__ == "TypeAliasType":
                seen.add(id(found))
            waiting += reversed(_parts(found))


def _is_storable(cls: type) -> bool:
    return (
        (issubclass(cls, Enum) and len(cls.__members__) > 0)
        or dataclasses.is_dataclass(cls)
        or is_pydantic_model(cls)
        or is_named_tuple(cls)
    )


def is_named_tuple(cls: type) -> bool:
    """Tell whether the class was made by `NamedTuple` or `namedtuple`."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def _parts(annotation: Any) -> list[object]:
    """Return what a generic, union, alias or other special form is made of."""
    if isinstance(annotation, list | tuple):  # the parameters of a Callable
        return list(annotation)
    if isinstance(annotation, typing.TypeVar):
        return [annotation.__bound__, *annotation.__constraints__]
    if isinstance(annotation, typing.NewType):
        return [annotation.__supertype__]
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return [annotation.__origin__]
    if origin is typing.Literal:
        return [type(value) for value in typing.get_args(annotation)]
    if origin is not None:
        return [origin, *typing.get_args(annotation)]
    if type(annotation).__name__ == "TypeAliasType":  # `type X = …`, from Python 3.12 on
        return [annotation.__value__]
    return []


def _field_annotations(cls: type) -> list[object]:
    if is_pydantic_model(cls):
        # The model knows better than its annotations: it has filled in type arguments and forward references.
        return [info.annotation for info in typing.cast(Any, cls).model_fields.values()]
    if typing.is_typeddict(cls) or dataclasses.is_dataclass(cls) or is_named_tuple(cls):
        return list(_resolved(cls).values())
    return []


def _resolved(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:  # noqa: BLE001 - resolving runs whatever the annotation says; one bad name must not hide the rest
        return _resolved_one_by_one(cls)


def _resolved_one_by_one(cls: type) -> dict[str, Any]:
    resolved: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        module = sys.modules.get(base.__module__)
        scope = {**vars(base), base.__name__: base}
        for name, annotation in _own_annotations(base).items():
            holder = types.SimpleNamespace(__annotations__={name: annotation})
            try:
                resolved |= typing.get_type_hints(holder, vars(module) if module else {}, scope, include_extras=True)
            except Exception:  # noqa: BLE001 - as above
                continue
    return resolved


def _own_annotations(cls: type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls)
    except NameError:  # from Python 3.14 on annotations are computed when asked for
        return {}
