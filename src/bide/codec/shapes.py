"""The kinds of class that can be stored: what they share, dataclasses and named tuples.

Putting an instance together never calls `__init__`, `__post_init__` or a validator: what was taken apart comes back as
it was, and stored bytes cannot make user code run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

from bide.codec.refusal import Refused
from bide.codec.wire import DATACLASS, NAMED_TUPLE
from bide.errors import CodecError

Fields = dict[str, Any]
Default = Callable[[], Any]


class Shape(Protocol):
    """How instances of one class are written and read."""

    code: int

    def take_apart(self, value: Any) -> list[Any]:
        """Return the fields, and then what else the instance is made of."""
        ...

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return an equal instance."""
        ...


class DataclassShape:
    """Stores a dataclass by its fields, `init=False` ones too."""

    code = DATACLASS

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._defaults = {f.name: default_of(f) for f in dataclasses.fields(cls)}
        self._names = frozenset(self._defaults)
        self._slots = slots_beside(cls, self._names)

    def take_apart(self, value: Any) -> list[Any]:
        """Return the values of the fields."""
        if self._slots or not self._names.issuperset(getattr(value, "__dict__", ())):
            refuse_hidden_state(value, self._names, self._slots)
        try:
            return [{name: getattr(value, name) for name in self._defaults}]
        except AttributeError as error:
            raise Refused(value, f"one of its fields was never set ({error})") from error

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return an instance with these fields."""
        built: Any = object.__new__(self._cls)
        for name, value in complete(self._cls, fields, self._defaults).items():
            object.__setattr__(built, name, value)  # the class may be frozen
        return built


def default_of(which: dataclasses.Field[Any]) -> Default | None:
    """Return what makes the default of a dataclass field, if it has one."""
    if which.default_factory is not dataclasses.MISSING:
        return which.default_factory
    return None if which.default is dataclasses.MISSING else _constant(which.default)


class NamedTupleShape:
    """Stores a named tuple by its fields."""

    code = NAMED_TUPLE

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        defaults = cls._field_defaults
        self._defaults = {name: _constant(defaults[name]) if name in defaults else None for name in cls._fields}

    def take_apart(self, value: Any) -> list[Any]:
        """Return the elements by name."""
        refuse_hidden_state(value, (), ())
        return [dict(zip(self._defaults, value, strict=True))]

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return a named tuple of these elements."""
        return tuple.__new__(self._cls, complete(self._cls, fields, self._defaults).values())


def _constant(value: Any) -> Default:
    return lambda: value


def complete(cls: type, fields: Fields, known: Mapping[str, Default | None]) -> Fields:
    """Return the fields in the class's order, with defaults for new ones; anything else needs an upcast."""
    for name in fields:
        if name not in known:
            raise _misfit(cls, f"has no field {name!r} any more")
    whole = {}
    for name, default in known.items():
        if name in fields:
            whole[name] = fields[name]
        elif default is not None:
            whole[name] = default()
        else:
            raise _misfit(cls, f"has a new field {name!r} without a default")
    return whole


def _misfit(cls: type, what: str) -> CodecError:
    return CodecError(
        f"the class {cls.__qualname__!r} {what}, so what was stored does not fit it. Raise its version and say how to "
        f"convert what is stored: @checkpointable(…, version=2, upcast={{1: lambda fields: {{…}}}})"
    )


def refuse_hidden_state(value: Any, known: Container[str], slots: Iterable[str]) -> None:
    """Refuse an instance with attributes that are no fields: they would not come back."""
    cls = type(value)
    hidden = [name for name in getattr(value, "__dict__", ()) if name not in known and not _is_derived(cls, name)]
    hidden += [name for name in slots if hasattr(value, name)]
    if hidden:
        raise Refused(value, f"its attribute {hidden[0]!r} is no field of {cls.__qualname__!r} and would be lost")


def _is_derived(cls: type, name: str) -> bool:
    # `Box[int](…)` leaves a note of its type arguments on the instance.
    return name == "__orig_class__" or isinstance(getattr(cls, name, None), cached_property)


def slots_beside(cls: type, known: Container[str]) -> tuple[str, ...]:
    """Return the slots of the class and its bases that are no fields."""
    slots: list[str] = []
    for base in cls.__mro__:
        own = base.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else own
    return tuple(name for name in slots if name not in known and name not in ("__dict__", "__weakref__"))


def builtin_base(cls: type) -> type | None:
    """Return the base that is written in C, and so may hold state that no attribute shows."""
    is_made_by_class_statement = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    for base in cls.__mro__:
        if not base.__flags__ & is_made_by_class_statement:
            return None if base is object else base
    return None
