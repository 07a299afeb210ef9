"""A store in which threads wait for the world, were woken by it, stand in line, and have children."""

from __future__ import annotations

from typing import Any

from bide import Store, all_of, any_of, interrupt, spawn, wait_for
from bide.waits import after, child, event
from tests.runtime.world import StillClock, World, graph
from tests.store.inspected import LARGE

PAID = {"order": 7, "sum": 3}
THREADS = (
    "asks",
    "late",
    "hears",
    "paid",
    "pays",
    "both",
    "line",
    "parent",
    "withdrawn",
    "ready",
)


def world_of(store: Store, clock: StillClock | None = None) -> World:
    """An application with one graph for each way to wait."""

    def pays(state: Any) -> Any:
        return {"answer": wait_for(event("paid", {"order": state["given"]}, exclusive=True)).value}

    def hears(state: Any) -> Any:
        return {"answer": wait_for(any_of(heard=event("told"), late=after("2h")), timeout="9h").winner}

    def needs_both(state: Any) -> Any:
        return {"answer": sorted(wait_for(all_of(one=event("one"), two=event("two"))).value)}

    def asks(state: Any) -> Any:
        return {"answer": interrupt("Who signs?", assignees=["ada"], remind_every="1h")}

    def parent(state: Any) -> Any:
        return {"answer": wait_for(child(spawn("asks", {"given": 1}, key="one"))).value.status}

    named = {"pays": pays, "hears": hears, "both": needs_both, "asks": asks, "parent": parent}
    return World(store, clock or StillClock(), [graph(node, name) for name, node in named.items()])


def fill_waits(store: Store, clock: StillClock | None = None) -> World:
    """Threads of each kind, after the world has said a little."""
    here = world_of(store, clock)
    start = here.app.start
    for name in ("late", "hears"):
        start("hears", {"given": 1}, thread_id=name)
    for name in ("paid", "pays"):
        start("pays", {"given": 7 if name == "paid" else 8}, thread_id=name)
    start("both", {"given": 1}, thread_id="both")
    start("parent", {"given": 1}, thread_id="parent")
    for name in ("asks", "line", "withdrawn"):
        start("asks", {"given": 1}, thread_id=name)
    here.settle()
    start("asks", {"given": LARGE}, thread_id="line", if_busy="enqueue", key="once")
    here.clock.pass_by(hours=3)
    here.app.deliver("paid", PAID, external_id="mail-1")
    here.app.deliver("one", 1, external_id="mail-2")
    here.app.deliver("nobody", 1, external_id="mail-3")
    here.app.wake(here.app.waits(thread_id="asks")[0].id, "Ada", by="ada@example.org")
    here.app.cancel(wait_id=here.app.waits(thread_id="withdrawn")[0].id)
    here.settle()
    here.app.schedule("daily", "asks", "0 9 * * *", {"given": 1})
    start("asks", {"given": 1}, thread_id="ready", durability="sync")
    return here
