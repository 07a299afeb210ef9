"""The names under which classes are stored. Bytes hold a name; only what is registered here can come of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from bide.codec.annotations import is_named_tuple, types_in
from bide.codec.chat import is_known_message_class
from bide.codec.enums import EnumShape
from bide.codec.models import PydanticShape, is_pydantic_model
from bide.codec.shapes import DataclassShape, Fields, NamedTupleShape, Shape, builtin_base
from bide.codec.subclasses import BuiltinShape, can_be_rebuilt
from bide.errors import CodecError

Upcast = Mapping[int, Callable[[Fields], Fields]]
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """One class under one name."""

    cls: type
    name: str
    version: int
    shape: Shape
    upcast: Upcast = field(default_factory=dict)


class Registry:
    """Says which classes may be stored, and under which names.

    What is not found is looked for in the parent, and in the end in the registry of the process, which holds what was
    registered with `@checkpointable`.
    """

    def __init__(self, parent: Registry | None = None) -> None:
        self._parent = parent if parent is not None else _PROCESS_WIDE
        self._by_name: dict[str, Registered] = {}
        self._by_class: dict[type, Registered] = {}

    def add(self, cls: type, name: str | None = None, *, version: int = 1) -> None:
        """Let instances of the class be stored, under its own name unless another is given.

        A class that is known already keeps the name it is written under; a further name can only be read.
        """
        self._add(cls, name, version=version, upcast={})

    def add_types_in(self, annotation: object) -> None:
        """Register every class that the annotation mentions, and those that their fields mention."""
        for cls in types_in(annotation):
            if not is_known_message_class(cls) and shape_of(cls) is not None:
                self.add(cls)

    def learn(self, other: Registry) -> None:
        """Know what another one knows, too; of two classes with one name the first stays."""
        for name, registered in other._by_name.items():
            self._by_name.setdefault(name, registered)
        for cls, registered in other._by_class.items():
            self._by_class.setdefault(cls, registered)

    def named(self, name: str) -> Registered | None:
        """Return what is registered under this name."""
        registry: Registry | None = self
        while registry is not None:
            found = registry._by_name.get(name)
            if found is not None:
                return found
            registry = registry._parent
        return None

    def of(self, cls: type) -> Registered | None:
        """Return what this class is registered as."""
        registry: Registry | None = self
        while registry is not None:
            found = registry._by_class.get(cls)
            if found is not None:
                return found
            registry = registry._parent
        return None

    def written_as(self, cls: type) -> Registered | None:
        """Return how instances of exactly this class are written, if they would also be read as this class."""
        found = self.of(cls)
        # Another class may have taken the name since, in a registry below or by being defined again.
        return found if found is not None and self.named(found.name) is found else None

    def _add(self, cls: type, name: str | None, *, version: int, upcast: Upcast) -> None:
        known = self.of(cls)
        if name is None and known is not None:
            return
        chosen = cls.__name__ if name is None else name
        taken = self.named(chosen)
        if taken is not None and taken.cls is cls:
            return
        if taken is not None and not _is_redefinition(taken.cls, cls):
            raise _name_is_taken(chosen, taken.cls, cls)
        _check_name_and_version(chosen, version)
        shape = shape_of(cls)
        if shape is None:
            raise _cannot_be_stored(cls)
        entry = Registered(cls, chosen, version, shape, upcast)
        self._by_name[chosen] = entry
        if known is None:
            self._by_class[cls] = entry


def shape_of(cls: type) -> Shape | None:
    """Return how instances of the class are stored, or None if it is of no kind that can be."""
    if issubclass(cls, Enum):
        return EnumShape(cls)
    if is_pydantic_model(cls):
        return PydanticShape(cls)
    base = builtin_base(cls)
    if dataclasses.is_dataclass(cls):
        return DataclassShape(cls) if base is None else None
    if is_named_tuple(cls):
        return NamedTupleShape(cls)
    return BuiltinShape(cls, base) if base is not cls and base is not None and can_be_rebuilt(base) else None


def _is_redefinition(old: type, new: type) -> bool:
    """Tell whether this is the same class statement run again, as in a notebook cell or a reloaded module."""
    same_place = (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)
    return same_place and "<locals>" not in new.__qualname__


def _name_is_taken(name: str, old: type, new: type) -> CodecError:
    return CodecError(
        f"The name {name!r} is taken by {old.__module__}.{old.__qualname__}, so {new.__module__}.{new.__qualname__} "
        f'cannot be stored under it too. Give one of them a name of its own with @checkpointable("…").'
    )


def _cannot_be_stored(cls: type) -> CodecError:
    return CodecError(
        f"The class {cls.__qualname__!r} cannot be stored: it is no dataclass, pydantic model, Enum, NamedTuple or "
        f"subclass of a plain builtin type. Make it a dataclass; @checkpointable goes above @dataclass."
    )


def _check_name_and_version(name: str, version: int) -> None:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 200:
        raise CodecError(f"The name {name!r} cannot be used: give a short, printable text such as 'shop.order'.")
    if type(version) is not int or version < 1:
        raise CodecError(f"The version {version!r} of {name!r} cannot be used: versions are 1, 2, 3, …")


_PROCESS_WIDE: Registry | None = None
_PROCESS_WIDE = Registry()


def checkpointable(
    name: Any, *, version: int = 1, upcast: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None
) -> Callable[[_Class], _Class]:
    """Let instances of the class be stored, under a name that outlives renames and moves of the class.

    When its fields change, raise `version`; `upcast[v]` turns the stored fields of version `v` into those of `v + 1`.

    >>> @checkpointable("shop.order", version=2, upcast={1: lambda fields: {**fields, "currency": "EUR"}})
    ... @dataclass
    ... class Order:
    ...     total: Decimal
    ...     currency: str
    """
    if not isinstance(name, str):
        own = getattr(name, "__name__", "a-name")
        raise CodecError(
            f"@checkpointable needs the name under which values are stored: write @checkpointable('{own}') above the "
            f"class."
        )

    def register(cls: _Class) -> _Class:
        cast(Registry, _PROCESS_WIDE)._add(cls, name, version=version, upcast=dict(upcast or {}))
        return cls

    return register
