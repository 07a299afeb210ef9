"""The first page: who waits, for what, since when and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from bide.runtime.views import Wait
from bide.server.caller import READ
from bide.server.context import Server, Who
from bide.server.door import need
from bide.server.pages.cards import KINDS, card_of, whole
from bide.server.pages.look import now_of, page
from bide.server.pages.page_routes import pages_router
from bide.server.pages.saying import flash_of

router = pages_router()

PAGE = 50
COUNTED = 500
"""So many are looked at to say how many there are of each kind."""


class Chip(NamedTuple):
    """A choice among those who wait."""

    label: str
    number: int
    link: str
    is_chosen: bool


class Wanted(NamedTuple):
    """What is asked for in the address."""

    kind: str = ""
    graph: str = ""
    assignee: str = ""
    overdue: str = ""
    snoozed: str = ""
    sort: Literal["age", "deadline"] = "deadline"

    def link(self, **changed: str) -> str:
        """Return the address of the same list with something else chosen."""
        said = {name: value for name, value in {**self._asdict(), **changed}.items() if value}
        if said.get("sort") == "deadline":
            del said["sort"]
        return f"/?{urlencode(said)}" if said else "/"

    def filters(self, owner: str) -> dict[str, Any]:
        """Return what is asked of the inbox."""
        chosen = {name: value for name in ("kind", "graph", "assignee") if (value := getattr(self, name))}
        return {
            "owner": owner,
            "sort": self.sort,
            "overdue": bool(self.overdue),
            "snoozed": bool(self.snoozed),
            **chosen,
        }


Text = Annotated[str, Query(max_length=300)]


@router.get("/")
def inbox(
    request: Request,
    server: Server,
    who: Who,
    kind: Text = "",
    graph: Text = "",
    assignee: Text = "",
    after: Text = "",
) -> Response:
    """Show who waits."""
    need(who, READ)
    asked = request.query_params
    sort: Literal["age", "deadline"] = "age" if asked.get("sort") == "age" else "deadline"
    wanted = Wanted(kind, graph, assignee, asked.get("overdue", ""), asked.get("snoozed", ""), sort)
    app, now = server.app, now_of(server.app)
    found = app.inbox(after=after or None, most=PAGE, **wanted.filters(who.owner))
    is_all = wanted._replace(sort="deadline") == Wanted() and not after and found.after is None
    every = found.waits if is_all else app.waits(owner=who.owner, snoozed=False, most=COUNTED)
    return page(
        request,
        "inbox.html",
        cards=[card_of(whole(app, wait), now) for wait in found.waits],
        total=f"{len(every)}+" if len(every) >= COUNTED else str(len(every)),
        overdue=sum(1 for wait in every if wait.deadline is not None and wait.deadline <= now),
        chips=chips_of(wanted, every),
        wanted=wanted,
        more=wanted.link(after=found.after) if found.after else "",
        graphs=[known.name for known in app.graphs],
        flash=flash_of(app, who, asked.get("said"), asked.get("wait")),
        live="/inbox/live",
    )


def chips_of(wanted: Wanted, every: Sequence[Wait]) -> list[tuple[str, list[Chip]]]:
    """Return what can be chosen among those who wait, group by group; what there is no choice of is left out."""
    kinds = _chips(wanted, "kind", (wait.kind for wait in every), KINDS)
    graphs = _chips(wanted, "graph", (wait.graph for wait in every), {})
    people = _chips(wanted, "assignee", (name for wait in every for name in wait.assignees), {})
    return [(name, chips) for name, chips in (("Kind", kinds), ("Agent", graphs), ("Asked", people)) if chips]


def _chips(wanted: Wanted, name: str, found: Iterable[str], words: dict[str, str]) -> list[Chip]:
    counts, chosen = Counter(found), getattr(wanted, name)
    if chosen and chosen not in counts:
        counts[chosen] = 0
    if not chosen and len(counts) < (1 if name == "assignee" else 2):
        return []
    return [
        Chip(words.get(one, one), count, wanted.link(**{name: "" if one == chosen else one}), one == chosen)
        for one, count in counts.most_common(12)
    ]
