"""Who waits, page after page: one owner's or everybody's, longest first or by deadline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypedDict, get_args

from bide.clock import Instant
from bide.errors import GraphError, did_you_mean
from bide.runtime.reading import wait_of
from bide.runtime.registered import Graphs
from bide.runtime.views import Wait
from bide.store import Store
from bide.store.queue_rows import NEVER, Chosen, WaitView
from bide.types import WaitStatus

Sort = Literal["age", "deadline"]
_Order = Literal["age", "deadline", "timeless"]

PAGE = 500
"""How many are read at once when only some of them are wanted."""


class WaitFilter(TypedDict, total=False):
    """Which of those who wait are wanted."""

    owner: str | None
    """Whose; None for everybody's."""
    thread_id: str | int | None
    assignee: str | None
    kind: str | None
    graph: str | None
    tag: str | None
    due_before: datetime | None
    """Only those with a deadline before this."""
    overdue: bool
    """Only those whose deadline has passed, and which nobody has settled yet."""
    snoozed: bool
    """Also those that are snoozed."""
    sort: Sort
    """By age, longest first; or by deadline, those without one last."""


@dataclass(frozen=True, slots=True)
class WaitPage:
    """Some of those who wait, and where the list goes on."""

    waits: tuple[Wait, ...]
    after: str | None
    """What to give as `after` for the next page; None when this was the last."""


class Place(NamedTuple):
    """Behind which wait a list goes on."""

    order: _Order
    since: Instant = -1
    wait_id: str = ""

    def __str__(self) -> str:
        return f"{self.order}.{self.since}.{self.wait_id}"


def list_waits(store: Store, graphs: Graphs, wanted: WaitFilter, *, after: str | None, most: int) -> WaitPage:
    """List who waits, behind `after`; a thread's own are listed whole."""
    _check(wanted)
    now = store.clock.now()
    sort = wanted.get("sort", "age")
    place = Place(sort) if after is None else read_place(after, sort)
    found: list[Wait] = []
    for row, here in _rows(store, wanted, place, _page_size(wanted, most), now):
        wait = wait_of(graphs, row)
        if _is_wanted(wait, wanted) and _is_due(row, wanted, now):
            found.append(wait)
            if len(found) > most:
                break
            place = here
    is_more = len(found) > most
    return WaitPage(tuple(found[:most]), str(place) if is_more else None)


def read_place(after: str, sort: Sort) -> Place:
    """Read where a list goes on; it must be the same list."""
    order, _, rest = after.partition(".")
    since, _, wait_id = rest.partition(".")
    known: tuple[_Order, ...] = ("age",) if sort == "age" else ("deadline", "timeless")
    for one in known:
        if one == order and since.lstrip("-").isdecimal() and len(since) < 19:
            return Place(one, int(since), wait_id)
    raise GraphError(f"after={after!r:.80} is no place in this list. Give what the page before said, or nothing.")


def is_open(row: WaitView) -> bool:
    """Whether a wait can still be settled."""
    return row.status is WaitStatus.OPEN and not row.is_consumed


def _page_size(wanted: WaitFilter, most: int) -> int:
    is_filtered = any(wanted.get(name) is not None for name in ("assignee", "kind", "graph", "tag", "due_before"))
    return PAGE if is_filtered or wanted.get("overdue") else min(most + 1, PAGE)


def _rows(store: Store, wanted: WaitFilter, place: Place, size: int, now: Instant) -> Iterator[tuple[WaitView, Place]]:
    """Yield rows of the store in the order that is wanted, each with its place."""
    thread_id = wanted.get("thread_id")
    if thread_id is not None:
        yield from _of_thread(store, str(thread_id), wanted, place, now)
        return
    order = place.order
    yield from _in_order(store, _chosen(wanted, order, now), place, size)
    has_deadline = wanted.get("due_before") is not None or wanted.get("overdue", False)
    if order == "deadline" and not has_deadline:
        yield from _in_order(store, _chosen(wanted, "timeless", now), Place("timeless"), size)


def _in_order(store: Store, chosen: Chosen, place: Place, size: int) -> Iterator[tuple[WaitView, Place]]:
    while True:
        page = store.waits(since=place.since, after=place.wait_id, most=size, chosen=chosen)
        for row in page:
            place = _place(row, chosen.order)
            yield row, place
        if len(page) < size:
            return


def _of_thread(
    store: Store, thread_id: str, wanted: WaitFilter, place: Place, now: Instant
) -> Iterator[tuple[WaitView, Place]]:
    """Yield those of one thread: there are few, so they are sorted here."""
    owner = wanted.get("owner")
    awake = NEVER if wanted.get("snoozed", True) else now
    rows = [
        row
        for row in store.waits_of(thread_id)
        if is_open(row) and (owner is None or row.owner == owner) and (row.snoozed_until or -1) <= awake
    ]
    placed = [(_place(row, _order_of(row, place.order)), row) for row in rows]
    yield from ((row, here) for here, row in sorted(placed, key=lambda one: one[0]) if here > place)


def _order_of(row: WaitView, order: _Order) -> _Order:
    if order == "age":
        return "age"
    return "timeless" if row.deadline is None else "deadline"


def _place(row: WaitView, order: _Order) -> Place:
    since = row.deadline if order == "deadline" else row.created_at
    assert since is not None, "it is listed by its deadline"
    return Place(order, since, row.wait_id)


def _chosen(wanted: WaitFilter, order: _Order, now: Instant) -> Chosen:
    return Chosen(
        owner=wanted.get("owner"),
        order=order,
        due_before=_due_before(wanted, now),
        awake_at=NEVER if wanted.get("snoozed", True) else now,
    )


def _due_before(wanted: WaitFilter, now: Instant) -> Instant:
    given = wanted.get("due_before")
    limit = NEVER if given is None else int(given.timestamp() * 1000)
    return min(limit, now + 1) if wanted.get("overdue") else limit


def _is_due(row: WaitView, wanted: WaitFilter, now: Instant) -> bool:
    limit = _due_before(wanted, now)
    return limit == NEVER or (row.deadline is not None and row.deadline < limit)


def _is_wanted(wait: Wait, wanted: WaitFilter) -> bool:
    assignee, kind, graph, tag = (wanted.get(name) for name in ("assignee", "kind", "graph", "tag"))
    return (
        (assignee is None or assignee in wait.assignees)
        and (kind is None or wait.kind == kind)
        and (graph is None or wait.graph == graph)
        and (tag is None or tag in wait.tags)
    )


def _check(wanted: WaitFilter) -> None:
    known = WaitFilter.__annotations__
    for name in wanted:
        if name not in known:
            raise GraphError(
                f"waits() has no filter {name!r}.{did_you_mean(name, known)} There are {', '.join(known)}."
            )
    if wanted.get("sort", "age") not in get_args(Sort):
        raise GraphError(f"sort={wanted.get('sort')!r} is not known. There are 'age' and 'deadline'.")
    due_before = wanted.get("due_before")
    if due_before is not None and due_before.tzinfo is None:
        raise GraphError(f"due_before={due_before!r} has no time zone. Give an aware datetime.")
