"""The long-term store as one owner sees it: others' namespaces cannot be named, found or listed.

What belongs to an owner lies under a first segment that only the server writes. Without owners, everything is as the
graphs themselves see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bide.server.problems import Problem
from bide.store.item_ops import NOT_GIVEN, Item, SearchItem, TimeToLive
from bide.store.items import ItemStore

Namespace = tuple[str, ...]

_MARK = "\x02owner:"
_PAGE = 500


class OwnedItems:
    """The items of one owner."""

    def __init__(self, items: ItemStore, owner: str) -> None:
        self._items = items
        self._root: Namespace = (_MARK + owner,) if owner else ()

    def put(self, namespace: Sequence[str], key: str, value: Mapping[str, Any], index: Any, ttl: TimeToLive) -> None:
        """Write a value, over the one that is there."""
        self._items.put(self._full(namespace), key, value, index, ttl=ttl)

    def get(self, namespace: Sequence[str], key: str, refresh: bool | None = None) -> dict[str, Any] | None:
        """Return an item, if it is there."""
        found = self._items.get(self._full(namespace), key, refresh_ttl=refresh)
        return None if found is None else self._shown(found)

    def delete(self, namespace: Sequence[str], key: str) -> None:
        """Delete an item, if it is there."""
        self._items.delete(self._full(namespace), key)

    def search(
        self, prefix: Sequence[str], offset: int, limit: int, query: str | None = None, **how: Any
    ) -> list[dict[str, Any]]:
        """Find items under a prefix, newest first."""
        full = self._full(prefix, may_be_empty=True)
        if full:
            return [
                self._shown(one) for one in self._items.search(full, query=query, offset=offset, limit=limit, **how)
            ]
        return [self._shown(one) for one in islice(self._visible(query, how), offset, offset + limit)]

    def namespaces(
        self, prefix: Sequence[str], suffix: Sequence[str], max_depth: int | None, offset: int, limit: int
    ) -> list[list[str]]:
        """List the namespaces that hold something, in order, each once; longer ones are cut."""
        found = dict.fromkeys(
            own[:max_depth] for own in self._own_namespaces(tuple(prefix), tuple(suffix)) if len(own) >= len(suffix)
        )
        return [list(one) for one in islice(found, offset, offset + limit)]

    def _own_namespaces(self, prefix: Namespace, suffix: Namespace) -> Iterator[Namespace]:
        full = (*self._root, *prefix)
        for start in range(0, 2**31, _PAGE):
            page = self._items.list_namespaces(prefix=full or None, suffix=suffix or None, limit=_PAGE, offset=start)
            yield from (one[len(self._root) :] for one in page if self._is_own(one))
            if len(page) < _PAGE:
                return

    def _visible(self, query: str | None, how: Mapping[str, Any]) -> Iterator[SearchItem]:
        """Go through all that is nobody's in particular."""
        for start in range(0, 2**31, _PAGE):
            page = self._items.search((), query=query, limit=_PAGE, offset=start, **how)
            yield from (one for one in page if self._is_own(one.namespace))
            if len(page) < _PAGE:
                return

    def _is_own(self, full: Namespace) -> bool:
        return bool(self._root) or not full[0].startswith(_MARK)

    def _full(self, namespace: Sequence[str], *, may_be_empty: bool = False) -> Namespace:
        if not namespace and not may_be_empty:
            raise Problem(422, "The namespace is empty. An item lies under one label at least.")
        if any("." in label for label in namespace):
            raise Problem(422, "Labels of a namespace cannot hold periods: in addresses, they stand between labels.")
        if not self._root and namespace and namespace[0].startswith(_MARK):
            raise Problem(422, f"The namespace {namespace[0]!r} is the server's own. Begin with another label.")
        return (*self._root, *namespace)

    def _shown(self, item: Item) -> dict[str, Any]:
        shown = item.dict()
        return {**shown, "namespace": shown["namespace"][len(self._root) :]}


__all__ = ["NOT_GIVEN", "OwnedItems"]
