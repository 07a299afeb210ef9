"""Containers of the standard library (Ext 2): one tag byte, then a list of what is inside."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sized
from typing import Any, NamedTuple, Protocol, TypeVar

from bide.codec.refusal import Refused
from bide.errors import CorruptDataError

DICT_TAG = b"m"
"""A plain dict with keys that are not all text: MessagePack as we use it has text keys only."""


_Sized = TypeVar("_Sized", bound=Sized)


class Order(Protocol):
    """In which order unordered things are written: as they come, or sorted for a digest."""

    def items(self, value: Collection[Any]) -> list[Any]:
        """Return the elements of a set."""
        ...

    def pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        """Return the keys and values of a dict in one flat list."""
        ...


class Container(NamedTuple):
    """How one container type becomes a list, and a list becomes it again."""

    tag: bytes
    write: Callable[[Any, Order], list[Any]]
    read: Callable[[list[Any]], Any]


def _write_set(value: Collection[Any], order: Order) -> list[Any]:
    return order.items(value)


def _read_set(items: list[Any]) -> set[Any]:
    return _nothing_lost(set(items), items)


def _read_frozenset(items: list[Any]) -> frozenset[Any]:
    return _nothing_lost(frozenset(items), items)


def _nothing_lost(built: _Sized, items: list[Any]) -> _Sized:
    if len(built) != len(items):
        raise CorruptDataError("a set or deque holds the same element twice, or too many")
    return built


def _write_deque(value: deque[Any], order: Order) -> list[Any]:
    return [value.maxlen, *value]


def _read_deque(items: list[Any]) -> deque[Any]:
    maxlen, *rest = items
    return _nothing_lost(deque(rest, maxlen), rest)


def _write_dict(value: Mapping[Any, Any], order: Order) -> list[Any]:
    if getattr(value, "__dict__", None):
        raise Refused(value, f"it carries attributes of its own: {', '.join(vars(value))}")
    return order.pairs(value)


def read_dict(pairs: list[Any]) -> dict[Any, Any]:
    """Build a dict from keys and values in one flat list."""
    if len(pairs) % 2:
        raise CorruptDataError("a dict has a key without a value")
    built = dict(zip(pairs[::2], pairs[1::2], strict=True))
    if len(built) * 2 != len(pairs):
        raise CorruptDataError("a dict has the same key twice")
    return built


# What a defaultdict may call for a missing key. A closed table: a name in stored bytes picks from it, no more.
_FACTORIES: dict[str | None, Any] = {None: None} | {
    cls.__name__: cls for cls in (bool, dict, float, frozenset, int, list, set, str, tuple)
}
_FACTORY_NAMES = {factory: name for name, factory in _FACTORIES.items()}


def _write_defaultdict(value: defaultdict[Any, Any], order: Order) -> list[Any]:
    if value.default_factory not in _FACTORY_NAMES:
        raise Refused(value, f"its default_factory {value.default_factory!r} is not a builtin type")
    return [_FACTORY_NAMES[value.default_factory], *order.pairs(value)]


def _read_defaultdict(items: list[Any]) -> defaultdict[Any, Any]:
    name, *pairs = items
    if name not in _FACTORIES:
        raise CorruptDataError(f"a defaultdict has the unknown default_factory {name!r}")
    return defaultdict(_FACTORIES[name], read_dict(pairs))


CONTAINERS: dict[type, Container] = {
    tuple: Container(b"t", lambda value, order: list(value), tuple),
    set: Container(b"s", _write_set, _read_set),
    frozenset: Container(b"f", _write_set, _read_frozenset),
    deque: Container(b"q", _write_deque, _read_deque),
    OrderedDict: Container(b"o", _write_dict, lambda pairs: OrderedDict(read_dict(pairs))),
    Counter: Container(b"n", _write_dict, lambda pairs: Counter(read_dict(pairs))),
    defaultdict: Container(b"d", _write_defaultdict, _read_defaultdict),
}

_READERS: dict[bytes, Callable[[list[Any]], Any]] = {
    DICT_TAG: read_dict,
    **{container.tag: container.read for container in CONTAINERS.values()},
}


def read_container(tag: bytes, items: Any) -> Any:
    """Build the container that a tag and its list say."""
    read = _READERS.get(tag)
    if read is None or type(items) is not list:
        raise CorruptDataError(f"there is no container with the tag {tag!r}")
    return read(items)
