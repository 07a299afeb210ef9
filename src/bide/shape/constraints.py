"""Bounds written as `Annotated[int, Ge(0)]`, by annotated-types or pydantic.

Known by the names of their attributes, so that neither library is needed. Annotations that say nothing about the
value (a reducer, a note to another library) are none of our business; a bound that could not be enforced is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bide.errors import InterruptError

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_KEYWORDS: dict[str, dict[str, str]] = {
    "integer": _BOUNDS,
    "number": _BOUNDS,
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_ATTRIBUTES = sorted({attribute for keywords in _KEYWORDS.values() for attribute in keywords})


def constrained(schema: dict[str, Any], annotations: Iterable[object]) -> dict[str, Any]:
    """Return the schema with every bound and description among the annotations, or raise InterruptError."""
    result = dict(schema)
    for annotation in _unfolded(annotations):
        description = annotation if isinstance(annotation, str) else getattr(annotation, "description", None)
        if isinstance(description, str):
            result["description"] = description
        for attribute in _ATTRIBUTES:
            limit = getattr(annotation, attribute, None)
            if limit is not None and not callable(limit):
                result[_keyword(schema, attribute, limit)] = getattr(limit, "pattern", limit)
    return result


def _unfolded(annotations: Iterable[object]) -> Iterator[object]:
    for annotation in annotations:
        yield annotation
        inner = getattr(annotation, "metadata", None)  # pydantic's Field() keeps its bounds in there
        if isinstance(inner, (list, tuple)):
            yield from inner


def _keyword(schema: dict[str, Any], attribute: str, limit: object) -> str:
    # A string with a format stands for another type: the length of a date's text is not what was meant.
    kind = None if "format" in schema else schema.get("type")
    keyword = _KEYWORDS.get(kind, {}).get(attribute) if isinstance(kind, str) else None
    if keyword is None:
        raise InterruptError(
            f"The bound {attribute}={limit!r} of an Annotated type cannot be enforced on {schema!r}. Put bounds on "
            f"int, float, str, list or dict, inside the Optional or Union if there is one; or give a JSON Schema."
        )
    return keyword
