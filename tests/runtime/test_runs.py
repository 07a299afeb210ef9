"""Runs that are started here and driven by whoever claims them."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, GraphError, IdempotencyError, Store, ThreadBusyError, ask, spawn, step, wait_for
from bide.store.claiming import MOST_CRASHES
from bide.store.lanes import lane_of
from bide.waits import child, event
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import World, graph


def test_same_key_starts_once_and_for_something_else_is_refused(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": state["given"]}))

    first = here.app.start("asks", {"given": 1}, key="order-1")
    again = here.app.start("asks", {"given": 1}, key="order-1")
    with pytest.raises(IdempotencyError):
        here.app.start("asks", {"given": 2}, key="order-1")

    assert (again.thread_id, again.run_id, again.is_new) == (first.thread_id, first.run_id, False)
    assert here.settle() == ["done"]
    assert here.app.start("asks", {"given": 1}, key="order-1").status == "done"


def test_run_that_is_put_off_is_not_claimed_before_it_is_due(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}))
    run = here.app.start("asks", {"given": 1}, delay="1h")

    assert here.settle() == []
    assert here.app.get(run.thread_id).status == "queued"
    here.clock.pass_by(hours=1)

    assert here.settle() == ["done"]


def test_second_run_on_a_busy_thread_is_refused_or_waits_its_turn(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": [state["given"], ask("?")]}))
    first = here.app.start("asks", {"given": 1}, thread_id="t")
    here.settle()

    with pytest.raises(ThreadBusyError):
        here.app.start("asks", {"given": 2}, thread_id="t")
    second = here.app.start("asks", {"given": 2}, thread_id="t", if_busy="enqueue")
    assert second.status == "queued"
    here.app.resume("t", "one")
    assert here.settle() == ["done", "waiting"]

    assert [run.status for run in here.app.runs("t")] == ["waiting", "done"]
    here.app.resume("t", "two")
    here.settle()
    assert here.app.get("t").values["answer"] == [2, "two"]
    assert first.run_id != second.run_id


def test_run_may_take_the_place_of_another_or_roll_it_back(world: MakeWorld) -> None:
    from bide import END, START, StateGraph
    from tests.runtime.world import State

    builder = StateGraph(State)
    builder.add_node("notes", lambda state: {"answer": [*state.get("answer", []), state["given"]]})
    builder.add_node("asks", lambda state: {"given": ask("?")})
    builder.add_edge(START, "notes")
    builder.add_edge("notes", "asks")
    builder.add_edge("asks", END)
    here = world(builder.compile(name="asks"))
    here.app.start("asks", {"given": "a"}, thread_id="t")
    here.settle()

    here.app.start("asks", {"given": "b"}, thread_id="t", if_busy="interrupt")
    here.settle()
    assert here.app.get("t").values["answer"] == ["a", "b"]
    here.app.start("asks", {"given": "c"}, thread_id="t", if_busy="rollback")
    here.settle()

    assert here.app.get("t").values["answer"] == ["a", "c"]
    assert len(here.app.waits()) == 1
    assert [run.status for run in here.app.runs("t")] == ["waiting", "cancelled", "cancelled"]


def test_run_that_takes_the_place_of_another_comes_before_those_behind_it(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": [state["given"], ask("?")]}))
    for number, policy in enumerate(["reject", "enqueue", "interrupt"]):
        here.app.start("asks", {"given": number}, thread_id="t", if_busy=policy)
        here.settle()

    here.app.resume("t", "yes")
    here.settle()

    assert here.app.get("t").values["given"] == 1
    assert [run.status for run in here.app.runs("t")] == ["done", "waiting", "cancelled"]


def test_cancelled_thread_asks_nothing_more_and_its_children_follow(world: MakeWorld) -> None:
    def parent(state: Any) -> Any:
        kids = [spawn("kid", {"given": 1}), spawn("kid", {"given": 2}, on_parent_close="abandon")]
        return {"answer": wait_for(child(kids[0])).value.status}

    here = world(graph(parent, "parent"), graph(lambda state: {"answer": ask("?")}, "kid"))
    run = here.app.start("parent", {"given": 0})
    here.settle()
    assert len(here.app.waits()) == 3

    assert here.app.cancel(run.thread_id, reason="not wanted", by="ann")
    here.settle()

    assert here.app.get(run.thread_id).status == "cancelled"
    assert sorted(here.app.get(kid).status or "" for kid in here.app.children(run.thread_id)) == [
        "cancelled",
        "waiting",
    ]
    assert len(here.app.waits()) == 1


def test_child_is_started_once_and_its_end_is_a_value(world: MakeWorld) -> None:
    asked: list[str] = []

    def parent(state: Any) -> Any:
        good, bad = spawn("kid", {"given": 1}), spawn("kid", {"given": 0}, key="bad")
        step(asked.append, "spawned")
        ask("go on?")
        return {"answer": [wait_for(child(good)).value, wait_for(child(bad)).value]}

    here = world(graph(parent, "parent"), graph(lambda state: {"answer": 6 // state["given"]}, "kid"))
    run = here.app.start("parent", {"given": 0})
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()

    good, bad = here.app.get(run.thread_id).values["answer"]
    assert (good.status, bad.status) == ("done", "failed")
    assert "ZeroDivisionError" in bad.error
    assert len(here.app.children(run.thread_id)) == 2
    assert asked == ["spawned"]


def test_limit_lets_only_so_many_run_at_once(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}))
    for number in range(5):
        here.app.start("asks", {"given": number}, limit=("customer-7", 2))
    here.app.start("asks", {"given": 9})

    lanes = [lane_of("asks")]
    claims = here.store.claim(lanes, 10)

    assert len(claims) == 3
    assert here.store.claim(lanes, 10) == []


def test_owners_take_turns_whoever_came_first(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}))
    for number in range(20):
        here.app.start("asks", {"given": number}, owner="loud")
    quiet = here.app.start("asks", {"given": 0}, owner="quiet")

    claims = here.store.claim([lane_of("asks")], 4)

    assert quiet.run_id in [claim.lease.run_id for claim in claims]


def test_more_urgent_runs_come_first(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}))
    low = here.app.start("asks", {"given": 1})
    high = here.app.start("asks", {"given": 2}, priority=5)

    order = [here.store.claim([lane_of("asks")], 1)[0].lease.run_id for _ in range(2)]

    assert order == [high.run_id, low.run_id]


def test_pinned_run_waits_for_a_worker_of_its_version(store: Store, clock: Any) -> None:
    from bide import Bide

    old = Bide(store, [graph(lambda state: {"answer": "old"})], versions={"asks": "1"})
    new = World(store, clock, [graph(lambda state: {"answer": "new"})])
    run = old.start("asks", {"given": 1})

    assert new.settle() == []
    assert [one.outcome for one in old.run_ready()] == ["done"]
    assert old.get(run.thread_id).values["answer"] == "old"


def test_run_that_loses_its_workers_again_and_again_is_put_out_of_service(world: MakeWorld, store: Store) -> None:
    here = world(graph(lambda state: {"answer": 1}))
    run = here.app.start("asks", {"given": 1})

    for _ in range(MOST_CRASHES):
        here.clock.pass_by(minutes=5)
        (claim,) = store.claim([lane_of("asks")], 1)
        lay_off(store)
        here.app.tend()
        store.let_go(claim.lease)

    thread = here.app.get(run.thread_id)
    assert (thread.status, thread.run and thread.run.crashes) == ("dead", MOST_CRASHES)
    assert here.settle() == []
    assert here.app.release(run.thread_id)
    assert here.settle() == ["done"]


def lay_off(store: Store) -> None:
    """Let the worker of this store be gone, as the database sees it."""
    store.database.write("leave", lambda tx: tx.run("delete_worker", {"worker_id": store.worker_id}))
    store.keeper._begin_anew()


def test_failed_run_is_retried_where_it_failed(world: MakeWorld) -> None:
    made: list[str] = []
    broken = [True]

    def node(state: Any) -> Any:
        step(made.append, "once")
        if broken:
            raise RuntimeError("not yet")
        return {"answer": "fine"}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    assert here.settle() == ["failed"]
    broken.clear()

    here.app.retry(run.thread_id)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "fine"
    assert made == ["once"]


def test_unknown_graph_is_told_with_what_is_known(world: MakeWorld) -> None:
    with pytest.raises(GraphError, match="asks"):
        world(graph(lambda state: {})).app.start("ask", {})


def test_thread_paused_by_a_script_is_woken_by_the_runtime_and_the_other_way_round(world: MakeWorld) -> None:
    asks = graph(lambda state: {"answer": wait_for(event("paid", {"order": state["given"]})).value})
    here = world(asks)
    config = {"configurable": {"thread_id": "t"}}

    assert asks.invoke({"given": 1}, config).is_interrupted
    here.app.deliver("paid", {"order": 1})
    assert here.settle() == ["done"]
    assert asks.get_state(config).values["answer"] == {"order": 1}

    run = here.app.start("asks", {"given": 2})
    here.settle()
    by_hand = asks.invoke(Command(resume="by hand"), {"configurable": {"thread_id": run.thread_id}})
    assert by_hand["answer"] == "by hand"
    assert here.app.get(run.thread_id).status == "done"
