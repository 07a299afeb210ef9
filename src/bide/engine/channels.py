"""Channels: the rules by which writes become the value of a state key.

A channel holds no value. It is the rule; values live in the checkpoint. `UNSET` stands for "no value yet".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bide.errors import InvalidUpdateError
from bide.types import UNSET, Overwrite


class Channel:
    """The rule of one state key."""

    saved = True
    """Whether the value is written to the store."""
    fleeting = False
    """Whether the value is gone after the next step."""

    def __init__(self, kind: Any = None) -> None:
        """Make the rule; `kind` is the type of the values, for the reader only."""

    def initial(self) -> Any:
        """Return the value before any write, or `UNSET`."""
        return UNSET

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return the value after `writes`, which come in task order."""
        raise NotImplementedError

    def agrees_with(self, other: Channel) -> bool:
        """Whether two schemas that both name a key mean the same; a plain annotation leaves the rule to the other."""
        return type(self) is LastValue or type(self) is type(other)

    def __repr__(self) -> str:
        return type(self).__name__


class LastValue(Channel):
    """Keeps the one value written in a step; two writers in one step are an error."""

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return the written value."""
        if len(writes) > 1:
            raise InvalidUpdateError(
                f"State key {key!r} got {len(writes)} values in one step, and has no rule to merge them. "
                f"Give it a reducer: Annotated[<type>, <reducer>], for example Annotated[list, operator.add]."
            )
        value = writes[0]
        return value.value if type(value) is Overwrite else value


class AnyValue(Channel):
    """Keeps the last value in task order, however many are written."""

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return the value of the last task."""
        value = writes[-1]
        return value.value if type(value) is Overwrite else value


class Reduced(Channel):
    """Folds every write into the value with the user's reducer."""

    def __init__(self, reducer: Callable[[Any, Any], Any], empty: Callable[[], Any] | None = None) -> None:
        self.reducer = reducer
        self.empty = empty

    def initial(self) -> Any:
        """Return the empty value of the annotated type, as `list()` or `int()`."""
        return UNSET if self.empty is None else self.empty()

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return the value with every write folded in; an `Overwrite` replaces it first."""
        replaced = [write for write in writes if type(write) is Overwrite]
        if len(replaced) > 1:
            raise InvalidUpdateError(
                f"State key {key!r} got {len(replaced)} Overwrite values in one step; one may win."
            )
        value = replaced[0].value if replaced else current
        value = lend(value)  # a reducer may change it in place; the checkpoint before must not change with it
        for write in writes:
            if type(write) is not Overwrite:
                value = self._fold(key, value, write)
        return value

    def agrees_with(self, other: Channel) -> bool:
        """Whether the other one folds with the same reducer."""
        return isinstance(other, Reduced) and other.reducer is self.reducer

    def __repr__(self) -> str:
        return getattr(self.reducer, "__name__", repr(self.reducer))

    def _fold(self, key: str, value: Any, write: Any) -> Any:
        if value is UNSET:
            value = self.initial()
            if value is UNSET:
                return write
        try:
            return self.reducer(value, write)
        except Exception as problem:
            name = getattr(self.reducer, "__name__", repr(self.reducer))
            raise InvalidUpdateError(
                f"The reducer {name!r} of state key {key!r} raised {problem!r} "
                f"while merging {_short(write)} into {_short(value)}. "
                f"Nothing of this step was saved; fix the reducer or the update, then continue with invoke(None, "
                f"config)."
            ) from problem


class EphemeralValue(LastValue):
    """Keeps a value for one step only."""

    fleeting = True


class UntrackedValue(AnyValue):
    """Keeps a value in memory only: never stored, gone after a pause."""

    saved = False


class Barrier(Channel):
    """Counts arrivals; satisfied when every named node has arrived since last time."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def initial(self) -> Any:
        """Return: nobody has arrived."""
        return []

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return who has arrived, sorted; empty again once all have."""
        arrived = sorted({*([] if current is UNSET else current), *writes})
        return [] if self.names.issubset(arrived) else arrived

    def is_full(self, current: Any, writes: Sequence[Any]) -> bool:
        """Say whether these arrivals complete the barrier."""
        return self.names.issubset({*([] if current is UNSET else current), *writes})


class Pointers(Channel):
    """Keeps the newest place of each name."""

    def merge(self, key: str, current: Any, writes: Sequence[Any]) -> Any:
        """Return all places, the written ones replaced."""
        merged = {} if current is UNSET else dict(current)
        for write in writes:
            merged |= write
        return merged


COPIED = frozenset({list, dict, set})
"""Plain containers, which may be changed in place."""


def lend(value: Any) -> Any:
    """Copy plain containers all the way down; a flat one is copied in one go, and most are flat."""
    kind = value.__class__
    if kind is list:
        return value.copy() if COPIED.isdisjoint(map(type, value)) else [lend(item) for item in value]
    if kind is dict:
        flat = COPIED.isdisjoint(map(type, value.values()))
        return value.copy() if flat else {key: lend(item) for key, item in value.items()}
    return value.copy() if kind is set else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
