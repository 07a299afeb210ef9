"""Finding where in a value something sits, for messages such as `state['order'].lines[3].price`."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bide.codec.annotations import is_named_tuple
from bide.codec.models import is_pydantic_model

_SCALARS = (str, bytes, int, float, type(None))


class _Part(NamedTuple):
    """Something inside a value, and what to write behind the value's path to get there."""

    value: object
    step: str
    is_by_position: bool = False  # a key or an element of a set has no expression of its own: list(…)[n]


def path_of(wanted: object, value: object, path: str) -> str:
    """Return the path of the first place where `wanted` itself sits in `value`."""
    if wanted is value:
        return path
    return _find(value, path, lambda part, holders: part is wanted) or path


def path_of_cycle(value: object, path: str) -> str | None:
    """Return the path of the first place where a value sits inside itself, if there is one."""
    return _find(value, path, lambda part, holders: id(part) in holders)


def _find(value: object, path: str, is_wanted: Callable[[object, Mapping[int, object]], bool]) -> str | None:
    """Look through the value depth first, in the order of writing, and return the path of the first match."""
    # Held by id, with the values themselves beside it: an id says nothing once its value is gone.
    holders = {id(value): value}
    seen = {id(value): value}
    trail = [_Part(value, "")]
    parts = [_parts(value)]
    while parts:
        part = next(parts[-1], None)
        if part is None:
            parts.pop()
            holders.pop(id(trail.pop().value))
        elif is_wanted(part.value, holders):
            return _written(path, [*trail[1:], part])
        elif id(part.value) not in seen and not isinstance(part.value, _SCALARS):
            seen[id(part.value)] = holders[id(part.value)] = part.value
            trail.append(part)
            parts.append(_parts(part.value))
    return None


def _written(path: str, trail: list[_Part]) -> str:
    for part in trail:
        path = f"list({path}){part.step}" if part.is_by_position else path + part.step
    return path


def _parts(value: Any) -> Iterator[_Part]:
    if isinstance(value, type):
        return
    for name, item in _attributes(value).items():
        yield _Part(item, f".{name}")
    if isinstance(value, Mapping):
        for position, (key, item) in enumerate(value.items()):
            yield _Part(key, f"[{position}]", is_by_position=True)
            yield _Part(item, f"[{_short(key)}]")
    elif isinstance(value, list | tuple | deque) and not is_named_tuple(type(value)):
        for position, item in enumerate(value):
            yield _Part(item, f"[{position}]")
    elif isinstance(value, set | frozenset):
        for position, item in enumerate(value):
            yield _Part(item, f"[{position}]", is_by_position=True)


def _short(key: object) -> str:
    shown = repr(key)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _attributes(value: Any) -> Mapping[str, Any]:
    cls = type(value)
    if is_pydantic_model(cls):
        return {**value.__dict__, **(value.__pydantic_extra__ or {}), **(value.__pydantic_private__ or {})}
    if is_named_tuple(cls):
        return dict(zip(value._fields, value, strict=True))
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
    if isinstance(value, str | bytes | int | float | list | dict | tuple | set | frozenset):
        return dict(getattr(value, "__dict__", {}))
    return {}
