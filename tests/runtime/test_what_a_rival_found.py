"""Ways to lose, double or strand a thread that somebody tried, and that do not work any more."""

from __future__ import annotations

from typing import Any

import pytest

from bide import (
    END,
    START,
    AlreadyAnsweredError,
    AmbiguousResumeError,
    Command,
    GraphError,
    InterruptError,
    InvalidAnswerError,
    StateGraph,
    Store,
    UnknownThreadError,
    WaitExpired,
    all_of,
    any_of,
    ask,
    interrupt,
    quorum,
    sleep,
    wait_for,
)
from bide.waits import after, approval, child, event
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import State, graph


def test_cancelled_thread_that_is_retried_can_be_answered(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": [ask("?", timeout="1h"), sleep("2h"), wait_for(event("x")).value]}))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    here.app.cancel(run.thread_id)

    here.app.retry(run.thread_id)
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()
    here.clock.pass_by(hours=2)
    here.settle()
    here.app.deliver("x", 3)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == ["yes", None, 3]


def test_retry_runs_as_the_run_that_failed_did(world: MakeWorld) -> None:
    seen: list[Any] = []

    def node(state: Any, config: Any) -> Any:
        seen.append(config["configurable"].get("user"))
        if len(seen) == 1:
            raise RuntimeError("not yet")
        return {"answer": 1}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1}, config={"configurable": {"user": "ann"}}, priority=3, owner="ann")
    here.settle()
    again = here.app.retry(run.thread_id)
    here.settle()

    assert seen == ["ann", "ann"]
    assert (again.priority, again.owner) == (3, "ann")


def test_run_cancelled_before_its_first_step_is_retried_with_its_input(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": state["given"]}))
    run = here.app.start("asks", {"given": 5})
    here.app.cancel(run.thread_id)

    here.app.retry(run.thread_id)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == 5


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_end_of_any_thread_can_be_waited_for(world: MakeWorld, when: str) -> None:
    here = world(
        graph(lambda state: {"answer": wait_for(child("other")).value.status}, "asks"),
        graph(lambda state: {"answer": ask("?")}, "other"),
    )
    run = None
    if when == "before":
        run = here.app.start("asks", {"given": 1})
        here.settle()
        assert here.app.get(run.thread_id).values["answer"] == "cancelled"
        return
    here.app.start("other", {"given": 1}, thread_id="other")
    here.settle()
    if when == "after":
        here.app.resume("other", "yes")
        here.settle()
    run = here.app.start("asks", {"given": 1})
    here.settle()
    if when == "during":
        here.app.resume("other", "yes")
        here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "done"


def test_child_that_was_retried_counts_as_it_ended_last(world: MakeWorld) -> None:
    from bide import spawn

    broken = [True]

    def kid(state: Any) -> Any:
        if broken:
            raise RuntimeError("not yet")
        return {"answer": 1}

    def parent(state: Any) -> Any:
        handle = spawn("kid", {"given": 1})
        ask("wait for it?")
        return {"answer": wait_for(child(handle)).value.status}

    here = world(graph(parent, "asks"), graph(kid, "kid"))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    broken.clear()
    here.clock.pass_by(seconds=1)
    here.app.retry(here.app.children(run.thread_id)[0])
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "done"


def test_decision_of_several_counts_once_and_stands(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": wait_for(quorum(2, ann=approval("?"), bob=approval("?"))).value}))
    here.app.start("asks", {"given": 1})
    here.settle()
    (wait,) = here.app.waits()

    first = here.app.wake(wait.id, "approve", leaf="ann", by="ann")
    again = here.app.wake(wait.id, "approve", leaf="ann", by="ann")
    with pytest.raises(AlreadyAnsweredError):
        here.app.wake(wait.id, "reject", leaf="ann", by="ann")

    assert (first.status, again.status) == ("counted", "already_counted")
    assert here.app.wake(wait.id, "approve", leaf="bob", key="k").status == "resumed"
    assert here.app.wake(wait.id, "approve", leaf="bob", key="k").status == "already_answered"


def test_thread_of_one_graph_is_not_run_by_another(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}, "asks"), graph(lambda state: {"answer": 2}, "other"))
    here.app.start("asks", {"given": 1}, thread_id="t")
    here.settle()

    with pytest.raises(GraphError, match="asks"):
        here.app.start("other", {"given": 1}, thread_id="t")


def test_everybody_who_may_decide_stays_asked_when_it_goes_one_step_higher(world: MakeWorld) -> None:
    here = world(
        graph(
            lambda state: {
                "answer": wait_for(
                    any_of(a=approval("?", assignees=["ann"]), b=event("x")), escalate_after="1h", escalate_to=["boss"]
                )
            }
        )
    )
    here.app.start("asks", {"given": 1})
    here.settle()
    here.clock.pass_by(hours=1)
    here.settle()

    assert here.app.waits(assignee="ann")[0].assignees == ("ann", "boss")


@pytest.mark.parametrize(
    "wrong",
    [
        {"interrupt_before": "nowhere"},
        {"durability": "none"},
        {"checkpoint": "nope"},
        {"config": {"recursion_limit": "x"}},
        {"priority": "high"},
        {"at": "2026-01-01"},
        {"limit": (5, 1)},
        {"key": 5},
        {"thread_id": "\ud800"},
        {"if_busy": "rollback", "delay": "1h"},
    ],
    ids=str,
)
def test_what_a_worker_would_refuse_is_refused_at_the_start(world: MakeWorld, wrong: Any) -> None:
    from bide import BideError

    with pytest.raises(BideError):
        world(graph(lambda state: {"answer": 1})).app.start("asks", {"given": 1}, **wrong)


def test_fact_cannot_answer_what_only_a_schema_could(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": interrupt("?", response_schema=int, wake=event("x"))}))
    here.app.start("asks", {"given": 1})

    ((driven),) = here.app.run_ready()

    assert isinstance(driven.error, InterruptError)


def test_deadline_that_ends_the_run_does_so_while_a_sibling_runs(world: MakeWorld) -> None:
    here: Any = None

    def busy(state: Any) -> Any:
        ask("go?")
        here.clock.pass_by(hours=2)
        here.app.tend()
        return {"given": 2}

    def strict(state: Any) -> Any:
        try:
            return {"answer": ask("?", timeout="1h", on_timeout="fail")}
        except WaitExpired:
            return {"answer": "caught"}

    builder = StateGraph(State)
    builder.add_node("busy", busy)
    builder.add_node("strict", strict)
    for name in ("busy", "strict"):
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    here = world(builder.compile(name="asks"))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    here.app.wake(next(wait.id for wait in here.app.waits() if wait.node == "busy"), "yes")
    here.settle()

    assert here.app.get(run.thread_id).status == "failed"


def test_wait_that_cannot_be_read_stops_nobody_elses_clock(world: MakeWorld, store: Store) -> None:
    here = world(graph(lambda state: {"answer": sleep("1h")}))
    bad = here.app.start("asks", {"given": 1})
    good = here.app.start("asks", {"given": 2})
    here.settle()
    (wait,) = store.waits_of(bad.thread_id)
    store.database.write("harm", lambda tx: tx.run("change_needs", damaged(wait.wait_id)))
    here.clock.pass_by(hours=1)

    here.app.tend()
    here.app.run_ready(most=5)

    assert here.app.get(good.thread_id).status == "done"
    assert "cannot be read" in here.app.waits()[0].waiting_for + here.app.waits()[0].title
    here.app.deliver("anything")


def damaged(wait_id: str) -> dict[str, Any]:
    return {"wait_id": wait_id, "needs": b"P" + b"\0" * 20, "remind_at": None}


def test_facts_too_large_together_leave_the_others_alone(world: MakeWorld, store: Store) -> None:
    store.bodies.largest = 4_000
    here = world(
        graph(lambda state: {"answer": len(wait_for(all_of(*[event(f"e{n}") for n in range(5)])).value)}, "asks"),
        graph(lambda state: {"answer": len(wait_for(event("e4")).value)}, "other"),
    )
    here.app.start("asks", {"given": 1})
    run = here.app.start("other", {"given": 1})
    here.settle()

    for number in range(5):
        here.app.deliver(f"e{number}", "x" * 900)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == 900
    assert [delivery.status for delivery in here.app.deliveries()] == ["matched"] * 5


def test_answer_by_hand_is_checked_as_a_decision_is_and_stands_for_no_quorum(world: MakeWorld) -> None:
    one = graph(lambda state: {"answer": wait_for(approval("ok?")).value}, "one")
    two = graph(lambda state: {"answer": wait_for(quorum(2, a=approval("?"), b=approval("?"))).value}, "two")
    here = world(one, two)
    single, several = here.app.start("one", {"given": 1}), here.app.start("two", {"given": 1})
    here.settle()

    with pytest.raises(InvalidAnswerError):
        one.invoke(Command(resume="bogus"), {"configurable": {"thread_id": single.thread_id}})
    with pytest.raises(AmbiguousResumeError):
        two.invoke(Command(resume="approve"), {"configurable": {"thread_id": several.thread_id}})
    done = one.invoke(Command(resume="approve"), {"configurable": {"thread_id": single.thread_id}})

    assert done["answer"] == "approve"


def test_withdrawing_a_static_pause_does_not_pass_it(world: MakeWorld, store: Store) -> None:
    ran: list[str] = []
    builder = StateGraph(State)
    builder.add_node("pay", lambda state: ran.append("paid") or {"answer": 1})
    builder.add_edge(START, "pay")
    builder.add_edge("pay", END)
    here = world(builder.compile(name="asks", interrupt_before=["pay"], checkpointer=store))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.app.cancel(wait_id=here.app.waits()[0].id, reason="no")
    here.settle()

    assert (here.app.get(run.thread_id).status, ran) == ("cancelled", [])


def test_instant_before_the_deadline_wins_however_late_somebody_looks(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": wait_for(any_of(t=after("1h"), x=event("x")), timeout="2h").winner}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.clock.pass_by(hours=5)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "t"
    assert "wait.expired" not in here.kinds(run.thread_id)


def test_child_whose_run_is_replaced_has_not_ended(world: MakeWorld) -> None:
    from bide import spawn

    here = world(
        graph(lambda state: {"answer": wait_for(child(spawn("kid", {"given": 1}))).value.status}, "asks"),
        graph(lambda state: {"answer": [state["given"], ask("?")]}, "kid"),
    )
    run = here.app.start("asks", {"given": 1})
    here.settle()
    (kid,) = here.app.children(run.thread_id)

    here.app.start("kid", {"given": 2}, thread_id=kid, if_busy="interrupt")
    here.settle()
    assert here.app.get(run.thread_id).status == "waiting"
    here.app.resume(kid, "yes")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "done"


def test_thread_that_is_not_there_is_not_taken_for_one_that_is_over(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": 1}))

    for call in (here.app.cancel, here.app.release, here.app.runs, here.app.children, here.app.retry):
        with pytest.raises(UnknownThreadError):
            call("nope")
    with pytest.raises(UnknownThreadError):
        here.app.start("asks", None, thread_id="nope")


def test_facts_of_one_owner_wake_nobody_elses_threads(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": wait_for(event("x")).value}))
    ann = here.app.start("asks", {"given": 1}, owner="ann")
    bob = here.app.start("asks", {"given": 1}, owner="bob")
    here.settle()

    assert here.app.deliver("x", 1, owner="ann").threads == (ann.thread_id,)
    here.settle()

    assert here.app.get(bob.thread_id).status == "waiting"


def test_one_slot_at_a_time_serves_every_lane_owner_and_limit(store: Store, clock: Any) -> None:
    from tests.runtime.world import World

    here = World(store, clock, [graph(lambda state: {"answer": 1}, "a"), graph(lambda state: {"answer": 1}, "b")])
    for number in range(6):
        here.app.start("a", {"given": number})
        here.app.start("a", {"given": number}, owner="ann")
        here.app.start("a", {"given": number}, limit=("few", 9))
    here.app.start("b", {"given": 0})
    here.app.start("a", {"given": 0}, owner="zoe")

    first = [here.store.claim(here.app.graphs.lanes(), 1)[0] for _ in range(8)]

    owners = {store.run(*claim.lease[:2]).owner for claim in first}
    assert {claim.graph for claim in first} == {"a", "b"}
    assert owners == {"", "ann", "zoe"}
    assert any(claim.limit_key for claim in first)


def test_accepted_run_is_not_thrown_away_by_a_script(world: MakeWorld) -> None:
    from bide import ThreadBusyError

    asks = graph(lambda state: {"answer": state["given"]})
    here = world(asks)
    config = {"configurable": {"thread_id": "t"}}
    here.app.start("asks", {"given": "accepted"}, thread_id="t")

    for call in (
        lambda: asks.invoke({"given": "script"}, config),
        lambda: asks.invoke(None, config),
        lambda: asks.update_state(config, {"given": "edit"}),
    ):
        with pytest.raises(ThreadBusyError):
            call()
    here.settle()

    assert here.app.get("t").values["answer"] == "accepted"


def test_script_without_a_worker_goes_on_when_its_time_has_come(world: MakeWorld) -> None:
    asks = graph(lambda state: {"answer": [sleep("1h"), ask("?", timeout="1h", default="nobody")]})
    here = world(asks)
    config = {"configurable": {"thread_id": "t"}}
    asks.invoke({"given": 1}, config)

    assert asks.invoke(None, config).is_interrupted
    here.clock.pass_by(hours=1)
    assert asks.invoke(None, config).is_interrupted
    here.clock.pass_by(hours=1)

    assert asks.invoke(None, config)["answer"] == [None, "nobody"]


def test_end_of_a_child_cannot_be_forged(world: MakeWorld) -> None:
    from bide import DeliveryError

    with pytest.raises(DeliveryError):
        world(graph(lambda state: {"answer": 1})).app.deliver("t", {"status": "done"}, kind="child")


def test_graph_can_belong_to_one_application_after_the_other(clock: Any) -> None:
    from bide import Bide, MemorySaver

    asks = graph(lambda state: {"answer": 1})
    for _ in range(2):
        with MemorySaver(clock=clock) as store, Bide(store, [asks]) as app:
            run = app.start("asks", {"given": 1})
            app.run_ready()
            assert app.get(run.thread_id).values["answer"] == 1


def test_child_can_be_waited_for_again_and_again(world: MakeWorld) -> None:
    from bide import spawn

    def parent(state: Any) -> Any:
        kids = [spawn("kid", {"given": number}) for number in range(2)]
        first = wait_for(any_of(*[child(kid) for kid in kids]))
        both = wait_for(all_of(*[child(kid) for kid in kids]))
        return {"answer": [first.value.status, len(both.value), wait_for(child(kids[0])).value.status]}

    here = world(graph(parent, "asks"), graph(lambda state: {"answer": 1}, "kid"))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == ["done", 2, "done"]


def test_one_answer_stands_for_no_group_through_the_inbox_either(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": wait_for(all_of(x=event("x"), y=event("y"))).value["x"].value}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    with pytest.raises(AmbiguousResumeError):
        here.app.resume(run.thread_id, "bare")
    (wait,) = here.app.waits()
    here.app.wake(wait.id, "by hand", leaf="x")
    here.app.deliver("y")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "by hand"
