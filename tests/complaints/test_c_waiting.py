"""Complaints 25 to 28: who waits, for what, and since when.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Store, interrupt
from bide.clock import Instant
from tests.complaints.world import State, answer
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
