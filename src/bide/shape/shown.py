"""Any value of a state as JSON: in the form in which clients of LangGraph know messages, models and questions.

Whatever a graph keeps must be shown somehow, so nothing here raises: what JSON has no form for is shown as its text.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from bide.errors import BideError
from bide.messages import AIMessage, Message
from bide.shape import json_schema
from bide.shape.models import is_model
from bide.types import UNSET, Interrupt

_DEEPEST = 300
"""How deep lists and objects may nest. The store keeps nothing that is deeper; a value that holds itself is."""

_LONGEST_NUMBER = 8192
"""Bits of a number past which Python writes it in decimal digits only when it is asked to."""

_FIRST = ("content", "additional_kwargs", "response_metadata", "type", "name", "id")


def jsonable(value: Any) -> Any:
    """Return a value as JSON can carry it."""
    try:
        return _plain(value, 0)
    except RecursionError:
        return _named(value)


def _plain(value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    cls = type(value)
    if cls is str:
        return _text(value)
    if cls is float or cls is int:
        return _number(value)
    if depth > _DEEPEST:
        return _named(value)
    if cls is dict:
        return _entries(value, depth)
    if cls is list or cls is tuple:
        return [_plain(one, depth + 1) for one in value]
    try:
        opened = _opened(value)
    except Exception:  # noqa: BLE001 - whatever a class of the application's raises, its value is shown by its name
        return _named(value)
    return _plain(opened, depth + 1)


def _entries(given: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {_key(key): _plain(value, depth + 1) for key, value in given.items()}


def _key(given: Any) -> str:
    if type(given) is str:
        return _text(given)
    plain = given if isinstance(given, tuple) else _plain(given, 0)
    if isinstance(plain, bool) or plain is None:
        return {True: "true", False: "false", None: "null"}[plain]
    return _text(str(plain))


def _text(given: str) -> str:
    if given.isascii():
        return given
    # Half a surrogate pair has no bytes in UTF-8, and would break the whole response.
    return given.encode("utf-8", "replace").decode("utf-8")


def _number(given: int | float) -> Any:
    if isinstance(given, float):
        return given if math.isfinite(given) else None
    return given if given.bit_length() < _LONGEST_NUMBER else hex(given)


def _named(value: Any) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


# ── What is not JSON by itself ─────────────────────────────────────────────────────────────────────────────────────


def _opened(value: Any) -> Any:
    """Return something nearer to JSON: the value taken apart, or its text."""
    for kinds, opens in _KINDS:
        if isinstance(value, kinds):
            return opens(value)
    return _opened_by_its_looks(value)


def _opened_by_its_looks(value: Any) -> Any:
    if isinstance(value, type):
        return str(value)
    if callable(getattr(value, "model_dump", None)):
        # A field that holds something else than it says is shown as it is; a warning would reach nobody.
        return value.model_dump(warnings=False) if is_model(type(value)) else value.model_dump()
    if isinstance(value, Message):
        return _message(value)
    if type(value).__name__ == "Interrupt" and hasattr(value, "value") and hasattr(value, "id"):
        return _question(value)
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if callable(getattr(value, "_asdict", None)):
        return value._asdict()
    if callable(getattr(value, "dict", None)):
        return value.dict()
    return _opened_container(value)


def _opened_container(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(value)
    return str(value)


def _message(message: Message) -> dict[str, Any]:
    """Return one of our messages as LangChain writes its own."""
    own = {f.name: getattr(message, f.name) for f in dataclasses.fields(message)}
    told = {name: message.type if name == "type" else own.pop(name) for name in _FIRST}
    if isinstance(message, AIMessage):
        told |= {"tool_calls": own.pop("tool_calls"), "invalid_tool_calls": []}
    return told | own


def _question(asked: Any) -> dict[str, Any]:
    told = {"value": asked.value, "id": asked.id}
    schema = getattr(asked, "response_schema", None)
    return told if schema is None else {**told, "response_schema": _schema(schema)}


def _schema(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    try:
        return json_schema(given)
    except BideError:
        return {}


def _exact(given: Decimal) -> Any:
    if not given.is_finite():
        return None
    return int(given) if given == given.to_integral_value() and abs(given.adjusted()) < 300 else float(given)


def _encoded(given: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(given).decode("ascii")


_Kind = tuple[type | tuple[type, ...], Callable[[Any], Any]]

# An enum that is also a text or a number is told by its value, so it comes first.
_KINDS: tuple[_Kind, ...] = (
    (Enum, lambda value: value.value),
    (type(UNSET), lambda value: None),
    (str, lambda value: str.__str__(value)),
    (bool, bool),
    (int, int),
    (float, float),
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: value.total_seconds()),
    (UUID, str),
    (Decimal, _exact),
    ((bytes, bytearray, memoryview), _encoded),
    (Interrupt, _question),
    (BaseException, lambda error: {"error": type(error).__name__, "message": str(error)}),
    (re.Pattern, lambda value: value.pattern),
    ((PurePath, tzinfo), str),
)
