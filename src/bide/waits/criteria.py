"""What a payload must hold: the `match={…}` of events and webhooks, checked, stored, and put to a payload.

A dict asks for its keys and lets others be; any other value asks for an equal one; `one_of(…)` and `regex(…)` say so.
Equal is what JSON calls equal: 1 and 1.0 are, 1 and True and "1" are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bide.errors import InterruptError
from bide.shape.regex_limits import TooCostlyError
from bide.shape.report import show
from bide.waits.patterns import FLAGS, OneOf, Regex, checked_regex, searched

DEEPEST = 32
"""How deep a `match` may nest."""
MOST_VALUES = 10_000
"""How many values a `match` may hold."""
LONGEST_SEARCHED = 100_000
"""The longest text that a regular expression is put to."""

Path = tuple[str, ...]


# --- what may be asked for --------------------------------------------------------------------------------------------


def checked_match(match: object) -> dict[str, Any]:
    """Return a copy of a `match`, or raise InterruptError when it could not be stored or never fit."""
    if not isinstance(match, Mapping):
        raise InterruptError(f"match= must be a dict of what the payload must hold, not {type(match).__name__}.")
    copied: dict[str, Any] = _Copy().of(match, "match", 0)
    return copied


class _Copy:
    """Copies what is asked for, and counts it."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def of(self, wanted: Any, where: str, depth: int) -> Any:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise InterruptError(f"match= nests deeper than {DEEPEST} levels or holds more than {MOST_VALUES} values.")
        if isinstance(wanted, Regex):
            return checked_regex(wanted)
        if isinstance(wanted, OneOf):
            return OneOf(tuple(self._value(value, f"{where}: one_of()", depth + 1) for value in wanted.values))
        if isinstance(wanted, Mapping):
            return {_key(key, where): self.of(item, f"{where}[{key!r}]", depth + 1) for key, item in wanted.items()}
        return self._value(wanted, where, depth)

    def _value(self, value: Any, where: str, depth: int) -> Any:
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, list | tuple):
            return [self.of_value(item, where, depth + 1) for item in value]
        if isinstance(value, Mapping):
            return {_key(key, where): self.of_value(item, where, depth + 1) for key, item in value.items()}
        raise InterruptError(
            f"{where} asks for {show(value)}, which no payload can hold: it must be JSON. Give texts, numbers, true, "
            f"false, None, lists and dicts; regex('…') for a pattern, one_of(…) for a choice."
        )

    def of_value(self, value: Any, where: str, depth: int) -> Any:
        """Copy what stands inside a list or a choice: it is compared as a whole, so nothing in it is a pattern."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise InterruptError(f"match= nests deeper than {DEEPEST} levels or holds more than {MOST_VALUES} values.")
        if isinstance(value, Regex | OneOf):
            raise InterruptError(f"{where}: regex() and one_of() cannot stand inside a list or inside one_of().")
        return self._value(value, where, depth)


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InterruptError(f"{where} has the key {show(key)}; the keys of a payload are texts.")
    return key


# --- as it is stored --------------------------------------------------------------------------------------------------


def match_to_plain(wanted: Any) -> dict[str, Any]:
    """Return what is asked for as plain data; each part says what it is, so no payload's key is taken for a word."""
    if isinstance(wanted, Regex):
        return {"regex": wanted.pattern, "flags": wanted.flags}
    if isinstance(wanted, OneOf):
        return {"one_of": list(wanted.values)}
    if isinstance(wanted, dict):
        return {"has": {key: match_to_plain(item) for key, item in wanted.items()}}
    return {"is": wanted}


def match_from_plain(plain: object, depth: int = 0) -> Any:
    """Return what `match_to_plain` was given; raises InterruptError for anything else."""
    if depth > DEEPEST + 1 or type(plain) is not dict:
        raise InterruptError("a criterion is not what was written")
    if plain.keys() == {"regex", "flags"}:
        return regex_from_plain(plain)
    if plain.keys() == {"one_of"} and type(plain["one_of"]) is list and plain["one_of"]:
        return OneOf(tuple(plain["one_of"]))
    if plain.keys() == {"has"} and type(plain["has"]) is dict:
        return {key: match_from_plain(item, depth + 1) for key, item in plain["has"].items()}
    if plain.keys() == {"is"} and type(plain["is"]) is not dict:
        return plain["is"]
    raise InterruptError(f"a criterion has the parts {show(list(plain))}")


def regex_from_plain(plain: dict[str, Any]) -> Regex:
    """Return a stored regular expression; raises InterruptError for anything else."""
    pattern, flags = plain["regex"], plain["flags"]
    if type(pattern) is not str or type(flags) is not str or any(letter not in FLAGS for letter in flags):
        raise InterruptError("a regular expression is not what was written")
    return checked_regex(Regex(pattern, flags))


# --- put to a payload -------------------------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Tell whether JSON would call two values equal."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    return isinstance(one, str | None) and one == other


def judged(wanted: dict[str, Any], payload: object) -> Iterator[tuple[bool, str]]:
    """Put a `match` to a payload: for each thing it asks for, whether it is there, and a sentence about it."""
    yield from _judged(wanted, payload, ())


def _judged(wanted: Any, value: Any, path: Path) -> Iterator[tuple[bool, str]]:
    if not isinstance(wanted, dict):
        yield _judged_value(wanted, value, path)
    elif not isinstance(value, dict):
        yield False, f"{_place(path)} is {show(value)}, not an object"
    else:
        if not wanted and path:
            yield True, f"{_place(path)} is an object"
        for key, item in wanted.items():
            if key in value:
                yield from _judged(item, value[key], (*path, key))
            else:
                yield False, f"{_place((*path, key))} is missing"


def _judged_value(wanted: Any, value: Any, path: Path) -> tuple[bool, str]:
    if isinstance(wanted, Regex):
        fits, told = found_in(wanted, value)
        return fits, f"{_place(path)} {told}"
    if isinstance(wanted, OneOf):
        fits = any(same(choice, value) for choice in wanted.values)
        shown = ", ".join(show(choice) for choice in wanted.values[:20])
        return fits, f"{_place(path)} is {show(value)}, {'one' if fits else 'none'} of {shown}"
    if same(wanted, value):
        return True, f"{_place(path)} is {show(wanted)}"
    return False, f"{_place(path)} is {show(value)}, not {show(wanted)}"


def found_in(wanted: Regex, text: object) -> tuple[bool, str]:
    """Search a text, and tell what came of it."""
    if not isinstance(text, str):
        return False, f"is {show(text)}, and a regular expression needs a text"
    if len(text) > LONGEST_SEARCHED:
        return False, f"has {len(text)} characters, more than the {LONGEST_SEARCHED} that are searched"
    try:
        fits = searched(wanted, text)
    except TooCostlyError:
        return False, f"would take too long to search for {show(wanted.pattern)}"
    return fits, f"{show(text)} {'fits' if fits else 'does not fit'} the regular expression {show(wanted.pattern)}"


def _place(path: Path) -> str:
    return "payload" + "".join(f".{step}" if step.isidentifier() else f"[{show(step)}]" for step in path)
