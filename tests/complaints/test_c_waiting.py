"""Complaints 25 to 28: who waits, for what, and since when.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Store, WaitExpired, ask, interrupt, sleep, wait_for
from bide.clock import Instant
from bide.waits import event
from tests.complaints.world import State, World, answer
from tests.runtime.world import StillClock
from tests.runtime.world import World as Runtime
from tests.threads import one_node, side_by_side, thread


class FakeClock:
    """A clock that moves only when it is told to."""

    instant: Instant = 1_700_000_000_000

    def now(self) -> Instant:
        return self.instant


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


def asks_colour(state: State) -> dict[str, Any]:
    return {"colour": interrupt("Your colour?")}


@pytest.mark.complaint(25)
def test_everybody_who_waits_is_listed_across_threads_and_longest_first(url: str):
    """There, no saver can say which threads wait; one has to know every thread and look at each."""
    clock = FakeClock()
    with Store.open(url, clock=clock) as store:
        names = one_node(State, asks_name, checkpointer=store, name="names")
        both = side_by_side(State, {"name": asks_name, "colour": asks_colour}, checkpointer=store, name="both")
        for graph, name in ((names, "early"), (both, "later"), (names, "answered")):
            graph.invoke({}, thread(name))
            clock.instant += 1000
        names.invoke(Command(resume="Ada"), thread("answered"))

    with Store.open(url, clock=clock) as another_process:
        waiting = another_process.open_waits()

    assert [wait.thread_id for wait in waiting] == ["early", "later", "later"]
    assert sorted(wait.node for wait in waiting if wait.thread_id == "later") == ["colour", "name"]
    assert [clock.instant - wait.created_at for wait in waiting] == [3000, 2000, 2000]


@pytest.mark.complaint(25)
def test_inbox_is_asked_by_person_tag_kind_and_graph(url: str):
    """There, an inbox is a product of its own, or one's own table beside the threads."""

    def asks_ann(state: State) -> dict[str, Any]:
        return {"name": ask("Name?", assignees=["ann"], tags=["sales"], title="A name")}

    def asks_bob(state: State) -> dict[str, Any]:
        return {"name": ask("Name?", assignees=["bob"], tags=["support"])}

    with Store.open(url, clock=StillClock()) as store:
        graphs = [one_node(State, asks_ann, name="ann"), one_node(State, asks_bob, name="bob")]
        here = Runtime(store, StillClock(), graphs)
        for name in ("ann", "bob"):
            here.app.start(name, {}, thread_id=f"of {name}")
        here.settle()

        asked = [
            here.app.waits(assignee="ann"),
            here.app.waits(tag="sales"),
            here.app.waits(graph="ann"),
            here.app.waits(thread_id="of ann"),
        ]
        everybody = here.app.waits(kind="question")

    assert [[wait.thread_id for wait in found] for found in asked] == [["of ann"]] * 4
    assert sorted(wait.thread_id for wait in everybody) == ["of ann", "of bob"]
    assert asked[0][0].title == "A name"


@pytest.mark.complaint(26)
def test_approval_has_a_deadline_with_a_default_or_an_error_that_the_node_can_catch(url: str):
    """There, a question waits for ever, unless somebody writes a sweeper that resumes it with a made-up answer."""

    def asks_twice(state: State) -> dict[str, Any]:
        first = interrupt("Approve?", timeout="48h", default="nobody answered")
        try:
            ask("Really?", timeout="1h")
        except WaitExpired:
            return {"log": [first, "given up"]}
        raise AssertionError("nobody has answered")

    clock = StillClock()
    with Store.open(url, clock=clock) as store:
        here = Runtime(store, clock, [one_node(State, asks_twice, name="asks")])
        here.app.start("asks", {}, thread_id="t")
        here.settle()

        for hours, left in ((47.9, []), (0.1, ["waiting"]), (0.9, []), (0.1, ["done"])):
            clock.pass_by(hours=hours)
            assert here.settle() == left

        assert here.app.get("t").values["log"] == ["nobody answered", "given up"]


@pytest.mark.complaint(26)
def test_people_are_reminded_and_then_somebody_else_is_asked(url: str):
    """There, reminders and escalation are the sweeper's work, too."""

    def asks(state: State) -> dict[str, Any]:
        return {
            "name": ask("Name?", assignees=["ann"], remind_every="2h", escalate_after="5h", escalate_to=["the boss"])
        }

    clock = StillClock()
    with Store.open(url, clock=clock) as store:
        here = Runtime(store, clock, [one_node(State, asks, name="asks")])
        here.app.start("asks", {}, thread_id="t")
        here.settle()

        for _ in range(6):
            clock.pass_by(hours=1)
            here.settle()

        assert [kind for kind in here.kinds("t") if kind.startswith("wait.")] == [
            "wait.reminded",
            "wait.reminded",
            "wait.escalated",
            "wait.reminded",
        ]
        assert here.app.waits(assignee="the boss")[0].thread_id == "t"


@pytest.mark.complaint(27)
def test_thread_sleeps_for_days_in_the_database_and_is_woken_by_the_clock_or_by_an_event(url: str):
    """There, a node that sleeps holds its process, and an event from outside needs a program that knows the thread."""
    outside = World()

    def naps(state: State) -> dict[str, Any]:
        outside.do("before")
        sleep("3d")
        return {"name": wait_for(event("paid", {"order": 7})).value["by"]}

    clock = StillClock()
    with Store.open(url, clock=clock) as store:
        here = Runtime(store, clock, [one_node(State, naps, name="naps")])
        here.app.start("naps", {}, thread_id="t")
        here.settle()
    clock.pass_by(hours=72)

    with Store.open(url, clock=clock) as another_process:
        here = Runtime(another_process, clock, [one_node(State, naps, name="naps")])
        assert here.settle() == ["waiting"]
        here.app.deliver("paid", {"order": 8, "by": "Bo"})
        here.app.deliver("paid", {"order": 7, "by": "Ada"})
        here.settle()
        values = here.app.get("t").values

    assert values["name"] == "Ada"


@pytest.mark.complaint(27)
def test_runs_are_started_by_the_clock(url: str):
    """There, cron jobs come with the platform."""
    clock = StillClock()
    with Store.open(url, clock=clock) as store:
        here = Runtime(store, clock, [one_node(State, lambda state: {"log": ["good morning"]}, name="greets")])
        here.app.schedule("morning", "greets", "0 9 * * *", {}, thread_id="greetings", timezone="Europe/Berlin")

        for _ in range(3):
            clock.pass_by(hours=24)
            here.settle()

        assert here.app.get("greetings").values["log"] == ["good morning"] * 3


@pytest.mark.complaint(50)
def test_answering_is_a_verb_of_its_own_and_never_starts_anything(url: str):
    """There, one method starts, answers and goes on, depending on what it is given."""
    with Store.open(url, clock=StillClock()) as store:
        here = Runtime(store, StillClock(), [one_node(State, asks_name, name="names")])
        here.app.start("names", {}, thread_id="t")
        here.settle()

        answered = here.app.resume("t", "Ada", by="bob")
        here.settle()

        assert (answered.status, here.app.get("t").values["name"]) == ("resumed", "Ada")
        assert len(here.app.runs("t")) == 1


@pytest.mark.complaint(28)
@pytest.mark.parametrize("mode", ["updates", "values"])
def test_last_part_of_a_stream_carries_every_open_question(store: Store, mode: Any):
    """There, the stream has one part for each question, so the last part carries only one of them."""
    graph = side_by_side(State, {"name": asks_name, "colour": asks_colour}, checkpointer=store)

    last = list(graph.stream({}, thread(), stream_mode=mode))[-1]

    assert [question.value for question in last["__interrupt__"]] == ["Your colour?", "Your name?"]


@pytest.mark.complaint(28)
def test_second_question_of_a_run_ends_the_stream_like_the_first(store: Store):
    """There, this is so too on 1.2.20; the question that stayed open is told because its node is run again."""

    def interview(state: State) -> dict[str, Any]:
        return {"log": [interrupt("First?"), interrupt("Second?")]}

    graph = side_by_side(State, {"interview": interview, "name": asks_name}, checkpointer=store)
    first, name = list(graph.stream({}, thread()))[-1]["__interrupt__"]

    last = list(graph.stream(answer(first, 1), thread()))[-1]["__interrupt__"]

    assert [question.value for question in last] == ["Second?", "Your name?"]
    assert last[1].id == name.id
