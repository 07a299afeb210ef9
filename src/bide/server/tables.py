"""A table of a settings file as a dataclass: every key must be known, and every value be of its kind.

The dataclasses of settings.py are the schema. Whatever is wrong is told with the file, the table and the key.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bide.errors import SettingsError, did_you_mean

T = TypeVar("T")

FROM_ENVIRONMENT = "env:"
"""How a value begins that is read from the environment: secrets have no place in a file."""
_KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class Table:
    """One table as it was written, and where."""

    file: str
    name: str
    given: Mapping[str, Any]

    def wrong(self, key: str | None, what: str) -> SettingsError:
        """Return an error about a key, or about the table as a whole."""
        return SettingsError(f"{self.file}, {self.name}{'' if key is None else f', key {key!r}'}: {what}")

    def check_keys(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody reads: a misspelt one would be as if it had never been written."""
        allowed = list(known)
        for key in self.given:
            if key not in allowed:
                hint = did_you_mean(key, allowed)
                raise self.wrong(key, f"there is no such key here.{hint} There are {', '.join(allowed)}.")

    def read(self, kind: type[T], names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return what is said of the fields of a dataclass, or of some of them: each checked, none filled in."""
        hints = get_type_hints(kind)
        chosen = [field.name for field in fields(kind) if names is None or field.name in names]  # type: ignore[arg-type]
        return {name: self._value(name, hints[name], self.given[name]) for name in chosen if name in self.given}

    def make(self, kind: type[T]) -> T:
        """Return the whole table as a dataclass."""
        self.check_keys(field.name for field in fields(kind))  # type: ignore[arg-type]
        for field in fields(kind):  # type: ignore[arg-type]
            if field.name not in self.given and field.default is MISSING and field.default_factory is MISSING:
                raise self.wrong(field.name, "this key is missing.")
        return kind(**self.read(kind))

    # ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _value(self, key: str, hint: Any, given: Any) -> Any:
        found = self._resolved(key, given)
        origin, parts = get_origin(hint), get_args(hint)
        if hint is Any:
            return found
        if origin in (Union, types.UnionType):
            return self._value(key, next(part for part in parts if part is not type(None)), found)
        if origin is Literal:
            return self._choice(key, parts, found)
        if origin is tuple:
            if not isinstance(found, list):
                raise self.wrong(key, f"give a list in brackets, not {found!r}.")
            return tuple(self._value(key, parts[0], one) for one in found)
        if origin is not None and issubclass(origin, Mapping):
            if not isinstance(found, dict):
                raise self.wrong(key, f"give a table of its own, not {found!r}.")
            return {name: self._resolved(f"{key}.{name}", value) for name, value in found.items()}
        return self._plain(key, hint, found)

    def _plain(self, key: str, kind: Any, found: Any) -> Any:
        if kind is float and isinstance(found, int) and not isinstance(found, bool):
            found = float(found)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.wrong(key, f"{found!r} is not {_KINDS[kind]}.")
        if kind in (int, float) and found < 0:
            raise self.wrong(key, f"{found!r} is less than nothing.")
        if kind is str and not found.strip():
            raise self.wrong(key, "an empty text says nothing. Leave the key out.")
        return found

    def _choice(self, key: str, choices: tuple[Any, ...], found: Any) -> Any:
        if found not in choices:
            hint = did_you_mean(found, choices)
            raise self.wrong(key, f"{found!r} is none of {', '.join(map(repr, choices))}.{hint}")
        return found

    def _resolved(self, key: str, given: Any) -> Any:
        """Put in what the environment holds, where a value points there."""
        if isinstance(given, list):
            return [self._resolved(key, one) for one in given]
        if not isinstance(given, str) or not given.startswith(FROM_ENVIRONMENT):
            return given
        name = given.removeprefix(FROM_ENVIRONMENT).strip()
        found = os.environ.get(name, "")
        if not found:
            raise self.wrong(key, f"it is to be read from the environment, and {name!r} is not set there. Export it.")
        return found
