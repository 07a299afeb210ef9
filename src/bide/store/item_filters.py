"""Filters over the values of items: equality and order, between values of kinds that can be compared.

A filter is typed: 1 equals 1.0, and neither `True` nor `"1"`. A key that a value lacks counts as `None`. What cannot be
compared does not match: a text is not less than a number, and nothing is less than `None`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from bide.errors import did_you_mean
from bide.store.item_errors import InvalidFilterError


class Condition(NamedTuple):
    """One comparison with the value under a key."""

    key: Any
    compare: Callable[[Any, Any], bool]
    wanted: Any


def conditions_of(filter: object) -> tuple[Condition, ...]:
    """Take a filter apart, and refuse what could never match."""
    if filter is None:
        return ()
    if not isinstance(filter, Mapping):
        raise InvalidFilterError(
            f"A filter is a dict from the keys of a value to what is wanted there, for example "
            f"{{'colour': 'red', 'age': {{'$gte': 18}}}}; this one is of type {type(filter).__name__}."
        )
    return tuple(condition for key, wanted in filter.items() for condition in _conditions_at(key, wanted))


def matches(value: Mapping[Any, Any], conditions: tuple[Condition, ...]) -> bool:
    """Tell whether a value meets all conditions."""
    return all(compare(value.get(key), wanted) for key, compare, wanted in conditions)


def _conditions_at(key: object, wanted: object) -> list[Condition]:
    """Read `{"$gt": 1, "$lt": 9}` as operators, and everything else as a value to be equal to."""
    if not isinstance(wanted, Mapping) or not any(str(name).startswith("$") for name in wanted):
        return [Condition(key, same, wanted)]
    return [_condition(key, name, operand) for name, operand in wanted.items()]


def _condition(key: object, name: object, operand: object) -> Condition:
    if name not in _OPERATORS:
        raise InvalidFilterError(
            f"The filter at {key!r} has the operator {name!r}, which does not exist; there are "
            f"{', '.join(_OPERATORS)}.{did_you_mean(name, _OPERATORS)} A dict that holds such keys itself is wanted "
            f"with {{'$eq': {{…}}}}."
        )
    if name in _ORDERS and not _has_order(operand):
        raise InvalidFilterError(
            f"The filter at {key!r} asks for {name} {operand!r}, of type {type(operand).__name__}, which has no order "
            f"to go by. Give a number, a text, bytes, a date, a time or a timedelta; use $eq or $ne for other values."
        )
    return Condition(key, _OPERATORS[name], operand)


def same(one: object, other: object) -> bool:
    """Tell whether two values are equal, and neither is a truth value where the other is a number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return len(one) == len(other) and all(key in other and same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and type(one) is type(other):
        pairs: Any = other
        return len(one) == len(pairs) and all(map(same, one, pairs))
    return bool(one == other)


def _differs(one: object, other: object) -> bool:
    return not same(one, other)


def _in_order(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def holds(stored: object, wanted: object) -> bool:
        if not _has_order(stored):
            return False
        try:
            return bool(compare(stored, wanted))
        except (TypeError, ArithmeticError):  # a text and a number; a Decimal that is no number
            return False

    return holds


def _has_order(value: object) -> bool:
    """Tell whether a value stands somewhere on a line; truth values and sets do not, though Python compares them."""
    return isinstance(value, _ORDERED) and not isinstance(value, bool)


_ORDERED = (int, float, Decimal, Fraction, str, bytes, date, time, timedelta)
_ORDERS: dict[object, Callable[[Any, Any], bool]] = {
    "$gt": _in_order(operator.gt),
    "$gte": _in_order(operator.ge),
    "$lt": _in_order(operator.lt),
    "$lte": _in_order(operator.le),
}
_OPERATORS: dict[Any, Callable[[Any, Any], bool]] = {"$eq": same, "$ne": _differs, **_ORDERS}
