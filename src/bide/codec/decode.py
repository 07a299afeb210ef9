"""From bytes to values. Bytes are data: they pick from what is registered, and can make nothing else happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bide.codec import chat
from bide.codec.containers import read_container
from bide.codec.registry import Registered, Registry
from bide.codec.scalars import read_scalar
from bide.codec.shapes import Fields
from bide.codec.wire import (
    BUILTIN_SUBCLASS,
    CONTAINER,
    DATACLASS,
    ENUM,
    MAX_TYPED_DEPTH,
    MESSAGE,
    NAMED_TUPLE,
    PYDANTIC,
    SCALAR,
    Later,
    unpack,
)
from bide.errors import CodecError, CorruptDataError, UnknownTypeError

_UNFINISHED = frozenset({list, dict, Later})
_REGISTERED_CODES = frozenset({ENUM, DATACLASS, PYDANTIC, NAMED_TUPLE, BUILTIN_SUBCLASS})


def read(data: bytes, registry: Registry) -> Any:
    """Return the value that these bytes say."""
    return _Reader(registry).read(data)


class _Reader:
    """Builds values inside out, and counts how deep typed values nest."""

    __slots__ = ("_depth", "_has_later", "_registry")

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._depth = 0
        self._has_later = False

    def read(self, data: bytes) -> Any:
        """Return the value that fills these bytes."""
        return self._finished(*self._parsed(data))

    def _parsed(self, data: bytes) -> tuple[Any, bool]:
        """Return the bytes as a tree, and whether there is something left to build in it."""
        self._has_later = False
        return unpack(data, self._later), self._has_later

    def _later(self, code: int, data: bytes) -> Later:
        self._has_later = True
        return Later(code, data)

    def _finished(self, tree: Any, has_later: bool) -> Any:
        """Put built values in the place of every `Later`."""
        if not has_later:
            return tree
        if type(tree) is Later:
            return self._build(tree)
        waiting = [tree]
        while waiting:
            found = waiting.pop()
            is_dict = type(found) is dict
            if _UNFINISHED.isdisjoint(map(type, found.values() if is_dict else found)):
                continue
            for place, item in found.items() if is_dict else enumerate(found):
                if type(item) is Later:
                    found[place] = self._build(item)
                elif type(item) in _UNFINISHED:
                    waiting.append(item)
        return tree

    def _build(self, later: Later) -> Any:
        code = later.code
        if code == SCALAR:
            return read_scalar(later.data)
        if self._depth >= MAX_TYPED_DEPTH:
            raise CorruptDataError(f"typed values nest deeper than {MAX_TYPED_DEPTH} levels")
        self._depth += 1
        if code == CONTAINER:
            tag = later.data[:1]
            built = read_container(tag, self._opened(later, 1))
        elif code in _REGISTERED_CODES:
            built = self._registered(code, self._opened(later))
        elif code == MESSAGE:
            built = chat.put_together(self._opened(later))
        else:
            raise CorruptDataError(f"there is no extension type {code}")
        self._depth -= 1
        return built

    def _opened(self, later: Later, start: int = 0) -> Any:
        """Return what is in an extension value, built."""
        tree, has_later = self._parsed(later.data[start:])
        later.data = b""  # inner bytes are copies of outer ones: let go of these first, or memory grows with depth
        return self._finished(tree, has_later)

    def _registered(self, code: int, parts: list[Any]) -> Any:
        name, version, fields, *rest = parts
        entry = self._registry.named(name)
        if entry is None:
            raise UnknownTypeError(
                f"the type {name!r} is not registered. Put its class into the state's schema, or register it with "
                f"@checkpointable({name!r})"
            )
        if entry.shape.code != code:
            raise CodecError(f"what is registered as {name!r} is another kind of class than what was stored")
        if type(fields) is not dict or type(version) is not int:
            raise CorruptDataError(f"a {name!r} has no fields or no version")
        return entry.shape.put_together(_upcast(entry, version, fields), rest)


def _upcast(entry: Registered, version: int, fields: Fields) -> Fields:
    """Bring stored fields to the version of the class as it is now."""
    if version == entry.version:
        return fields
    if version > entry.version:
        raise CodecError(
            f"a {entry.name!r} of version {version} is stored, and this code knows version {entry.version}: "
            f"it was written by newer code"
        )
    for step in range(version, entry.version):
        convert = entry.upcast.get(step)
        if convert is None:
            raise CodecError(
                f"a {entry.name!r} of version {version} is stored, and nothing says how version {step} becomes "
                f"{step + 1}: @checkpointable({entry.name!r}, version={entry.version}, upcast={{{step}: …}})"
            )
        fields = _converted(entry, step, convert, fields)
    return fields


def _converted(entry: Registered, step: int, convert: Callable[[Fields], Fields], fields: Fields) -> Fields:
    try:
        converted = convert(fields)
    except Exception as error:
        raise CodecError(f"upcast[{step}] of {entry.name!r} failed: {error!r}") from error
    if type(converted) is not dict:
        raise CodecError(f"upcast[{step}] of {entry.name!r} returned {converted!r} instead of a dict of fields")
    return converted
