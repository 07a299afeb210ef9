"""Pydantic models as answers: they describe and build themselves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bide.errors import InterruptError
from bide.shape.forms import Definitions, Form
from bide.shape.models import validation_error
from bide.shape.plain import NotPlainError, to_plain
from bide.shape.report import Path, Problem, refusal
from bide.shape.vocabulary import Schema


@dataclass(frozen=True)
class Model(Form):
    """A pydantic model."""

    model: type[Any]

    def schema(self, definitions: Definitions) -> Schema:
        """Take over the model's own schema, with its definitions under its name."""

        def describe_model(name: str) -> Schema:
            schema = model_schema(self.model, prefix=f"{name}.")
            for inner_name, inner in schema.pop("$defs", {}).items():
                definitions.schemas[f"{name}.{inner_name}"] = inner
            return schema

        return definitions.refer(self.model, self.model.__name__, describe_model)

    def build(self, value: object, path: Path) -> object:
        """Let pydantic build it, or raise InvalidAnswerError with every message of pydantic."""
        try:
            return self.model.model_validate(value)
        except validation_error() as error:
            instance = self._built_from_json(value)
            if instance is None:
                raise refusal(_problems_of(error, path)) from error
            return instance

    def _built_from_json(self, value: object) -> object:
        # A strict model takes '2026-01-31' for a date only when it comes as JSON, and an answer does come as JSON.
        try:
            return self.model.model_validate_json(json.dumps(to_plain(value)))
        except (validation_error(), NotPlainError, TypeError, ValueError):
            return None


def model_schema(model: type[Any], prefix: str = "") -> Schema:
    """Return the model's own JSON Schema; its references carry the prefix, the keys of its `$defs` do not."""
    try:
        schema: Schema = model.model_json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    except (RuntimeError, NameError) as error:
        raise InterruptError(f"pydantic cannot describe {model.__name__!r} as a JSON Schema: {error}") from error
    return schema


def _problems_of(error: Any, path: Path) -> list[Problem]:
    return [
        Problem((*path, *found["loc"]), found["msg"])
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
