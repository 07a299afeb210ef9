"""The signal that a value cannot be stored; it becomes an `UnstorableValueError` once its path is known."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """One value, somewhere in what is being written, cannot be stored."""

    def __init__(self, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.value = value
        self.reason = reason


class NestedTooDeep(Exception):
    """What is being written nests too deep, or contains itself."""


def type_name(value: Any) -> str:
    """Return the name of the value's class, with its module unless it is a builtin."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
