"""How lists are asked for: which of them, in which order, from where to where, and with which fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

SortOrder = Literal["asc", "desc"]
MOST = 1000
FURTHEST = 2**53


class Asked(BaseModel):
    """A body of a request; what it does not know it leaves alone, as clients are newer than servers."""

    model_config = ConfigDict(extra="ignore")


class Page(Asked):
    """A part of a list."""

    limit: int = Field(default=10, ge=1, le=MOST)
    offset: int = Field(default=0, ge=0, le=FURTHEST)

    def of(self, found: Sequence[T]) -> Sequence[T]:
        """Cut this part out of a whole list."""
        return found[self.offset : self.offset + self.limit]


def holds(whole: Any, part: Any) -> bool:
    """Tell whether a value has all that another one names: objects key by key, lists item by item, the rest alike."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(key in whole and holds(whole[key], one) for key, one in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(holds(mine, one) for mine in whole) for one in part)
    # True is 1 for Python, and not for whoever wrote JSON.
    return isinstance(whole, bool) is isinstance(part, bool) and bool(whole == part)


def ordered(found: Iterable[T], by: Callable[[T], Any], order: str | None) -> list[T]:
    """Sort, newest or greatest first unless it is asked for otherwise; what has no such value comes last."""
    there = [one for one in found]
    known = [one for one in there if by(one) is not None]
    unknown = [one for one in there if by(one) is None]
    return sorted(known, key=by, reverse=order != "asc") + unknown


def selected(shown: Mapping[str, Any], fields: Sequence[str] | None) -> dict[str, Any]:
    """Keep the fields that were asked for; all, if none were."""
    return dict(shown) if not fields else {name: shown[name] for name in fields if name in shown}
