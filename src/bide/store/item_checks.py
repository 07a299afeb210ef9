"""The door of the long-term store: what a caller wrote becomes a request, or an error that says what to write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from bide.codec import Codec
from bide.store.item_errors import InvalidItemError, NoSearchIndexError
from bide.store.item_filters import conditions_of
from bide.store.item_ops import (
    NOT_GIVEN,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from bide.store.item_requests import ANY, Delete, Get, ListNamespaces, Put, Request, Search
from bide.store.namespaces import Namespace, check_namespace, check_prefix, encode_namespace, encode_text, under

MINUTE = 60_000
LONGEST_TTL = 1000 * 366 * 24 * 60 * MINUTE
"""A thousand years, in milliseconds: beyond it a database's numbers and the calendar come to an end."""
LARGEST = 2**63 - 1


def request_of(op: Op, codec: Codec, default_ttl: int | None, refresh_on_read: bool) -> Request:
    """Check one operation of a batch; `default_ttl` is in milliseconds."""
    match op:
        case PutOp():
            return _put(op, codec, default_ttl)
        case GetOp():
            place = _place_of(op.namespace, op.key)
            return Get(*place, refresh_on_read if op.refresh_ttl is None else bool(op.refresh_ttl))
        case SearchOp():
            return _search(op, refresh_on_read)
        case ListNamespacesOp():
            return _list(op)
    raise InvalidItemError(
        f"A batch holds PutOp, GetOp, SearchOp and ListNamespacesOp, and this one holds a {type(op).__name__}."
    )


def check_value(value: object) -> dict[str, Any]:
    """Return a dict of its own for the value."""
    if not isinstance(value, Mapping):
        hint = "Use delete() to take an item away" if value is None else f"Wrap it: {{'value': {value!r:.40}}}"
        raise InvalidItemError(
            f"The value of an item is a dict, so that it can be filtered by its keys; this one is of type "
            f"{type(value).__name__}. {hint}."
        )
    return dict(value)


def milliseconds_of(ttl: object) -> int | None:
    """Return a time to live as the database counts it; None is for ever."""
    if ttl is None:
        return None
    milliseconds = _milliseconds(ttl)
    if not 0 < milliseconds <= LONGEST_TTL:
        raise InvalidItemError(
            f"ttl={ttl!r} cannot be: a time to live is in minutes, or a timedelta, and more than nothing and less than "
            f"a thousand years. Use ttl=None to keep an item for ever, and delete() to take it away."
        )
    # A time too short for the clock is still a time.
    return max(1, round(milliseconds))


def refuse_index(index: object, what: str) -> None:
    """Refuse to index by meaning; `False`, which asks for none, is granted."""
    if index is not None and index is not False:
        raise NoSearchIndexError(
            f"{what}(index={index!r}) asks for an index by meaning, which this store does not have. Leave index out; "
            f"search(…, filter={{…}}) finds items by what their values hold."
        )


def _milliseconds(ttl: object) -> float:
    if isinstance(ttl, timedelta):
        return ttl / timedelta(milliseconds=1)
    if isinstance(ttl, int | float) and not isinstance(ttl, bool):
        return ttl * MINUTE if math.isfinite(ttl) else math.nan
    raise InvalidItemError(
        f"ttl={ttl!r} is of type {type(ttl).__name__}. Give a number of minutes, a timedelta, or None to keep the item "
        f"for ever."
    )


def _put(op: PutOp, codec: Codec, default_ttl: int | None) -> Put | Delete:
    namespace, key = _place_of(op.namespace, op.key)
    refuse_index(op.index, "put")
    if op.value is None:
        return Delete(namespace, key)
    ttl = default_ttl if op.ttl is NOT_GIVEN else milliseconds_of(op.ttl)
    body = codec.encode(check_value(op.value), f"items[{op.key!r}]")
    return Put(namespace, key, body, ttl)


def _search(op: SearchOp, refresh_on_read: bool) -> Search:
    if op.query is not None:
        raise NoSearchIndexError(
            f"search(query={op.query!r}) asks for what is near in meaning, and this store has no index for that: any "
            f"answer would be nonsense. Leave query out, and use filter={{…}} to find items by what their values hold."
        )
    return Search(
        under(check_prefix(op.namespace_prefix)),
        conditions_of(op.filter),
        _count("limit", op.limit),
        _count("offset", op.offset),
        refresh_on_read if op.refresh_ttl is None else bool(op.refresh_ttl),
    )


def _list(op: ListNamespacesOp) -> ListNamespaces:
    match = tuple(_match_condition(*condition) for condition in op.match_conditions or ())
    if op.max_depth is not None:
        _count("max_depth", op.max_depth, least=1)
    return ListNamespaces(
        under(_literal_beginning(match)), match, op.max_depth, _count("limit", op.limit), _count("offset", op.offset)
    )


def _match_condition(match_type: Any, path: object) -> MatchCondition:
    if match_type not in ("prefix", "suffix"):
        raise InvalidItemError(f"A MatchCondition is for a 'prefix' or a 'suffix'; this one is for {match_type!r}.")
    return MatchCondition(match_type, check_prefix(path, what=match_type))


def _literal_beginning(match: tuple[MatchCondition, ...]) -> Namespace:
    """Return the longest beginning that all namespaces in question share: prefixes up to their first wildcard."""
    prefixes = [condition.path for condition in match if condition.match_type == "prefix"]
    literal = [path[: path.index(ANY)] if ANY in path else path for path in prefixes]
    return max(literal, key=len, default=())


def _place_of(namespace: object, key: object) -> tuple[bytes, bytes]:
    checked = check_namespace(namespace)
    if not isinstance(key, str):
        raise InvalidItemError(
            f"The key {key!r} in namespace {checked!r} is of type {type(key).__name__}. Keys are texts; write "
            f"{str(key)!r}, if that is what you mean."
        )
    return encode_namespace(checked), encode_text(key)


def _count(name: str, number: object, *, least: int = 0) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= LARGEST:
        raise InvalidItemError(f"{name}={number!r} cannot be: give a whole number, {least} or more.")
    return number
