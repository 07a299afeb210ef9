"""Knows a pydantic model when it sees one, and never imports pydantic.

A model can only be at hand when its own program has imported pydantic, so looking into `sys.modules` is enough; a
program without pydantic pays nothing.
"""

from __future__ import annotations

import sys
from typing import Any, TypeGuard

# `pydantic` itself loads its parts lazily: asking it for BaseModel could start the very import that is avoided here.
_HOME_OF_MODELS = "pydantic.main"
_HOME_OF_ERRORS = "pydantic_core"


def is_model(shape: object) -> TypeGuard[type[Any]]:
    """Say whether this is a pydantic model class."""
    base = getattr(sys.modules.get(_HOME_OF_MODELS), "BaseModel", None)
    return base is not None and isinstance(shape, type) and issubclass(shape, base)


def validation_error() -> Any:
    """Return the class of the errors of a model; there is one as soon as there is a model."""
    return sys.modules[_HOME_OF_ERRORS].ValidationError


def dump(instance: Any) -> object:
    """Return the plain form of a model instance, as it could be given again."""
    # round_trip leaves computed fields out: nobody can answer them, and a strict schema would call them unknown.
    return instance.model_dump(mode="json", by_alias=True, round_trip=True, warnings=False)
