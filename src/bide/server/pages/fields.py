"""Forms made of JSON Schema, and what was typed into them as a value again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bide.shape.shown import jsonable

Schema = Mapping[str, Any]
Typed = Mapping[str, str]

_ABSENT = object()
_LONG = 60
"""A text that has more characters, or several lines, gets room for several lines."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values that a field may have."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Field:
    """Something to fill in. `kind` is text, long, number, check, choice, lines (one text in each), or json."""

    name: str
    label: str
    kind: str
    is_required: bool = False
    value: str = ""
    choices: tuple[Choice, ...] = ()
    hint: str = ""
    step: str = ""
    problems: tuple[str, ...] = ()
    is_nullable: bool = False


class FieldProblem(ValueError):
    """What was typed cannot be read as what the field is for."""


# ── From a schema to fields ────────────────────────────────────────────────────────────────────────────────────────


def properties_of(schema: Schema | None) -> Mapping[str, Any] | None:
    """Return the properties of an object that can be filled in, or None when it is no such object."""
    if schema is None:
        return None
    found = resolved(schema, schema).get("properties")
    return found if isinstance(found, Mapping) and found else None


def resolved(part: Any, whole: Schema) -> Mapping[str, Any]:
    """Return a part of a schema, following one reference to a definition."""
    if not isinstance(part, Mapping):
        return {}
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = whole
        for step in reference[2:].split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return {**found, **{key: value for key, value in part.items() if key != "$ref"}}
    return part


def fields_of(schema: Schema, given: Mapping[str, Any] | None = None, prefix: str = "field.") -> tuple[Field, ...]:
    """Return a field for each property of an object, with what is proposed for it."""
    required, proposed = schema.get("required") or (), given or {}
    return tuple(
        field_of(f"{prefix}{name}", name, part, schema, name in required, proposed.get(name, _ABSENT))
        for name, part in (properties_of(schema) or {}).items()
    )


def field_of(name: str, label: str, part: Any, whole: Schema, is_required: bool = True, given: Any = _ABSENT) -> Field:
    """Return the field of one value."""
    shape, is_nullable = _without_null(resolved(part, whole), whole)
    value = shape.get("default", _ABSENT) if given is _ABSENT else given
    kind, choices = _kind_of(shape, value, is_required)
    return Field(
        name=name,
        label=str(shape.get("title") or label.replace("_", " ")),
        kind=kind,
        is_required=is_required and not is_nullable,
        value=_written(kind, value),
        choices=choices,
        hint=str(shape.get("description") or ""),
        step="1" if shape.get("type") == "integer" else "any",
        is_nullable=is_nullable,
    )


def _without_null(shape: Mapping[str, Any], whole: Schema) -> tuple[Mapping[str, Any], bool]:
    """Return what a value is when it is not null, and whether it may be."""
    kinds = shape.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        return {**shape, "type": next(kind for kind in kinds if kind != "null")}, True
    several = shape.get("anyOf")
    if isinstance(several, list) and len(several) == 2 and {"type": "null"} in several:
        other = next(one for one in several if one != {"type": "null"})
        return {**shape, **resolved(other, whole)}, True
    return shape, False


def _kind_of(shape: Mapping[str, Any], value: Any, is_required: bool) -> tuple[str, tuple[Choice, ...]]:
    options = shape.get("enum")
    if isinstance(options, list) and options:
        return "choice", tuple(
            Choice(json.dumps(one), one if isinstance(one, str) else json.dumps(one)) for one in options
        )
    kind = shape.get("type")
    if kind == "boolean":
        return ("check", ()) if is_required else ("choice", (Choice("true", "yes"), Choice("false", "no")))
    if kind in ("integer", "number"):
        return "number", ()
    if kind == "array" and isinstance(shape.get("items"), Mapping) and shape["items"].get("type") == "string":
        return "lines", ()
    if kind != "string":
        return "json", ()
    return "long" if isinstance(value, str) and (len(value) > _LONG or "\n" in value) else "text", ()


def _written(kind: str, value: Any) -> str:
    if value is _ABSENT or (value is None and kind != "json"):
        return ""
    if kind in ("text", "long") and isinstance(value, str):
        return value
    if kind == "lines" and isinstance(value, list):
        return "\n".join(map(str, value))
    return json.dumps(jsonable(value), ensure_ascii=False, indent=2 if kind == "json" else None)


def fields_for(given: Mapping[str, Any], prefix: str) -> tuple[Field, ...]:
    """Return fields for values that have no schema: each is what its value looks like."""
    return tuple(field_of(f"{prefix}{name}", name, _looks(value), {}, True, value) for name, value in given.items())


def _looks(value: Any) -> dict[str, Any]:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    found = next((kind for cls, kind in kinds if isinstance(value, cls)), None)
    if found is not None:
        return {"type": found}
    is_lines = isinstance(value, list) and value and all(isinstance(one, str) and "\n" not in one for one in value)
    return {"type": "array", "items": {"type": "string"}} if is_lines else {}


# ── From what was typed to a value ─────────────────────────────────────────────────────────────────────────────────


def filled_in(fields: Iterable[Field], typed: Typed) -> Iterator[Field]:
    """Yield the fields as somebody has filled them in, to be shown again."""
    for field in fields:
        value = typed.get(field.name, "")
        yield with_value(field, ("true" if value else "false") if field.kind == "check" else value)


def with_value(field: Field, value: str, problems: Sequence[str] = ()) -> Field:
    """Return a field with another value in it, and what is wrong with that."""
    return replace(field, value=value, problems=tuple(problems) or field.problems)


def read_fields(fields: Sequence[Field], typed: Typed, prefix: str = "field.") -> tuple[dict[str, Any], dict[str, str]]:
    """Return what was typed as an object, and what cannot be read, each by the name of its field.

    An empty field is left out: whether it may be is for the schema to say.
    """
    read: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in fields:
        try:
            value = read_field(field, typed)
        except FieldProblem as problem:
            wrong[field.name] = str(problem)
            continue
        if value is not _ABSENT:
            read[field.name.removeprefix(prefix)] = value
    return read, wrong


def is_absent(value: Any) -> bool:
    """Whether nothing was typed."""
    return value is _ABSENT


def read_field(field: Field, typed: Typed) -> Any:
    """Return what was typed into one field."""
    text = typed.get(field.name, "").replace("\r\n", "\n")
    if field.kind == "check":
        return bool(text)
    if field.kind in ("text", "long") and text:
        return text
    if field.kind == "lines":
        return [line for line in text.split("\n") if line.strip()]
    if not text.strip():
        return None if field.is_nullable else _ABSENT
    return _number(text) if field.kind == "number" else read_json(text)


def _number(text: str) -> int | float:
    try:
        read = json.loads(text.strip())
    except ValueError:
        read = None
    if isinstance(read, bool) or not isinstance(read, int | float):
        raise FieldProblem(f"{text.strip()[:40]!r} is not a number")
    return read


def read_json(text: str) -> Any:
    """Return what a text says in JSON."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise FieldProblem("this nests too deep") from None
    except ValueError as problem:
        raise FieldProblem(f"this is not JSON: {problem}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
