"""From values to bytes.

There are two ways to the same bytes. `FastWriter` lets ormsgpack walk the value and is asked only for what is not
plain. `CarefulWriter` walks the value itself: slower, but it can say what is wrong, and it can write what ormsgpack
cannot (keys that are not text, lone surrogates). What a typed value is made of is said once, for both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import Any, NoReturn

from bide.codec import chat
from bide.codec.containers import CONTAINERS, DICT_TAG
from bide.codec.refusal import NestedTooDeep, Refused, type_name
from bide.codec.registry import Registry, shape_of
from bide.codec.scalars import SCALARS, is_utf8
from bide.codec.wire import CONTAINER, MAX_PLAIN_DEPTH, MAX_TYPED_DEPTH, MESSAGE, SCALAR, Ext, pack

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
"""Types that MessagePack has itself. An int beyond 64 bits and a str with lone surrogates are found on the way."""

_TEXT_ONLY = frozenset({str})
_BUFFERS = frozenset({bytearray, memoryview})
_NESTING_OR_BUFFERS = frozenset({list, dict}) | _BUFFERS

# ormsgpack calls us from within its own walk. Beyond this depth the careful writer takes over, which does not pile up
# the stacks of two languages.
_MAX_FAST_DEPTH = 16


class _Writer:
    """Writes typed values; how their parts are packed is up to the subclass."""

    __slots__ = ("_depth", "_registry")

    max_depth = MAX_TYPED_DEPTH

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._depth = 0

    def write(self, value: Any) -> bytes:
        """Return the value as MessagePack."""
        raise NotImplementedError

    def items(self, value: Collection[Any]) -> list[Any]:
        """Return the elements of a set as they come."""
        return list(value)

    def pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        """Return keys and values as they come, in one flat list."""
        return [part for pair in value.items() for part in pair]

    def typed(self, value: Any) -> Ext:
        """Return the extension value for anything that is not plain."""
        cls = type(value)
        scalar = SCALARS.get(cls)
        if scalar is not None:
            return Ext(SCALAR, scalar.tag + scalar.write(value))
        if self._depth >= self.max_depth:
            raise NestedTooDeep
        self._depth += 1
        try:
            return self._composed(cls, value)
        finally:
            self._depth -= 1

    def _composed(self, cls: type, value: Any) -> Ext:
        container = CONTAINERS.get(cls)
        if container is not None:
            return Ext(CONTAINER, container.tag + self.write(container.write(value, self)))
        entry = self._registry.written_as(cls)
        if entry is not None:
            return Ext(entry.shape.code, self.write([entry.name, entry.version, *entry.shape.take_apart(value)]))
        take_apart = chat.writer_of(cls)
        if take_apart is not None:
            return Ext(MESSAGE, self.write(take_apart(value)))
        self._refuse(cls, value)

    def _refuse(self, cls: type, value: Any) -> NoReturn:
        taken = self._registry.of(cls)
        if taken is not None:
            raise Refused(value, f"its class is registered as {taken.name!r}, but another class has taken that name")
        if shape_of(cls) is not None:
            raise Refused(value, f"its class {type_name(value)!r} is not registered")
        raise Refused(value, f"values of type {type_name(value)!r} cannot be stored")


class FastWriter(_Writer):
    """Writes with ormsgpack's own walk. It raises TypeError for whatever needs the careful writer."""

    __slots__ = ()

    max_depth = _MAX_FAST_DEPTH

    def write(self, value: Any) -> bytes:
        """Return the value as MessagePack."""
        data = pack(value, self.typed)
        # ormsgpack writes a bytearray or a memoryview as bytes without asking. If no byte could be the head of such
        # an entry, there is none; otherwise look.
        if (0xC4 in data or 0xC5 in data or 0xC6 in data) and _holds_buffer(value):
            raise TypeError("a buffer has to be written by the careful writer")
        return data


def _holds_buffer(value: Any) -> bool:
    """Tell whether a bytearray or memoryview is among the plain lists and dicts of a value."""
    level = [value] if type(value) in _NESTING_OR_BUFFERS else []
    while level:
        if not _BUFFERS.isdisjoint(map(type, level)):
            return True
        # Level by level, because one comprehension is twice as fast as a loop over a stack.
        level = [
            item
            for holder in level
            for item in (holder.values() if type(holder) is dict else holder)
            if type(item) in _NESTING_OR_BUFFERS
        ]
    return False


class CarefulWriter(_Writer):
    """Writes with a walk of our own, which can say what is wrong."""

    __slots__ = ()

    def write(self, value: Any) -> bytes:
        """Return the value as MessagePack."""
        return pack(self._plain(value, 0), self.typed)

    def _plain(self, value: Any, depth: int) -> Any:
        """Return the value as plain lists, dicts and scalars, with extension values for the rest."""
        cls = type(value)
        if cls is str:
            return value if value.isascii() or is_utf8(value) else self.typed(value)
        if cls in PLAIN:
            return value
        if depth >= MAX_PLAIN_DEPTH:
            raise NestedTooDeep
        if cls is list:
            # Loops, not comprehensions: a comprehension costs a second frame on each level.
            items = []
            for item in value:
                items.append(self._plain(item, depth + 1))
            return items
        if cls is dict:
            return self._plain_dict(value, depth) if self._has_plain_keys(value) else self._dict_with_other_keys(value)
        return self.typed(value)

    def _plain_dict(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        plain = {}
        for key, item in value.items():
            plain[key] = self._plain(item, depth + 1)
        return plain

    def _has_plain_keys(self, value: dict[Any, Any]) -> bool:
        return _TEXT_ONLY.issuperset(map(type, value)) and all(key.isascii() or is_utf8(key) for key in value)

    def _dict_with_other_keys(self, value: dict[Any, Any]) -> Ext:
        if self._depth >= self.max_depth:
            raise NestedTooDeep
        self._depth += 1
        try:
            return Ext(CONTAINER, DICT_TAG + self.write(self.pairs(value)))
        finally:
            self._depth -= 1


class CanonicalWriter(CarefulWriter):
    """Writes equal values as equal bytes, for digests: nothing here is ever read back."""

    __slots__ = ()

    def items(self, value: Collection[Any]) -> list[Any]:
        """Return the elements of a set as bytes, sorted."""
        return sorted(self.write(item) for item in value)

    def pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        """Return keys as bytes, sorted, and their values, in one flat list."""
        pairs = sorted(((self.write(key), item) for key, item in value.items()), key=itemgetter(0))
        return [part for pair in pairs for part in pair]

    def typed(self, value: Any) -> Ext:
        """Return the extension value, or one with the type's name for a value that cannot be stored."""
        try:
            return super().typed(value)
        except (NestedTooDeep, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with a value, its type still counts
            return Ext(0, type(value).__qualname__.encode("utf-8", "surrogatepass"))

    def _plain_dict(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        return super()._plain_dict({key: value[key] for key in sorted(value)}, depth)
