"""The plain form of an answer: what JSON would carry of it.

Checks compare plain forms, so that `Invoice(total=5)`, `{"total": 5}` and what comes back from the store fit or fail
alike. A value that JSON has no form for stays as it is: it fits a schema that allows anything, and no other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from bide.shape.models import dump, is_model
from bide.shape.report import Path, Problem, show

MAX_DEPTH = 64
"""How deep lists and objects of an answer may nest; one Python frame or more is spent on each level."""

MAX_VALUES = 1_000_000
"""How many values an answer may hold; a small structure that holds itself twice, again and again, has more."""

MAX_KEY_LENGTH = 10_000
"""How long a key may be; patterns are run over keys."""


class NotPlainError(Exception):
    """The answer cannot be read; carries the problem to tell. It never leaves `bide.shape`."""

    def __init__(self, problem: Problem):
        super().__init__(str(problem))
        self.problem = problem


def open_up(value: object) -> object:
    """Return the plain form of the value itself, and leave what is inside as it is."""
    if value is None or type(value) in (str, int, float, bool, list):
        return value
    if isinstance(value, Enum):
        return open_up(value.value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    return _open_container(value)


def _open_container(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Fields that the constructor does not take are no part of an answer that would build the same object.
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    if is_model(type(value)):
        return dump(value)
    return value


def to_plain(value: object) -> Any:
    """Return the plain form of the value and of all that is inside, or raise NotPlainError with the problem."""
    return _Reader().read(value, ())


class _Reader:
    """Reads one answer, and counts what it has read."""

    def __init__(self) -> None:
        self._seen = 0

    def read(self, value: object, path: Path) -> object:
        self._seen += 1
        if self._seen > MAX_VALUES:
            raise NotPlainError(Problem((), f"holds more than {MAX_VALUES} values"))
        if len(path) > MAX_DEPTH:
            raise NotPlainError(Problem(path[:1], f"is nested deeper than {MAX_DEPTH} levels"))
        opened = self._open(value, path)
        if isinstance(opened, list):
            return [self.read(item, (*path, index)) for index, item in enumerate(opened)]
        if isinstance(opened, dict):
            return self._read_object(opened, path)
        return opened

    def _open(self, value: object, path: Path) -> object:
        try:
            return open_up(value)
        except (ValueError, TypeError, AttributeError) as error:
            # A half-built instance: a missing attribute, or a field that pydantic cannot write.
            raise NotPlainError(Problem(path, f"has no plain form ({error})", show(type(value)))) from error

    def _read_object(self, entries: dict[object, object], path: Path) -> dict[str, object]:
        plain: dict[str, object] = {}
        for key, item in entries.items():
            name = self._open(key, path)
            if not isinstance(name, str):
                raise NotPlainError(Problem(path, "expected every key to be a string", show(key)))
            if len(name) > MAX_KEY_LENGTH:
                raise NotPlainError(Problem(path, f"has a key of more than {MAX_KEY_LENGTH} characters"))
            plain[name] = self.read(item, (*path, name))
        return plain


def canonical(value: object) -> object:
    """Return a hashable stand-in; two are equal exactly when JSON would call the values equal."""
    if isinstance(value, bool):
        return ("boolean", value)  # since True == 1 in Python, but not in JSON
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list):
        return ("array", tuple(canonical(item) for item in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    return ("opaque", id(value))
