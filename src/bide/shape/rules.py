"""The keywords that look at one value alone, all but patterns: each says what it expected when it does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from fractions import Fraction
from typing import Any, Literal

from bide.shape.plain import canonical
from bide.shape.report import show
from bide.shape.strings import FORMATS, has_format

Rule = Callable[[Any, Any], str | None]
"""(argument of the keyword, value) → what was expected, or None when the value fits."""


# --- any value --------------------------------------------------------------------------------------------------------


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_IS_TYPE: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    # NaN and the infinities are floats, but JSON cannot write them and NaN passes any bound.
    "number": lambda value: _is_number(value) and (isinstance(value, int) or math.isfinite(value)),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
_SHOWN_CHOICES = 20
_TYPE_WORDS = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _type(names: str | list[str], value: object) -> str | None:
    wanted = [names] if isinstance(names, str) else names
    if any(_IS_TYPE[name](value) for name in wanted):
        return None
    return f"expected {' or '.join(_TYPE_WORDS[name] for name in wanted)}"


def _enum(choices: list[Any], value: object) -> str | None:
    given = canonical(value)
    if any(canonical(choice) == given for choice in choices):
        return None
    shown = [show(choice) for choice in choices[:_SHOWN_CHOICES]] + ["…"] * (len(choices) > _SHOWN_CHOICES)
    return f"expected one of {', '.join(shown)}"


def _const(wanted: object, value: object) -> str | None:
    return None if canonical(wanted) == canonical(value) else f"expected {show(wanted)}"


# --- numbers ----------------------------------------------------------------------------------------------------------


def _bound(words: str, holds: Callable[[Any, Any], bool]) -> Rule:
    def check(bound: Any, value: Any) -> str | None:
        return None if not _is_number(value) or holds(value, bound) else f"expected {words} {show(bound)}"

    return check


def _multiple_of(divisor: Any, value: Any) -> str | None:
    if not _is_number(value):
        return None
    if _IS_TYPE["number"](value) and _exact(value) % _exact(divisor) == 0:
        return None
    return f"expected a multiple of {show(divisor)}"


def _exact(number: Any) -> Fraction:
    # Floats as they were written: 0.3 is a multiple of 0.1, whatever the binary fractions say.
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


# --- strings ----------------------------------------------------------------------------------------------------------


def _format(name: str, value: object) -> str | None:
    if not isinstance(value, str) or name not in FORMATS or has_format(name, value):
        return None
    return f"expected {FORMATS[name][0]}"


# --- sizes ------------------------------------------------------------------------------------------------------------


def _size(kind: type[Sized], parts: str, least_or_most: Literal["least", "most"]) -> Rule:
    def check(limit: Any, value: Any) -> str | None:
        if not isinstance(value, kind):
            return None
        fits = len(value) >= limit if least_or_most == "least" else len(value) <= limit
        return None if fits else f"expected at {least_or_most} {limit} {parts}"

    return check


def _unique_items(wanted: bool, value: object) -> str | None:
    if not wanted or not isinstance(value, list):
        return None
    first_at: dict[object, int] = {}
    for index, item in enumerate(value):
        earlier = first_at.setdefault(canonical(item), index)
        if earlier != index:
            return f"expected items that differ, but [{earlier}] and [{index}] are equal"
    return None


FIRST_RULE: Rule = _type

CHOICES: dict[str, Rule] = {"enum": _enum, "const": _const}

RULES: dict[str, Rule] = {
    "minimum": _bound("at least", lambda value, bound: value >= bound),
    "maximum": _bound("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound("more than", lambda value, bound: value > bound),
    "exclusiveMaximum": _bound("less than", lambda value, bound: value < bound),
    "multipleOf": _multiple_of,
    "minLength": _size(str, "characters", "least"),
    "maxLength": _size(str, "characters", "most"),
    "format": _format,
    "minItems": _size(list, "items", "least"),
    "maxItems": _size(list, "items", "most"),
    "uniqueItems": _unique_items,
    "minProperties": _size(dict, "keys", "least"),
    "maxProperties": _size(dict, "keys", "most"),
}
