"""Filters of authorization handlers: which metadata a thing must have for its caller to see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Filter = Mapping[str, Any]
"""`{"owner": "ada"}`, `{"owner": {"$eq": "ada"}}`, `{"team": {"$contains": "ada"}}`; several must all hold."""

_OPERATORS = frozenset(["$eq", "$contains"])


def matches(filter_: Filter | None, metadata: Mapping[str, Any] | None) -> bool:
    """Whether something with this metadata may be seen; what has none is seen by whoever has no filter."""
    if not filter_:
        return True
    found = metadata or {}
    return all(name in found and _fits(wanted, found[name]) for name, wanted in filter_.items())


def _fits(wanted: Any, found: Any) -> bool:
    if not _is_operator(wanted):
        return _same(wanted, found)
    return all(_same(value, found) if name == "$eq" else _holds(found, value) for name, value in wanted.items())


def _holds(found: Any, wanted: Any) -> bool:
    """Whether a list holds one thing, or all of several."""
    if not isinstance(found, list | tuple):
        return False
    several = wanted if isinstance(wanted, list | tuple) else [wanted]
    return all(any(_same(one, item) for item in found) for one in several)


def _same(one: Any, other: Any) -> bool:
    # In Python True is 1; in the JSON that both came from it is not.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _is_operator(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and bool(wanted) and all(str(name).startswith("$") for name in wanted)


def unknown_operators(filter_: Filter) -> list[str]:
    """Name what a filter asks for that nobody here can check; passed over, it would let too much through."""
    return sorted(
        {
            str(name)
            for field, wanted in filter_.items()
            for name in ([field] if str(field).startswith("$") else wanted if isinstance(wanted, Mapping) else [])
            if str(name).startswith("$") and name not in _OPERATORS
        }
    )
