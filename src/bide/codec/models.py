"""Pydantic models (Ext 5). Pydantic is never imported here: a value or class of it can only exist if it is loaded."""

from __future__ import annotations

import sys
from typing import Any, cast

from bide.codec.refusal import Refused
from bide.codec.shapes import Default, Fields, complete, refuse_hidden_state
from bide.codec.wire import PYDANTIC


def is_pydantic_model(cls: type) -> bool:
    """Tell whether the class is a pydantic model."""
    # Not `pydantic` itself: that one loads its parts when they are asked for.
    loaded = sys.modules.get("pydantic.main")
    return loaded is not None and issubclass(cls, loaded.BaseModel)


class PydanticShape:
    """Stores a model by its fields, which of them were set, its extra and its private attributes."""

    code = PYDANTIC

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def take_apart(self, value: Any) -> list[Any]:
        """Return the values of the fields, and the rest of the model's state."""
        known = self._cls.model_fields
        state = value.__dict__
        if state.keys() != known.keys():
            refuse_hidden_state(value, known, ())
        try:
            fields = {name: state[name] for name in known}
        except KeyError as error:
            raise Refused(value, f"its field {error} was never set") from error
        return [fields, sorted(value.__pydantic_fields_set__), value.__pydantic_extra__, value.__pydantic_private__]

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return a model in this state."""
        chosen, extra, private = rest
        known = {name: pydantic_default_of(info, fields) for name, info in self._cls.model_fields.items()}
        whole = complete(self._cls, fields, known)
        still_there = {name for name in chosen if name in whole or name in (extra or ())}
        return build_model(self._cls, whole, still_there, extra=extra, private=private)


def build_model(cls: Any, fields: Fields, chosen: set[str], *, extra: Fields | None, private: Fields | None) -> Any:
    """Return a model in exactly this state, unvalidated, through the door that pydantic keeps for copies."""
    model = cls.__new__(cls)
    model.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_fields_set__": chosen,
            "__pydantic_extra__": extra,
            "__pydantic_private__": private,
        }
    )
    return model


def pydantic_default_of(info: Any, fields: Fields) -> Default | None:
    """Return what makes the default of a field that was not stored, if it has one."""
    if info.is_required():
        return None
    if getattr(info, "default_factory_takes_validated_data", False):
        return lambda: info.get_default(call_default_factory=True, validated_data=fields)
    if info.default_factory is not None:
        return cast(Default, info.default_factory)
    return info.get_default  # type: ignore[no-any-return]
