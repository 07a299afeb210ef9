"""Enum members (Ext 3)."""

from __future__ import annotations

from enum import Enum, Flag
from typing import Any

from bide.codec.refusal import Refused
from bide.codec.shapes import Fields
from bide.codec.wire import ENUM
from bide.errors import CodecError


class EnumShape:
    """Stores an enum member by its name.

    Not by its value: with `auto()` a new member in the middle shifts the values, and stored ones would come back as
    their neighbours. A renamed member is an error that is seen, and an alias or an upcast mends it.
    """

    code = ENUM

    def __init__(self, cls: type[Enum]) -> None:
        self._cls = cls

    def take_apart(self, value: Any) -> list[Any]:
        """Return the member's name, or the names of the flags it is made of."""
        name = value._name_
        if self._cls.__members__.get(name) is value:
            return [{"member": name}]
        if not isinstance(value, Flag):
            raise Refused(value, f"it is no member of {self._cls.__qualname__!r}")
        flags = list(value)
        rest = value.value
        for flag in flags:
            rest &= ~flag.value
        return [{"members": [flag._name_ for flag in flags], "rest": rest}]

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return the member with this name, or the flags together."""
        if "member" in fields:
            return self._member(fields["member"])
        if not issubclass(self._cls, Flag) or type(fields["rest"]) is not int:
            # Looking a member up by its value asks the class's own `_missing_`: bytes must not decide what that gets.
            raise CodecError(f"a member of the enum {self._cls.__qualname__!r} has no name")
        built: Any = self._cls(fields["rest"])
        for name in fields["members"]:
            built |= self._member(name)
        return built

    def _member(self, name: str) -> Any:
        member = self._cls.__members__.get(name)
        if member is None:
            raise CodecError(
                f"the enum {self._cls.__qualname__!r} has no member {name!r} any more. Keep the old name as an alias, "
                f"or convert: @checkpointable(…, version=2, upcast={{1: lambda fields: {{'member': …}}}})"
            )
        return member
