"""The kinds of types an answer may have: how each is described to others, and how an answer becomes it.

`bide.shape.recognise` makes the form of a type. A form is given its inner types as functions, called only when they
are needed, so a type may hold itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType
from typing import Any

from bide.errors import InterruptError, InvalidAnswerError
from bide.shape.check import problems
from bide.shape.constraints import constrained
from bide.shape.plain import canonical, open_up, to_plain
from bide.shape.report import Path, Problem, refusal
from bide.shape.vocabulary import Schema


class Definitions:
    """The `$defs` of one schema: every named type once, so that types may share and hold each other."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[object, str] = {}
        self._uses: Counter[str] = Counter()

    def refer(self, owner: object, title: str, describe_as: Callable[[str], Schema]) -> Schema:
        """Return a reference to the definition of `owner`, which is described at its first use."""
        if owner not in self._names:
            name = self._names[owner] = self._free_name(title)
            self.schemas[name] = {}  # holds the name while the type describes itself
            self.schemas[name] = describe_as(name)
        name = self._names[owner]
        self._uses[name] += 1
        return {"$ref": f"#/$defs/{name}"}

    def finish(self, schema: Schema) -> Schema:
        """Return the schema with the definitions it needs; a definition that is used once, at the top, moves there."""
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        if len(schema) == 1 and self._uses[name] == 1:
            schema = self.schemas.pop(name)
        return {**schema, "$defs": self.schemas} if self.schemas else schema

    def _free_name(self, title: str) -> str:
        base = "".join(letter if letter.isalnum() else "_" for letter in title) or "_"
        names = (base if number == 1 else f"{base}_{number}" for number in range(1, len(self.schemas) + 2))
        return next(name for name in names if name not in self.schemas)


class Form(ABC):
    """One kind of type."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Schema:
        """Describe the type as JSON Schema."""

    @abstractmethod
    def build(self, value: object, path: Path) -> object:
        """Return a value, whose plain form fits the schema, as the type; an instance of the type stays as it is."""


Inner = Callable[[], Form]


def describe(form: Form) -> Schema:
    """Return the whole JSON Schema of a type, with its definitions."""
    definitions = Definitions()
    return definitions.finish(form.schema(definitions))


# --- single values ----------------------------------------------------------------------------------------------------


class Anything(Form):
    """Any and object: everything fits, and nothing is changed."""

    def schema(self, definitions: Definitions) -> Schema:
        """Describe what has no shape."""
        return {}

    def build(self, value: object, path: Path) -> object:
        """Return the value itself."""
        return value


@dataclass(frozen=True)
class Scalar(Form):
    """A type of one value: as JSON has it, or as a string that is parsed."""

    type: type
    described: Schema
    make: Callable[[Any], object]

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the JSON type, and the format of a string."""
        return dict(self.described)

    def build(self, value: object, path: Path) -> object:
        """Parse the string, or turn the number into the right kind of number."""
        if isinstance(value, self.type):
            return value
        try:
            return self.make(open_up(value))
        except (ValueError, OverflowError) as error:
            raise refusal([Problem(path, f"cannot become {self.type.__name__!r} ({error})")]) from error


_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


@dataclass(frozen=True)
class Choice(Form):
    """An Enum or a Literal: one of some values."""

    options: tuple[object, ...]
    owner: type[Enum] | None = None

    def schema(self, definitions: Definitions) -> Schema:
        """List the plain forms of the values; an Enum gets a name."""
        if self.owner is None:
            return self._described()
        title = self.owner.__name__
        return definitions.refer(self.owner, title, lambda _: {"title": title, **self._described()})

    def _described(self) -> Schema:
        plain = [to_plain(option) for option in self.options]
        for value in plain:
            if value is not None and not isinstance(value, (str, int, float, list, dict)):
                raise InterruptError(f"The choice {value!r} has no JSON form, so nobody could give it as an answer.")
        kinds = {_JSON_NAMES.get(type(value)) for value in plain}
        typed = {"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}
        return {**typed, "const": plain[0]} if len(plain) == 1 else {**typed, "enum": plain}

    def build(self, value: object, path: Path) -> object:
        """Return the member or the literal that has this plain form."""
        if self.owner is not None and isinstance(value, self.owner):
            return value
        wanted = canonical(to_plain(value))
        return next(option for option in self.options if canonical(to_plain(option)) == wanted)


# --- containers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Items(Form):
    """A list, a tuple of any length or a set."""

    make: Callable[[list[object]], object]
    item: Inner
    unique: bool = False

    def schema(self, definitions: Definitions) -> Schema:
        """Describe a list of items."""
        items = self.item().schema(definitions)
        return {
            "type": "array",
            **({"items": items} if items else {}),
            **({"uniqueItems": True} if self.unique else {}),
        }

    def build(self, value: object, path: Path) -> object:
        """Build every item, and the container around them."""
        form = self.item()
        built = [form.build(item, (*path, index)) for index, item in enumerate(_opened_list(value))]
        try:
            return self.make(built)
        except TypeError as error:
            raise refusal([Problem(path, f"cannot become a set ({error})")]) from error


@dataclass(frozen=True)
class Row(Form):
    """A tuple or a NamedTuple: as many items as there are places, each with its own type."""

    places: tuple[Inner, ...]
    titles: tuple[str, ...] = ()
    optional: int = 0
    owner: type | None = None

    def schema(self, definitions: Definitions) -> Schema:
        """Describe a list with a type for each place; a NamedTuple gets a name, and its places titles."""
        if self.owner is None:
            return self._described(definitions)
        title = self.owner.__name__
        return definitions.refer(self.owner, title, lambda _: {"title": title, **self._described(definitions)})

    def _described(self, definitions: Definitions) -> Schema:
        places = [place().schema(definitions) for place in self.places]
        for schema, title in zip(places, self.titles, strict=False):
            schema.setdefault("title", title)
        sizes = {"minItems": len(places) - self.optional, "maxItems": len(places)}
        return {"type": "array", **({"prefixItems": places} if places else {}), **sizes}

    def build(self, value: object, path: Path) -> object:
        """Build every item, and the tuple around them."""
        if self.owner is not None and isinstance(value, self.owner):
            return value
        items = enumerate(zip(self.places, _opened_list(value), strict=False))
        built = [place().build(item, (*path, index)) for index, (place, item) in items]
        return tuple(built) if self.owner is None else self.owner(*built)


@dataclass(frozen=True)
class Table(Form):
    """A dict whose keys and values have types."""

    key: Inner
    value: Inner

    def schema(self, definitions: Definitions) -> Schema:
        """Describe an object; in JSON its keys must be strings, whatever they are in Python."""
        keys = describe(self.key())
        if keys and keys.get("type") != "string":
            raise InterruptError(
                f"A dict with keys like {keys!r} cannot be answered in JSON. Use keys that are strings."
            )
        values = self.value().schema(definitions)
        return {
            "type": "object",
            **({"propertyNames": keys} if keys not in ({}, {"type": "string"}) else {}),
            **({"additionalProperties": values} if values else {}),
        }

    def build(self, value: object, path: Path) -> object:
        """Build every key and every value."""
        keys, values = self.key(), self.value()
        return {
            keys.build(key, path): values.build(item, (*path, str(open_up(key))))
            for key, item in _opened_dict(value).items()
        }


@dataclass(frozen=True)
class Field:
    """One named part of a record; `notes` go into its schema as they are."""

    name: str
    inner: Inner
    required: bool
    notes: Schema = field(default_factory=dict)


@dataclass(frozen=True)
class Record(Form):
    """A dataclass or a TypedDict."""

    owner: type
    fields: tuple[Field, ...]
    notes: Schema
    has_instances: bool

    def schema(self, definitions: Definitions) -> Schema:
        """Describe an object with these keys and no others: a misspelt optional key must not pass for a missing one."""
        return definitions.refer(self.owner, self.owner.__name__, lambda _: self._described(definitions))

    def _described(self, definitions: Definitions) -> Schema:
        required = [part.name for part in self.fields if part.required]
        return {
            "title": self.owner.__name__,
            **self.notes,
            "type": "object",
            "properties": {part.name: {**part.inner().schema(definitions), **part.notes} for part in self.fields},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def build(self, value: object, path: Path) -> object:
        """Build every part, then the record; what its constructor refuses does not fit."""
        if self.has_instances and isinstance(value, self.owner):
            return value
        given = {open_up(key): item for key, item in _opened_dict(value).items()}
        built = {
            part.name: part.inner().build(given[part.name], (*path, part.name))
            for part in self.fields
            if part.name in given
        }
        try:
            return self.owner(**built)
        except (TypeError, ValueError, AssertionError) as error:
            raise refusal([Problem(path, f"{self.owner.__name__!r} refuses it ({error})")]) from error


def _opened_list(value: object) -> list[Any]:
    opened = open_up(value)
    return opened if isinstance(opened, list) else []


def _opened_dict(value: object) -> dict[Any, Any]:
    opened = open_up(value)
    return opened if isinstance(opened, dict) else {}


# --- types around types -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternatives(Form):
    """A Union: the first member that fits, from left to right."""

    types: tuple[object, ...]
    members: tuple[Inner, ...]

    def schema(self, definitions: Definitions) -> Schema:
        """Describe each member."""
        return {"anyOf": [member().schema(definitions) for member in self.members]}

    def build(self, value: object, path: Path) -> object:
        """Build the first member that fits; an instance of a member that JSON could not have brought stays."""
        # 3 is an int in `float | int`, and an object of the second class does not become one of the first.
        if type(value) in self.types and type(value) not in (str, list, dict, tuple, set, frozenset):
            return value
        refused = refusal([Problem(path, "fits none of the allowed shapes")])
        for member in self.members:
            form = member()
            if not problems(value, describe(form)):
                try:
                    return form.build(value, path)
                except InvalidAnswerError as error:  # a constructor said no; another member may say yes
                    refused = error
        raise refused


@dataclass(frozen=True)
class Constrained(Form):
    """An Annotated type: the type, with the bounds and the description that the annotations give."""

    inner: Inner
    annotations: tuple[object, ...]

    def schema(self, definitions: Definitions) -> Schema:
        """Describe the type and its bounds."""
        return constrained(self.inner().schema(definitions), self.annotations)

    def build(self, value: object, path: Path) -> object:
        """Build the type; its bounds were checked with the schema."""
        return self.inner().build(value, path)


@dataclass(frozen=True)
class Alias(Form):
    """A `type X = …`, which may hold itself."""

    name: str
    owner: object
    inner: Inner

    def schema(self, definitions: Definitions) -> Schema:
        """Describe what the name stands for, under that name."""
        return definitions.refer(self.owner, self.name, lambda _: self.inner().schema(definitions))

    def build(self, value: object, path: Path) -> object:
        """Build what the name stands for."""
        return self.inner().build(value, path)
