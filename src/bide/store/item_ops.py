"""What the long-term store gives and takes: items, and the operations of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value under a key of a namespace. It is a copy: changing its value changes nothing in the store."""

    value: Fields
    key: str
    namespace: tuple[str, ...]
    created_at: datetime
    updated_at: datetime

    def dict(self) -> Fields:
        """Return the item as JSON has it: the namespace as a list, times as text."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchItem(Item):
    """An item that a search has found."""

    score: float | None = None
    """How near it is to a query in words; None, as long as there is no index for those."""

    def dict(self) -> Fields:
        """Return the item as JSON has it, with its score."""
        return {**Item.dict(self), "score": self.score}

    def __hash__(self) -> int:
        return Item.__hash__(self)


class NotGiven(Enum):
    """The type of `NOT_GIVEN`."""

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN
"""No time to live was named, so the store's default holds; `None` says: for ever."""

TimeToLive = float | timedelta | None | Literal[NotGiven.NOT_GIVEN]
"""Minutes, or a timedelta."""


class PutOp(NamedTuple):
    """Write a value; the value None deletes."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]  # LangGraph's name, over a tuple's own
    ttl: TimeToLive = NOT_GIVEN


class GetOp(NamedTuple):
    """Read one item."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool | None = None


class SearchOp(NamedTuple):
    """Find items under a prefix."""

    namespace_prefix: tuple[str, ...]
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool | None = None


class MatchCondition(NamedTuple):
    """How a namespace begins or ends; the segment `"*"` stands for any one."""

    match_type: Literal["prefix", "suffix"]
    path: tuple[str, ...]


class ListNamespacesOp(NamedTuple):
    """List the namespaces that hold something."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Op = PutOp | GetOp | SearchOp | ListNamespacesOp
Result = Item | list[SearchItem] | list[tuple[str, ...]] | None
