"""The schemas of a graph as JSON Schema. A type that has none is told as "anything": pictures and forms go on."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, get_args, get_origin

from bide.errors import BideError
from bide.graph.compiled import CompiledGraph
from bide.graph.schema import read_schema
from bide.messages import add_messages
from bide.shape import json_schema
from bide.shape.models import is_model

Schema = dict[str, Any]

MESSAGES: Schema = {
    "type": "array",
    "title": "Messages",
    "items": {
        "type": "object",
        "title": "Message",
        "properties": {
            "type": {"type": "string"},
            "content": {"anyOf": [{"type": "string"}, {"type": "array"}]},
            "id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["content"],
    },
}


def schemas_of(graph_id: str, graph: CompiledGraph) -> Schema:
    """Return all schemas of a graph."""
    builder, context = graph.builder, _told(graph.build.context_schema, "Context")
    if builder is None:
        state = input = output = None
    else:
        given = builder.state_schema
        state = _object(builder.schema.keys, given, "State")
        input = _object(builder.input.keys, given if builder.input is builder.schema else None, "Input")
        output = _object(builder.output.keys, given if builder.output is builder.schema else None, "Output")
    return {
        "graph_id": graph_id,
        "input_schema": input,
        "output_schema": output,
        "state_schema": state,
        "config_schema": context,
        "context_schema": context,
    }


def _told(schema: Any, title: str) -> Schema | None:
    if schema is None:
        return None
    try:
        return _object(read_schema(schema).keys, schema, getattr(schema, "__name__", title))
    except BideError:
        return {"title": title}


def _object(keys: Mapping[str, Any], schema: Any, title: str) -> Schema:
    """Describe an object key by key, so that one key that cannot be told spoils no other."""
    definitions: dict[str, Schema] = {}
    properties = {key: _property(key, annotation, definitions) for key, annotation in keys.items()}
    told: Schema = {"type": "object", "title": getattr(schema, "__name__", title), "properties": properties}
    needed = [key for key in keys if key in _needed(schema)]
    if needed:
        told["required"] = needed
    return {**told, "$defs": definitions} if definitions else told


def _property(key: str, annotation: Any, definitions: dict[str, Schema]) -> Schema:
    title = key.replace("_", " ").title()
    if _are_messages(annotation):
        return {**MESSAGES, "title": title}
    try:
        told = json_schema(_bare(annotation))
    except BideError:
        return {"title": title}
    own = told.pop("$defs", {})
    # Two keys may each have a type of the same name; under its key every name is its own.
    definitions |= {f"{key}.{name}": _moved(one, key) for name, one in own.items()}
    return {"title": title, **_moved(told, key)}


def _moved(schema: Any, key: str) -> Any:
    if isinstance(schema, list):
        return [_moved(one, key) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: f"#/$defs/{key}.{value.removeprefix('#/$defs/')}"
        if name == "$ref" and isinstance(value, str)
        else _moved(value, key)
        for name, value in schema.items()
    }


def _bare(annotation: Any) -> Any:
    """Take off what says how a key is merged, and whether it must be there."""
    while get_origin(annotation) in (typing.Required, typing.NotRequired):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Annotated:
        kind, *extras = get_args(annotation)
        said = [one for one in extras if not callable(one)]
        return Annotated[(kind, *said)] if said else kind
    return annotation


def _are_messages(annotation: Any) -> bool:
    while get_origin(annotation) in (typing.Required, typing.NotRequired):
        annotation = get_args(annotation)[0]
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(one is add_messages or (isinstance(one, partial) and one.func is add_messages) for one in extras)


def _needed(schema: Any) -> Iterable[str]:
    if typing.is_typeddict(schema):
        return typing.cast("frozenset[str]", schema.__required_keys__)
    if is_model(schema):
        return [name for name, one in schema.model_fields.items() if one.is_required()]
    if dataclasses.is_dataclass(schema):
        none = dataclasses.MISSING
        return [one.name for one in dataclasses.fields(schema) if one.default is none and one.default_factory is none]
    return ()
