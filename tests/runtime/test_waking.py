"""A thread says what it waits for, and goes on once when that comes."""

from __future__ import annotations

from typing import Any

import pytest

from bide import (
    AlreadyAnsweredError,
    InvalidAnswerError,
    WaitCancelled,
    WaitExpired,
    WaitExpiredError,
    Wake,
    all_of,
    any_of,
    ask,
    interrupt,
    quorum,
    sleep,
    step,
    wait_for,
)
from bide.waits import after, approval, email, event, webhook
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import graph


def test_sleeping_thread_goes_on_when_its_time_has_come(world: MakeWorld) -> None:
    made: list[str] = []

    def rest(state: Any) -> Any:
        step(made.append, "before")
        sleep("2h")
        return {"answer": "rested"}

    here = world(graph(rest))
    run = here.app.start("asks", {"given": 1})
    assert here.settle() == ["waiting"]

    here.clock.pass_by(hours=1, minutes=59)
    assert here.settle() == []
    here.clock.pass_by(minutes=1)
    assert here.settle() == ["done"]

    assert here.app.get(run.thread_id).values == {"given": 1, "answer": "rested"}
    assert made == ["before"]


def test_node_hears_what_was_said_beside_a_decision(world: MakeWorld) -> None:
    def decide(state: Any) -> Any:
        reply = wait_for(approval("Pay?"))
        return {"answer": [reply.value, reply.comment, reply.by]}

    here = world(graph(decide))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.app.wake(here.app.waits()[0].id, "reject", by="ann", comment="too dear")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == ["reject", "too dear", "ann"]
    (line,) = [event for event in here.app.follow(run.thread_id) if event.kind == "wait.commented"]
    assert (line.data["by"], line.data["text"]) == ("ann", "too dear")


def test_each_part_of_a_wait_keeps_the_comment_of_whoever_decided_it(world: MakeWorld) -> None:
    def decide(state: Any) -> Any:
        signed = wait_for(all_of(ann=approval(), ben=approval()))
        return {"answer": {name: wake.comment for name, wake in signed.value.items()}}

    here = world(graph(decide))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    wait_id = here.app.waits()[0].id

    here.app.wake(wait_id, "approve", leaf="ann", comment="gladly")
    here.app.wake(wait_id, "approve", leaf="ben")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == {"ann": "gladly", "ben": None}


def test_question_that_is_no_decision_has_its_comment_in_the_log_alone(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": ask("How many?")}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.app.wake(here.app.waits()[0].id, 3, comment="as always")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == 3
    assert here.kinds(run.thread_id).count("wait.commented") == 1


@pytest.mark.parametrize("early", [True, False])
def test_event_wakes_who_waits_for_it_and_who_begins_to_wait_later(world: MakeWorld, early: bool) -> None:
    here = world(graph(lambda state: {"answer": wait_for(event("paid", {"order": state["given"]})).value}))

    if early:
        delivered = here.app.deliver("paid", {"order": 7, "sum": 3})
        assert delivered.status == "unmatched"
    run = here.app.start("asks", {"given": 7})
    here.settle()
    if not early:
        here.app.deliver("paid", {"order": 8})
        delivered = here.app.deliver("paid", {"order": 7, "sum": 3})
        assert delivered.threads == (run.thread_id,)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == {"order": 7, "sum": 3}
    assert here.app.deliveries()[-1 if early else 0].wakes == 1


def test_same_fact_brought_again_changes_nothing_and_is_told_what_came_of_it(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": [wait_for(event("tick")).value, wait_for(event("tick")).value]}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    first = here.app.deliver("tick", 1, external_id="a")
    again = here.app.deliver("tick", 1, external_id="a")
    here.settle()

    assert (first.is_new, again.is_new, again.id, again.wakes) == (True, False, first.id, 1)
    assert here.app.get(run.thread_id).status == "waiting"
    here.app.deliver("tick", 2, external_id="b")
    here.settle()
    assert here.app.get(run.thread_id).values["answer"] == [1, 2]


def test_first_of_several_wins_and_the_others_are_closed(world: MakeWorld) -> None:
    def node(state: Any) -> Any:
        reply = wait_for(
            any_of(email(from_="ann@example.org", subject="Re: *"), boss=approval("close it"), late=after("1h"))
        )
        return {"answer": [reply.winner, reply.value]}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    mail = {"from": "Ann <ann@example.org>", "subject": "Re: quote", "body": "yes", "message_id": "<1@example.org>"}

    here.app.deliver("sales", mail, kind="email")
    (wait,) = here.store.waits_of(run.thread_id)
    with pytest.raises(AlreadyAnsweredError):
        here.app.wake(wait.wait_id, "approve", by="boss")
    here.clock.pass_by(hours=2)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == ["email", mail]


def test_all_of_waits_for_each_and_quorum_for_enough(world: MakeWorld) -> None:
    def node(state: Any) -> Any:
        both = wait_for(all_of(event("a"), hook=webhook("b")))
        enough = wait_for(quorum(2, ann=approval("?"), bob=approval("?"), cid=approval("?")))
        return {"answer": [sorted(both.value), sorted(enough.value)]}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.app.deliver("b", {}, kind="webhook")
    assert here.settle() == []
    here.app.deliver("a")
    assert here.settle() == ["waiting"]
    (wait,) = here.app.waits()
    here.app.wake(wait.id, "approve", leaf="cid")
    assert here.settle() == []
    here.app.wake(wait.id, "reject", leaf="ann")
    assert here.settle() == ["done"]

    assert here.app.get(run.thread_id).values["answer"] == [["event", "hook"], ["ann", "cid"]]


def test_deadline_gives_the_default_or_raises_in_the_node(world: MakeWorld) -> None:
    def node(state: Any) -> Any:
        first = wait_for(event("never"), timeout="1h", default="nobody came")
        try:
            ask("really?", timeout="30m")
        except WaitExpired:
            return {"answer": [first, "caught"]}
        raise AssertionError("it must not be answered")

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    here.clock.pass_by(hours=1)
    assert here.settle() == ["waiting"]

    here.clock.pass_by(minutes=30)
    (wait,) = here.app.waits()
    with pytest.raises(WaitExpiredError):
        here.app.wake(wait.id, "yes")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == ["nobody came", "caught"]


@pytest.mark.parametrize(("on_timeout", "status"), [("cancel", "cancelled"), ("fail", "failed")])
def test_deadline_may_end_the_run(world: MakeWorld, on_timeout: Any, status: str) -> None:
    here = world(graph(lambda state: {"answer": interrupt("?", timeout="1h", on_timeout=on_timeout)}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.clock.pass_by(hours=2)
    here.settle()

    assert here.app.get(run.thread_id).status == status
    assert here.app.waits() == []


def test_answer_is_checked_before_it_counts_and_records_who_gave_it(world: MakeWorld) -> None:
    here = world(graph(lambda state: {"answer": ask("how many?", schema=int, assignees=["ann"])}))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    (wait,) = here.app.waits(assignee="ann")

    with pytest.raises(InvalidAnswerError):
        here.app.wake(wait.id, "seven")
    first = here.app.wake(wait.id, 7, by="ann", via="cli", key="k1")
    again = here.app.wake(wait.id, 7, by="ann", via="cli", key="k1")
    with pytest.raises(AlreadyAnsweredError) as told:
        here.app.wake(wait.id, 8, by="bob")
    here.settle()

    assert (first.status, again.status, again.by) == ("resumed", "already_answered", "ann")
    assert told.value.outcome.by == "ann"
    assert here.app.get(run.thread_id).values["answer"] == 7
    assert here.app.wait(wait.id).answered_via == "cli"


def test_withdrawn_question_raises_in_its_node(world: MakeWorld) -> None:
    def node(state: Any) -> Any:
        try:
            return {"answer": ask("?")}
        except WaitCancelled:
            return {"answer": "withdrawn"}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    (wait,) = here.app.waits()

    assert here.app.cancel(wait_id=wait.id, by="ann")
    assert not here.app.cancel(wait_id=wait.id)
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "withdrawn"


def test_reminders_and_escalation_come_when_they_are_due(world: MakeWorld) -> None:
    here = world(
        graph(
            lambda state: {
                "answer": ask("?", assignees=["ann"], remind_every="1h", escalate_after="90m", escalate_to=["bo"])
            }
        )
    )
    run = here.app.start("asks", {"given": 1})
    here.settle()

    for _ in range(4):
        here.clock.pass_by(minutes=30)
        here.settle()

    told = [kind for kind in here.kinds(run.thread_id) if kind.startswith("wait.")]
    assert told == ["wait.reminded", "wait.escalated", "wait.reminded"]
    assert here.app.waits(assignee="bo")[0].assignees == ("ann", "bo")


def test_one_fact_wakes_everybody_but_only_one_of_those_who_want_it_alone(world: MakeWorld) -> None:
    shared = graph(lambda state: {"answer": wait_for(event("job")).value}, "shared")
    alone = graph(lambda state: {"answer": wait_for(event("job", exclusive=True)).value}, "alone")
    here = world(shared, alone)
    for name in ("shared", "shared", "alone", "alone"):
        here.app.start(name, {"given": 1})
        here.settle()
        here.clock.pass_by(seconds=1)

    assert here.app.deliver("job", 1).wakes == 3
    here.settle()
    assert [thread.graph for thread in here.app.list(status="waiting")] == ["alone"]
    assert here.app.deliver("job", 2).wakes == 1


def test_answer_that_comes_while_its_sibling_runs_is_not_forgotten(world: MakeWorld) -> None:
    from bide import END, START, StateGraph
    from tests.runtime.world import State

    here: Any = None

    def first(state: Any) -> Any:
        if ask("first?") == "now":
            second_wait = next(wait for wait in here.app.waits() if wait.node == "second")
            here.app.wake(second_wait.id, "meanwhile")
        return {"given": 1}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", lambda state: {"answer": ask("second?")})
    builder.add_edge(START, "first")
    builder.add_edge(START, "second")
    builder.add_edge("first", END)
    builder.add_edge("second", END)
    here = world(builder.compile(name="asks"))
    run = here.app.start("asks", {"given": 0})
    here.settle()

    here.app.wake(next(wait.id for wait in here.app.waits() if wait.node == "first"), "now")
    assert here.settle() == ["waiting", "done"]

    assert here.app.get(run.thread_id).values == {"given": 1, "answer": "meanwhile"}


def test_what_came_is_told_with_who_brought_it_and_when(world: MakeWorld) -> None:
    seen: list[Wake] = []

    def node(state: Any) -> Any:
        seen.append(wait_for(approval("go?")))
        return {"answer": 1}

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    here.clock.pass_by(hours=1)

    here.app.resume(run.thread_id, "approve", by="ann")
    here.settle()

    assert (seen[0].value, seen[0].by, seen[0].at) == ("approve", "ann", here.clock.now())


def test_facts_that_came_before_count_in_the_order_in_which_they_came_and_each_once(world: MakeWorld) -> None:
    def node(state: Any) -> Any:
        votes = wait_for(quorum(2, event("vote"), event("vote"), event("vote")))
        first = wait_for(any_of(late=event("b"), early=event("a")))
        return {"answer": [sorted(wake.value for wake in votes.value.values()), first.winner]}

    here = world(graph(node))
    for number, name in enumerate(["vote", "a", "b", "vote"]):
        here.app.deliver(name, number)
        here.clock.pass_by(seconds=1)

    run = here.app.start("asks", {"given": 1})
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == [[0, 3], "early"]


def test_part_of_a_condition_that_matters_no_more_takes_nothing_from_others(world: MakeWorld) -> None:
    picky = graph(
        lambda state: {"answer": wait_for(all_of(any_of(event("a"), event("b", exclusive=True)), approval("?")))},
        "picky",
    )
    other = graph(lambda state: {"answer": wait_for(event("b", exclusive=True)).value}, "other")
    here = world(picky, other)
    here.app.start("picky", {"given": 1})
    here.settle()
    here.clock.pass_by(seconds=1)
    run = here.app.start("other", {"given": 1})
    here.settle()

    here.app.deliver("a")
    here.app.deliver("b", "for the other")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "for the other"


def test_fact_is_not_heard_twice_though_its_wait_was_let_go(world: MakeWorld) -> None:
    from bide import END, START, StateGraph
    from tests.runtime.world import State

    builder = StateGraph(State)
    for name in ("first", "second"):
        builder.add_node(name, lambda state: {"answer": wait_for(event("tick")).value})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    here = world(builder.compile(name="asks"))
    here.app.deliver("tick", 1)
    run = here.app.start("asks", {"given": 1})
    here.app.run_ready()
    here.store.prune(keep_last=1)

    here.settle()

    assert here.app.get(run.thread_id).status == "waiting"
