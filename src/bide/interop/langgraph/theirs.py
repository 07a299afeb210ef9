"""What LangGraph itself puts into checkpoints and writes, under names that outlive its modules.

The classes are looked up here, when a saver is made. Reading picks from what was found, and imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from bide.codec.registry import Registered, Registry
from bide.codec.shapes import Default, Fields, complete
from bide.codec.wire import DATACLASS

# Name in stored bytes, module, class. Some of them are only there in some releases, or with langgraph itself.
_PLAIN = (
    ("langgraph.Interrupt", "langgraph.types", "Interrupt"),
    ("langgraph.Command", "langgraph.types", "Command"),
    ("langgraph.Overwrite", "langgraph.types", "Overwrite"),
    ("langgraph.TimeoutPolicy", "langgraph.types", "TimeoutPolicy"),
    ("langgraph.PregelTask", "langgraph.types", "PregelTask"),
    ("langgraph.StateSnapshot", "langgraph.types", "StateSnapshot"),
    ("langgraph.DeltaSnapshot", "langgraph.checkpoint.serde.types", "_DeltaSnapshot"),
)
# Neither dataclasses nor tuples: objects with slots. Those that came later may be missing from what is stored.
_SLOTTED: tuple[tuple[str, str, str, frozenset[str]], ...] = (
    ("langgraph.Send", "langgraph.types", "Send", frozenset({"timeout"})),
    ("langgraph.Item", "langgraph.store.base", "Item", frozenset()),
)


class SlotsShape:
    """Stores an object by its slots."""

    code = DATACLASS

    def __init__(self, cls: Any, optional: frozenset[str]) -> None:
        self._cls = cls
        self._defaults: dict[str, Default | None] = {
            name: _nothing if name in optional else None for name in cls.__slots__
        }

    def take_apart(self, value: Any) -> list[Any]:
        """Return the values of the slots."""
        return [{name: getattr(value, name) for name in self._defaults}]

    def put_together(self, fields: Fields, rest: list[Any]) -> Any:
        """Return an object with these slots."""
        built = object.__new__(self._cls)
        for name, value in complete(self._cls, fields, self._defaults).items():
            object.__setattr__(built, name, value)
        return built


class LangGraphRegistry(Registry):
    """The classes that a saver may store: LangGraph's own, those that were given, and what is registered anywhere."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        super().__init__()
        slotted = tuple(_slotted())
        self._slotted_by_name = {entry.name: entry for entry in slotted}
        self._slotted_by_class = {entry.cls: entry for entry in slotted}
        for name, cls in _plain():
            self.add(cls, name)
        for cls in types:
            self.add(cls)

    def named(self, name: str) -> Registered | None:
        """Return what is registered under this name."""
        return self._slotted_by_name.get(name) or super().named(name)

    def of(self, cls: type) -> Registered | None:
        """Return what this class is registered as."""
        return self._slotted_by_class.get(cls) or super().of(cls)


def _plain() -> Iterator[tuple[str, type]]:
    for name, module, attribute in _PLAIN:
        cls = _class(module, attribute)
        if cls is not None:
            yield name, cls


def _slotted() -> Iterator[Registered]:
    for name, module, attribute, optional in _SLOTTED:
        cls = _class(module, attribute)
        if cls is not None:
            yield Registered(cls, name, 1, SlotsShape(cls, optional))


def _class(module: str, attribute: str) -> type | None:
    try:
        return getattr(import_module(module), attribute, None)
    except ImportError:
        return None  # langgraph-checkpoint is there, and langgraph is not


def _nothing() -> None:
    return None
