"""Registered subclasses of builtin types, such as `class Email(str)` (Ext 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bide.codec.shapes import Fields, refuse_hidden_state, slots_beside
from bide.codec.wire import BUILTIN_SUBCLASS
from bide.errors import CodecError


class _Builtin(NamedTuple):
    # `str(value)` or `list(value)` would call methods that the subclass may have overridden, and `cls(value)` its
    # `__init__`: both ways go by the builtin's own methods.
    plain: Callable[[Any], Any]
    rebuild: Callable[[Any, Any], Any]


def _filled(built: Any, fill: Callable[[Any, Any], Any], value: Any) -> Any:
    fill(built, value)
    return built


_BUILTINS: dict[type | None, _Builtin] = {
    str: _Builtin(lambda value: str.__getitem__(value, slice(None)), str.__new__),
    bytes: _Builtin(lambda value: bytes.__getitem__(value, slice(None)), bytes.__new__),
    int: _Builtin(int.__int__, int.__new__),
    float: _Builtin(float.__float__, float.__new__),
    tuple: _Builtin(lambda value: tuple(tuple.__iter__(value)), tuple.__new__),
    frozenset: _Builtin(lambda value: frozenset(frozenset.__iter__(value)), frozenset.__new__),
    list: _Builtin(
        lambda value: list(list.__iter__(value)), lambda cls, value: _filled(list.__new__(cls), list.extend, value)
    ),
    set: _Builtin(
        lambda value: set(set.__iter__(value)), lambda cls, value: _filled(set.__new__(cls), set.update, value)
    ),
    dict: _Builtin(
        lambda value: dict(dict.items(value)), lambda cls, value: _filled(dict.__new__(cls), dict.update, value)
    ),
}


def can_be_rebuilt(base: type | None) -> bool:
    """Tell whether subclasses of this builtin can be stored."""
    return base in _BUILTINS


class BuiltinShape:
    """Stores an instance by its plain value and its attributes."""

    code = BUILTIN_SUBCLASS

    def __init__(self, cls: type, base: type) -> None:
        self._cls = cls
        self._base = base
        self._builtin = _BUILTINS[base]
        self._slots = slots_beside(cls, ())

    def take_apart(self, value: Any) -> list[Any]:
        """Return the value as its builtin type, and its attributes."""
        attributes = dict(getattr(value, "__dict__", {}))
        refuse_hidden_state(value, attributes, self._slots)
        return [{"value": self._builtin.plain(value), "attributes": attributes}]

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return an instance of the subclass."""
        if type(fields["value"]) is not self._base:
            raise CodecError(f"the class {self._cls.__qualname__!r} is no {type(fields['value']).__name__} any more")
        built = self._builtin.rebuild(self._cls, fields["value"])
        for name, value in fields["attributes"].items():
            object.__setattr__(built, name, value)
        return built
