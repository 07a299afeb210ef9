"""Values as JSON has them: what `--json` prints."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from os import PathLike
from typing import Any

DEEPEST = 100


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as dicts, lists, texts and numbers. Times are ISO 8601, bytes are base64."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value if value is None or isinstance(value, bool | int) else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict(), depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in fields(value)}
    return _plain_object(value, depth)


def _plain_object(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, PathLike):
        return str(value)
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump(), depth + 1)
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        key = key.value
    return key.isoformat() if isinstance(key, datetime) else str(key)
