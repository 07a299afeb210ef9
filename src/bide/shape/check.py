"""Finds every way in which an answer does not fit a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bide.shape.patterns import MAX_MATCHED_LENGTH, compile_pattern
from bide.shape.plain import MAX_DEPTH, NotPlainError, to_plain
from bide.shape.regex_limits import Budget, TooCostlyError
from bide.shape.report import KeyName, Path, Problem, show
from bide.shape.rules import CHOICES, FIRST_RULE, RULES
from bide.shape.vocabulary import Schema, definition, enforceable

_SHOWN_PROBLEM = 200


def problems(value: object, schema: dict[str, Any]) -> list[str]:
    """Return every way in which the value does not fit the schema, as sentences; none when it fits.

    Raises InterruptError when the schema itself holds what cannot be enforced.

    >>> problems({"price": "abc"}, {"properties": {"price": {"type": "number"}}})
    ["answer.price: expected a number, got 'abc'"]
    """
    return [str(problem) for problem in misfits(value, schema)]


def misfits(value: object, schema: dict[str, Any]) -> list[Problem]:
    """Return the same with the place of each, for those who show it beside a field.

    >>> misfits({"price": "abc"}, {"properties": {"price": {"type": "number"}}})[0].pointer
    '/price'
    """
    checker = _Checker(enforceable(schema))
    try:
        return checker.check(checker.root, to_plain(value), ())
    except NotPlainError as error:
        return [error.problem]
    except TooCostlyError:
        # Told of the whole answer: inside a 'not', a part that was not looked at would seem to be right.
        return [Problem((), "would take too long to be put to the patterns of the schema; give shorter texts")]
    except RecursionError:
        # The depth is bounded, but the caller may have left little room on the stack.
        return [Problem((), f"is nested too deeply to be checked here (at most {MAX_DEPTH} levels)")]


class _Checker:
    """Checks plain values against one schema; every method returns the problems it finds."""

    def __init__(self, root: Schema):
        self.root = root
        self._known: dict[tuple[str, Path, bool], list[Problem]] = {}
        self._budget = Budget()
        self._is_deciding = False
        """Whether it counts for something else that a value does not fit."""

    def check(self, schema: Any, value: Any, path: Path) -> list[Problem]:
        """Check one value against one schema."""
        if schema is True:
            return []
        if schema is False:
            return [Problem(path, "nothing is allowed here", show(value))]
        if "type" in schema and (expected := FIRST_RULE(schema["type"], value)):
            # What else the schema asks is of no use to somebody who gave the wrong kind of thing.
            return [Problem(path, expected, show(value), "type")]
        found = _check_alone(schema, value, path)
        if "pattern" in schema and isinstance(value, str):
            found += self._pattern(schema["pattern"], value, path)
        for keyword, check in _WITH_SCHEMAS.items():
            if keyword in schema:
                found += check(self, schema, value, path)
        # Two paths through a schema may find the same problem: kept once, or lists could double at every level.
        return list(dict.fromkeys(found))

    def _reference(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        # Each definition looks at each place once: without this, nested alternatives cost 2 to the power of the depth.
        key = (schema["$ref"], path, self._is_deciding)
        if key not in self._known:
            self._known[key] = self.check(definition(self.root, schema["$ref"]), value, path)
        return self._known[key]

    def _pattern(self, pattern: str, value: str, path: Path) -> list[Problem]:
        if len(value) > MAX_MATCHED_LENGTH:
            expected = f"expected at most {MAX_MATCHED_LENGTH} characters, since it must fit a pattern"
            problem = Problem(path, expected, show(value))
            if self._is_deciding:
                raise NotPlainError(problem)
            return [problem]
        if compile_pattern(pattern).search(value, self._budget):
            return []
        return [Problem(path, f"expected a string that fits the pattern {pattern!r}", show(value))]

    # --- the same value again ---

    def _all_of(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        for inner in schema["allOf"]:
            found += self.check(inner, value, path)
        return found

    def _any_of(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        tried: list[list[Problem]] = []
        for inner in schema["anyOf"]:
            tried.append(self.check(inner, value, path))
            if not tried[-1]:
                return []
        return _why_none_fits(tried, value, path)

    def _one_of(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        tried: list[list[Problem]] = []
        for inner in schema["oneOf"]:
            tried.append(self.check(inner, value, path))
        fitting = sum(not found for found in tried)
        if fitting == 0:
            return _why_none_fits(tried, value, path)
        if fitting == 1:
            return []
        return [Problem(path, f"expected exactly one of the allowed shapes to fit, but {fitting} do", show(value))]

    def _not(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        if self._decide(schema["not"], value, path):
            return []
        return [Problem(path, "has a shape that is not allowed", show(value))]

    def _if(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        branch = "else" if self._decide(schema["if"], value, path) else "then"
        return self.check(schema.get(branch, True), value, path)

    def _decide(self, schema: Any, value: Any, path: Path) -> list[Problem]:
        """Check a value where not to fit leads on: then nothing may count as a misfit for being too long to look at."""
        was_deciding, self._is_deciding = self._is_deciding, True
        try:
            return self.check(schema, value, path)
        finally:
            self._is_deciding = was_deciding

    # --- objects ---

    def _properties(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, dict):
            for name, inner in schema["properties"].items():
                if name in value:
                    found += self.check(inner, value[name], (*path, name))
        return found

    def _pattern_properties(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, dict):
            for pattern, inner in schema["patternProperties"].items():
                compiled = compile_pattern(pattern)
                for name in value:
                    if compiled.search(name, self._budget):
                        found += self.check(inner, value[name], (*path, name))
        return found

    def _additional_properties(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, dict):
            for name in self._additional_names(schema, value):
                if schema["additionalProperties"] is False:
                    found.append(Problem((*path, name), f"is not expected here{_known_names(schema)}"))
                else:
                    found += self.check(schema["additionalProperties"], value[name], (*path, name))
        return found

    def _additional_names(self, schema: Schema, value: dict[str, Any]) -> list[str]:
        patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", ())]
        names = [name for name in value if name not in schema.get("properties", ())]
        return [name for name in names if not any(pattern.search(name, self._budget) for pattern in patterns)]

    def _property_names(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, dict):
            for name in value:
                found += self.check(schema["propertyNames"], name, (*path, KeyName(name)))
        return found

    def _required(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        return _missing(schema["required"], value, path, "is missing")

    def _dependent_required(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        for name, names in schema["dependentRequired"].items():
            if isinstance(value, dict) and name in value:
                found += _missing(names, value, path, f"is missing; it is needed since {show(name)} is given")
        return found

    # --- lists ---

    def _prefix_items(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, list):
            for index, (inner, item) in enumerate(zip(schema["prefixItems"], value, strict=False)):
                found += self.check(inner, item, (*path, index))
        return found

    def _items(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        found: list[Problem] = []
        if isinstance(value, list):
            for index in range(len(schema.get("prefixItems", ())), len(value)):
                found += self.check(schema["items"], value[index], (*path, index))
        return found

    def _contains(self, schema: Schema, value: Any, path: Path) -> list[Problem]:
        if not isinstance(value, list):
            return []
        for index, item in enumerate(value):
            if not self.check(schema["contains"], item, (*path, index)):
                return []
        return [Problem(path, "expected at least one item of the shape that it must contain", show(value))]


_WITH_SCHEMAS: dict[str, Callable[[_Checker, Schema, Any, Path], list[Problem]]] = {
    "$ref": _Checker._reference,
    "required": _Checker._required,
    "properties": _Checker._properties,
    "patternProperties": _Checker._pattern_properties,
    "additionalProperties": _Checker._additional_properties,
    "propertyNames": _Checker._property_names,
    "dependentRequired": _Checker._dependent_required,
    "prefixItems": _Checker._prefix_items,
    "items": _Checker._items,
    "contains": _Checker._contains,
    "allOf": _Checker._all_of,
    "anyOf": _Checker._any_of,
    "oneOf": _Checker._one_of,
    "not": _Checker._not,
    "if": _Checker._if,
}


def _check_alone(schema: Schema, value: Any, path: Path) -> list[Problem]:
    found: list[Problem] = []
    for keyword, rule in CHOICES.items():
        if keyword in schema and (expected := rule(schema[keyword], value)):
            found.append(Problem(path, expected, show(value), "choice"))
    for keyword, rule in RULES.items():
        if keyword in schema and (expected := rule(schema[keyword], value)):
            found.append(Problem(path, expected, show(value)))
    return found


def _missing(names: Iterable[str], value: Any, path: Path, text: str) -> list[Problem]:
    if not isinstance(value, dict):
        return []
    return [Problem((*path, name), text) for name in names if name not in value]


def _known_names(schema: Schema) -> str:
    names = ", ".join(show(name) for name in schema.get("properties", ()))
    return f"; known keys are {names}" if names else ""


# --- telling why no alternative fits ----------------------------------------------------------------------------------


def _why_none_fits(tried: list[list[Problem]], value: Any, path: Path) -> list[Problem]:
    """Tell the problems of the one alternative that was meant, or else one sentence about all of them."""
    meant = _without(tried, lambda problem: problem.kind == "type" and problem.path == path)
    meant = _without(meant, lambda problem: problem.kind == "choice" and problem.path[:-1] == path)
    if len(meant) == 1:
        return meant[0]
    first = [found[0] for found in meant]
    if all(problem.path == path and problem.kind != "other" for problem in first):
        expected = dict.fromkeys(problem.text.removeprefix("expected ") for problem in first)
        return [Problem(path, f"expected {' or '.join(expected)}", show(value), "type")]
    # Shortened, because these sentences hold those of the alternatives inside, and so on down.
    told = "; ".join(f"{number}. {str(problem)[:_SHOWN_PROBLEM]}" for number, problem in enumerate(first, 1))
    return [Problem(path, f"fits none of the {len(tried)} allowed shapes ({told})")]


def _without(tried: list[list[Problem]], rules_out: Callable[[Problem], bool]) -> list[list[Problem]]:
    """Drop the alternatives that were not meant, by a wrong type or a wrong tag, unless none would be left."""
    return [found for found in tried if not any(map(rules_out, found))] or tried
