"""Which schemas can be enforced: every keyword of JSON Schema that Bide checks, and those it may ignore.

A keyword that nobody checks is a promise that nobody keeps, so a schema with an unknown keyword, with a malformed
argument or with a reference to elsewhere is refused when the question is asked, not when an answer slips through.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from bide.errors import InterruptError
from bide.shape.patterns import MAX_PATTERN_LENGTH, compile_pattern
from bide.shape.regex_limits import RegexError

Schema = dict[str, Any]

MAX_SCHEMA_DEPTH = 100
"""How deep the lists and objects of a schema may nest."""

TYPE_NAMES = ("string", "number", "integer", "boolean", "object", "array", "null")

_ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
        *("$schema", "$id", "$comment", "contentEncoding", "contentMediaType", "contentSchema"),
    }
)
_ONE_SCHEMA = frozenset({"not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames"})
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_TABLES = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
"""The keywords whose schemas look at the same value again, not at a part of it."""


def enforceable(schema: object) -> Schema:
    """Return a deep copy of the schema, or raise InterruptError naming what in it could not be enforced."""
    if not isinstance(schema, dict):
        raise InterruptError(f"A JSON Schema must be a dict, not {schema!r}.")
    root: Schema = _copied(schema, "schema", 0)
    _Walk(root).visit(root, "schema")
    _refuse_endless_references(root)
    return root


def definition(root: Schema, reference: str) -> Any:
    """Return the schema that a reference like `#/$defs/Line` names, or None when there is none such."""
    found = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", reference)
    if found is None:
        return None
    # In this order, as RFC 6901 says, or "~01" would be read as "/".
    name = unquote(found[2]).replace("~1", "/").replace("~0", "~")
    table = root.get(found[1])
    return table.get(name) if isinstance(table, dict) else None


def _copied(part: Any, where: str, depth: int) -> Any:
    if depth > MAX_SCHEMA_DEPTH:
        raise InterruptError(f"The schema nests deeper than {MAX_SCHEMA_DEPTH} levels. Put its parts into '$defs'.")
    if part is None or isinstance(part, (str, bool, int, float)):
        return part
    if isinstance(part, (list, tuple)):
        return [_copied(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(part)]
    if isinstance(part, dict) and all(isinstance(key, str) for key in part):
        return {key: _copied(item, f"{where}.{key}", depth + 1) for key, item in part.items()}
    raise InterruptError(
        f"{where} holds {part!r}, which is not JSON. The schema is stored with its question, so it must be plain JSON; "
        f"or give the type itself as the schema."
    )


class _Walk:
    """Visits every schema inside a schema, and refuses the first that could not be enforced."""

    def __init__(self, root: Schema):
        self._root = root

    def visit(self, schema: Any, where: str, *, rebased: bool = False) -> None:
        """Check one schema and those inside; `rebased` says that an inner `$id` has changed what `#` means."""
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InterruptError(f"{where} must be a schema (an object or a boolean), not {schema!r}.")
        rebased = rebased or ("$id" in schema and schema is not self._root)
        for keyword, argument in schema.items():
            for inner_where, inner in self._inner(keyword, argument, f"{where}.{keyword}", rebased):
                self.visit(inner, inner_where, rebased=rebased)

    def _inner(self, keyword: str, argument: Any, where: str, rebased: bool) -> Iterator[tuple[str, Any]]:
        if keyword == "$ref":
            self._check_reference(argument, where, rebased)
        elif keyword in _ONE_SCHEMA:
            yield where, argument
        elif keyword in _SCHEMA_LISTS:
            _demand(_is_filled_list(argument), where, "a list of schemas", argument)
            yield from ((f"{where}[{index}]", inner) for index, inner in enumerate(argument))
        elif keyword in _SCHEMA_TABLES:
            _demand(isinstance(argument, dict), where, "an object of schemas", argument)
            if keyword == "patternProperties":
                for pattern in argument:
                    _check_pattern(pattern, where)
            yield from ((f"{where}.{name}", inner) for name, inner in argument.items())
        elif keyword == "pattern":
            _check_pattern(argument, where)
        else:
            _check_argument(keyword, argument, where)

    def _check_reference(self, reference: Any, where: str, rebased: bool) -> None:
        if rebased or not isinstance(reference, str) or definition(self._root, reference) is None:
            raise InterruptError(
                f"{where}: '$ref' to {reference!r} cannot be followed. Refer to '#/$defs/<name>' or "
                f"'#/definitions/<name>', put that definition at the top of the schema, and use no inner '$id'."
            )


def _demand(holds: bool, where: str, expected: str, argument: object) -> None:
    if not holds:
        raise InterruptError(f"{where} must be {expected}, not {argument!r}.")


def _check_argument(keyword: str, argument: Any, where: str) -> None:
    if keyword in _ANNOTATIONS or keyword.startswith("x-"):
        return
    if keyword not in _ARGUMENTS:
        raise InterruptError(
            f"{where}: the schema keyword {keyword!r} cannot be enforced, so the schema is refused. "
            f"Remove it, or name it 'x-{keyword}' if it is only a note to the form."
        )
    is_right, expected = _ARGUMENTS[keyword]
    _demand(is_right(argument), where, expected, argument)


# --- the arguments of the keywords that hold no schema ----------------------------------------------------------------


def _is_filled_list(argument: Any) -> bool:
    return isinstance(argument, list) and bool(argument)


def _is_type(argument: Any) -> bool:
    names = argument if _is_filled_list(argument) else [argument]
    return all(isinstance(name, str) and name in TYPE_NAMES for name in names)


def _is_names(argument: Any) -> bool:
    return isinstance(argument, list) and all(isinstance(name, str) for name in argument)


def _is_table_of_names(argument: Any) -> bool:
    return isinstance(argument, dict) and all(_is_names(names) for names in argument.values())


def _is_number(argument: Any) -> bool:
    return type(argument) is int or (isinstance(argument, float) and math.isfinite(argument))


def _is_positive(argument: Any) -> bool:
    return _is_number(argument) and argument > 0


def _is_count(argument: Any) -> bool:
    return _is_number(argument) and argument >= 0 and argument == int(argument)


def _check_pattern(pattern: Any, where: str) -> None:
    is_short = isinstance(pattern, str) and len(pattern) <= MAX_PATTERN_LENGTH
    _demand(is_short, where, f"a regular expression of at most {MAX_PATTERN_LENGTH} characters", pattern)
    try:
        compile_pattern(pattern)
    except RegexError as error:
        raise InterruptError(
            f"{where}: the pattern {pattern!r} cannot be enforced: {error}. Answers come from outside, so patterns are "
            f"run in a time that grows with the text alone: without back references, without looking behind, and "
            f"looking ahead only at the very start, as in '^(?=.*[0-9])…'. Say the rest with several patterns in "
            f"'allOf' and 'not', or check it in the node."
        ) from None


_COUNT = (_is_count, "a whole number of 0 or more")
_NUMBER = (_is_number, "a finite number")

_ARGUMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"one or several of {', '.join(TYPE_NAMES)}"),
    "enum": (lambda argument: isinstance(argument, list), "a list"),
    "const": (lambda _: True, "anything"),
    "required": (_is_names, "a list of strings"),
    "dependentRequired": (_is_table_of_names, "an object of lists of strings"),
    "uniqueItems": (lambda argument: isinstance(argument, bool), "true or false"),
    "format": (lambda argument: isinstance(argument, str), "a string"),
    "multipleOf": (_is_positive, "a number above 0"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT),
}


# --- references that lead back to themselves --------------------------------------------------------------------------


def _refuse_endless_references(root: Schema) -> None:
    """Refuse a definition that asks for itself of the very same value: checking it would never end."""
    finished: set[str] = set()
    for table in ("$defs", "definitions"):
        for name in root.get(table, {}):
            escaped = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
            _follow(root, f"#/{table}/{escaped}", trail=(), finished=finished)


def _follow(root: Schema, reference: str, *, trail: tuple[str, ...], finished: set[str]) -> None:
    if reference in trail:
        raise InterruptError(
            f"The schema's definitions {' → '.join((*trail, reference))} refer to each other without an object or a "
            f"list between them, so no answer could ever be checked. Describe what they hold."
        )
    if len(trail) > MAX_SCHEMA_DEPTH:
        raise InterruptError(f"The schema follows more than {MAX_SCHEMA_DEPTH} references for one value.")
    if reference not in finished:
        for onward in _references_to_same_value(definition(root, reference)):
            _follow(root, onward, trail=(*trail, reference), finished=finished)
        finished.add(reference)


def _references_to_same_value(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"]
    for keyword in _SAME_VALUE:
        argument = schema.get(keyword, [])
        for inner in argument if isinstance(argument, list) else [argument]:
            yield from _references_to_same_value(inner)
