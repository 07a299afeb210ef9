"""The long-term store: values under a key of a namespace, in the same database as the threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from bide.codec import Codec
from bide.store.database import Transaction
from bide.store.item_checks import check_value, milliseconds_of, request_of
from bide.store.item_ops import (
    NOT_GIVEN,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TimeToLive,
)
from bide.store.item_requests import SWEPT_BY_A_PUT, Delete, Put, Touched, Visit, drop_expired, perform, refresh

if TYPE_CHECKING:
    from bide.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")

SWEPT_AT_ONCE = 500
"""How many expired items go in one transaction of `sweep_ttl`, so that writers get their turn in between."""


class ItemStore:
    """What is to be remembered beyond one thread: dicts, found by namespace, key and content.

        items = Store.open("sqlite:///bide.db").items
        items.put(("users", "42"), "preferences", {"colour": "green"})
        items.get(("users", "42"), "preferences").value        # {"colour": "green"}
        items.search(("users",), filter={"colour": "green"})   # whatever lies under ("users",), newest first

    Every call is a transaction, and durable when it returns. Any number of threads and processes may share it; of two
    who write the same key, the later wins. `ItemStore(store, default_ttl=…)` lets items expire unless `put` says
    otherwise: after so many minutes, or a timedelta, without being written, or read while `refresh_on_read` is set.
    """

    def __init__(
        self, store: Store, *, default_ttl: float | timedelta | None = None, refresh_on_read: bool = True
    ) -> None:
        # Not the store itself, which may hold this object: they would keep each other alive.
        self._database = store.database
        self._clock = store.clock
        self._bodies = store.bodies
        self._codec = Codec()
        self._default_ttl = milliseconds_of(default_ttl)
        self._refresh_on_read = refresh_on_read

    # ── One item ───────────────────────────────────────────────────────────────────────────────────────────────────

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: TimeToLive = NOT_GIVEN,
    ) -> None:
        """Write a value, over the one that is there.

        `ttl` is in minutes, or a timedelta; None keeps the item for ever, and left out the store's default holds.
        """
        self._do(PutOp(namespace, key, check_value(value), index, ttl))

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return the item, or None; its time to live begins anew, unless `refresh_ttl` is False."""
        found: Item | None = self._do(GetOp(namespace, key, refresh_ttl))
        return found

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete the item, if it is there."""
        self._do(PutOp(namespace, key, None))

    # ── Many ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Find items in a namespace and below it, the most recently written first; `()` is above all.

        `filter` compares the keys of the value: `{"colour": "green", "age": {"$gte": 18, "$lt": 65}}`. Its operators
        are $eq, $ne, $gt, $gte, $lt and $lte. There is no index for a `query` in words, so one is refused.
        """
        found: list[SearchItem] = self._do(SearchOp(namespace_prefix, filter, limit, offset, query, refresh_ttl))
        return found

    def list_namespaces(
        self,
        *,
        prefix: tuple[str, ...] | None = None,
        suffix: tuple[str, ...] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List the namespaces that hold something, in order; in `prefix` and `suffix`, `"*"` is any one segment.

        `max_depth` cuts longer ones, and lists each cut one once.
        """
        ends: tuple[tuple[Literal["prefix", "suffix"], Any], ...] = (("prefix", prefix), ("suffix", suffix))
        match = tuple(MatchCondition(end, path) for end, path in ends if path is not None)
        found: list[tuple[str, ...]] = self._do(ListNamespacesOp(match, max_depth, limit, offset))
        return found

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations in one transaction: all or nothing, in order, each seeing those before it."""
        requests = [request_of(op, self._codec, self._default_ttl, self._refresh_on_read) for op in ops]
        now = self._clock.now()

        def read(tx: Transaction) -> tuple[list[Result], Touched]:
            visit = Visit(tx, now, self._codec, self._bodies)
            return perform(requests, visit), visit.touched

        def write(tx: Transaction) -> list[Result]:
            results, touched = read(tx)
            refresh(tx, touched, now)
            drop_expired(tx, now, SWEPT_BY_A_PUT)
            return results

        if any(isinstance(request, Put | Delete) for request in requests):
            self._database.check_present()
            return self._database.write("items", write)
        results, touched = self._database.read(read)
        if touched:
            self._database.write("touch", lambda tx: refresh(tx, touched, now))
        return results

    def sweep_ttl(self) -> int:
        """Delete all that has expired, and return how many that were.

        What has expired is not seen in any case, and writers take some away in passing; this frees the room of all.
        """
        now, swept = self._clock.now(), 0
        while True:
            count = self._database.write("sweep", lambda tx: drop_expired(tx, now, SWEPT_AT_ONCE))
            swept += count
            if count < SWEPT_AT_ONCE:
                return swept

    def _do(self, op: Op) -> Any:
        return self.batch([op])[0]

    # ── The same from async code: in a thread, because a database may wait for its disk ────────────────────────────

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: TimeToLive = NOT_GIVEN,
    ) -> None:
        """Write a value; see `put`."""
        await _in_a_thread(self.put, namespace, key, value, index, ttl=ttl)

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return the item, or None; see `get`."""
        return await _in_a_thread(self.get, namespace, key, refresh_ttl=refresh_ttl)

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete the item, if it is there."""
        await _in_a_thread(self.delete, namespace, key)

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Find items; see `search`."""
        options: Any = {"query": query, "filter": filter, "limit": limit, "offset": offset, "refresh_ttl": refresh_ttl}
        return await _in_a_thread(self.search, namespace_prefix, **options)

    async def alist_namespaces(
        self,
        *,
        prefix: tuple[str, ...] | None = None,
        suffix: tuple[str, ...] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List the namespaces that hold something; see `list_namespaces`."""
        options: Any = {"prefix": prefix, "suffix": suffix, "max_depth": max_depth, "limit": limit, "offset": offset}
        return await _in_a_thread(self.list_namespaces, **options)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations in one transaction; see `batch`."""
        return await _in_a_thread(self.batch, list(ops))

    # ── Closing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Do nothing: the database is the store's, which closes it."""

    def __enter__(self) -> Self:
        """Use the items in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened for these items alone."""
        self.close()


BaseStore = ItemStore
"""The name that LangGraph's users annotate with."""


async def _in_a_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    from asyncio import to_thread  # a fifth of the time of `import bide`, which sync callers need not spend

    return await to_thread(function, *args, **kwargs)
