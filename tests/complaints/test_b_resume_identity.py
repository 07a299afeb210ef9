"""Complaints 11 to 24: which answer belongs to which question, and what happens to one that fits none.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from bide import Command, StateGraph, Store, interrupt
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    InterruptError,
    InterruptSwallowedError,
    NotWaitingError,
    ResumeError,
    ThreadPausedError,
    UnknownInterruptError,
    UnknownThreadError,
)
from bide.types import START
from tests.complaints.world import State, World, answer
from tests.threads import one_node, side_by_side, thread


@pytest.fixture
def world() -> World:
    return World()


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


def asks_colour(state: State) -> dict[str, Any]:
    return {"colour": interrupt("Your colour?")}


@pytest.fixture
def graph(store: Store) -> Any:
    """A graph that asks one question."""
    return one_node(State, asks_name, checkpointer=store)


@pytest.fixture
def pair(store: Store) -> Any:
    """A graph that asks two questions at once."""
    return side_by_side(State, {"name": asks_name, "colour": asks_colour}, checkpointer=store)


# ── Answers that fit nothing ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(12)
def test_answer_to_a_question_that_nobody_asked_is_refused(graph):
    """There, the unknown id is ignored, and the call looks like one that was accepted."""
    asked = graph.invoke({}, thread()).interrupts

    with pytest.raises(UnknownInterruptError) as refusal:
        graph.invoke(Command(resume={"0" * 32: "yes"}), thread())

    assert refusal.value.interrupt_ids == ("0" * 32,)
    assert refusal.value.pending_ids == (asked[0].id,)
    assert graph.get_state(thread()).interrupts == asked


@pytest.mark.complaint(12)
def test_answer_to_a_finished_or_an_unknown_thread_is_refused(graph):
    """There, the first is a run that does nothing, and the second starts the graph as if the answer were its input."""
    graph.invoke({}, thread())
    graph.invoke(Command(resume="Ada"), thread())

    with pytest.raises(NotWaitingError):
        graph.invoke(Command(resume="Eve"), thread())
    with pytest.raises(UnknownThreadError):
        graph.invoke(Command(resume="Eve"), thread("misspelt"))

    assert graph.get_state(thread()).values["name"] == "Ada"
    assert graph.get_state(thread("misspelt")).created_at is None


@pytest.mark.complaint(16)
def test_one_answer_to_several_questions_is_an_error_and_answers_none(pair):
    """There, this is an error too, since 0.4; before that one of them got the answer."""
    asked = pair.invoke({}, thread()).interrupts

    with pytest.raises(AmbiguousResumeError, match=asked[0].id):
        pair.invoke(Command(resume="Ada"), thread())

    assert pair.get_state(thread()).interrupts == asked


# ── Whose answer ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def calls_in_one_loop(questions: list[str]) -> list[Any]:
    async def call(question: str) -> Any:
        await asyncio.sleep(0)
        return interrupt(question)

    return list(await asyncio.gather(*map(call, questions)))


async def calls_in_threads(questions: list[str]) -> list[Any]:
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(copy_context().run, interrupt, question, key=question) for question in questions]
        return [call.result() for call in calls]


@pytest.mark.complaint(13, 14)
@pytest.mark.parametrize("calls", [calls_in_one_loop, calls_in_threads])
async def test_questions_asked_side_by_side_in_one_node_are_all_told_and_get_their_own_answers(
    store: Store, calls: Callable[..., Any]
):
    """There, one of them is told, and which question an answer belongs to depends on who asks first next time."""

    async def tools(state: State) -> dict[str, Any]:
        return {"log": await calls(["Pay?", "Ship?", "Thank?"])}

    graph = one_node(State, tools, checkpointer=store)

    asked = (await graph.ainvoke({}, thread())).interrupts
    assert sorted(question.value for question in asked) == ["Pay?", "Ship?", "Thank?"]
    assert len({question.id for question in asked}) == 3
    for question in reversed(asked):
        result = await graph.ainvoke(answer(question, f"{question.value} Yes."), thread())

    assert result["log"] == ["Pay? Yes.", "Ship? Yes.", "Thank? Yes."]


@pytest.mark.complaint(14)
def test_every_question_of_a_step_is_told_in_the_same_order_everywhere(store: Store):
    """There, `invoke` tells them in the order in which threads happen to finish."""
    nodes = {f"node{number}": lambda state, number=number: interrupt(number) for number in range(8)}
    graph = side_by_side(State, nodes, checkpointer=store)

    result = graph.invoke({}, thread())

    assert [question.value for question in result.interrupts] == list(range(8))
    assert graph.get_state(thread()).interrupts == result.interrupts


@pytest.mark.complaint(14)
async def test_questions_of_one_node_come_in_the_order_they_are_asked_wherever_they_are_looked_at(store: Store):
    """There, only the first of them is told."""

    async def tools(state: State) -> dict[str, Any]:
        return {"log": await calls_in_one_loop([f"{number}?" for number in range(8)])}

    graph = one_node(State, tools, checkpointer=store)

    result = await graph.ainvoke({}, thread())

    assert [question.value for question in result.interrupts] == [f"{number}?" for number in range(8)]
    assert graph.get_state(thread()).interrupts == result.interrupts


# ── Second answers ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(17)
def test_second_answer_at_a_checkpoint_that_was_left_behind_is_refused(graph):
    """There, the recorded answer wins, and the new one is dropped without a word."""
    asked = graph.invoke({}, thread()).interrupts[0]
    then = graph.get_state(thread()).config
    graph.invoke(Command(resume="yes"), thread())

    for second in (Command(resume="no"), answer(asked, "no")):
        with pytest.raises(ResumeError):
            graph.invoke(second, then)

    assert graph.get_state(thread()).values["name"] == "yes"


@pytest.mark.complaint(17)
def test_second_answer_after_a_failure_is_refused_and_the_first_one_is_used(store: Store, world: World):
    """There, "no" is accepted as input, and the node goes on with "yes"."""

    def act(state: State) -> dict[str, Any]:
        said = interrupt("Act?")
        world.do(said)
        if len(world.effects) == 1:
            raise ConnectionError
        return {"name": said}

    graph = one_node(State, act, checkpointer=store)
    graph.invoke({}, thread())
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="yes"), thread())

    with pytest.raises((AlreadyAnsweredError, NotWaitingError)):
        graph.invoke(Command(resume="no"), thread())

    assert graph.invoke(None, thread())["name"] == "yes"
    assert world.effects == ["yes", "yes"]


@pytest.mark.complaint(17)
def test_other_answer_is_given_to_a_fork_and_both_stay_in_the_history(graph):
    """There, one has to go back, let the node ask again, and answer what it asks then."""
    asked = graph.invoke({}, thread()).interrupts[0]
    then = graph.get_state(thread()).config
    graph.invoke(Command(resume="yes"), thread())

    branch = graph.fork(then, answers={asked.id: "no"})

    assert graph.invoke(None, branch)["name"] == "no"
    ends = [snapshot for snapshot in graph.get_state_history(thread(), order="asc") if not snapshot.next]
    assert [end.values["name"] for end in ends] == ["yes", "no"]


@pytest.mark.complaint(18)
def test_going_elsewhere_leaves_the_question_and_its_node_alone(store: Store, world: World):
    """There, the target and the node that asked both run, and the question is open again."""

    def ask(state: State) -> dict[str, Any]:
        world.do("ask")
        return {"name": interrupt("Your name?")}

    builder = StateGraph(State).add_node(ask).add_node("other", lambda state: {"log": [world.do("other")]})
    graph = builder.add_edge(START, "ask").compile(checkpointer=store)
    question = graph.invoke({}, thread()).interrupts[0]
    world.effects.clear()

    result = graph.invoke(Command(goto="other"), thread())

    assert result.is_complete
    assert world.effects == ["other"]
    with pytest.raises(ResumeError):
        graph.invoke(answer(question, "too late"), thread())
    assert "run.replaced" in [event.kind for event in store.events("t")]


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Let Python change between threads as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.complaint(19)
@pytest.mark.usefixtures("hurried_threads")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_results_of_siblings_that_finish_together_are_all_kept(store: Store, world: World, durability: Any):
    """There, with `durability="exit"`, some siblings' writes are lost, and they run again after the answer."""
    nodes: dict[str, Any] = {
        f"node{number:02}": lambda state, number=number: {"log": [world.do(number)]} for number in range(20)
    }
    graph = side_by_side(State, {**nodes, "ask": asks_name}, checkpointer=store)

    for number in range(5):
        graph.invoke({}, thread(number), durability=durability)
        result = graph.invoke(Command(resume="Ada"), thread(number), durability=durability)
        assert result["log"] == [f"{number} done" for number in range(20)]

    assert set(world.counts.values()) == {5}


# ── Threads that wait ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(22)
@pytest.mark.parametrize("stray", [{}, {"colour": "red"}])
def test_input_that_comes_while_a_question_is_open_neither_restarts_nor_loses_it(graph, stray):
    """There, the graph starts again from the beginning, and the question is gone."""
    asked = graph.invoke({}, thread()).interrupts

    with pytest.raises(ThreadPausedError, match="on_paused"):
        graph.invoke(stray, thread())

    assert graph.get_state(thread()).interrupts == asked
    assert graph.invoke(answer(asked[0], "Ada"), thread())["name"] == "Ada"


@pytest.mark.complaint(23)
def test_except_exception_around_a_question_does_not_swallow_it(store: Store):
    """There, the pause is an `Exception`: the node goes on, and nobody is asked."""

    def guarded(state: State) -> dict[str, Any]:
        try:
            return asks_name(state)
        except Exception:  # noqa: BLE001 - just what is complained about
            return {"name": "nobody was asked"}

    graph = one_node(State, guarded, checkpointer=store)

    assert graph.invoke({}, thread()).is_interrupted
    assert graph.invoke(Command(resume="Ada"), thread())["name"] == "Ada"


@pytest.mark.complaint(23)
def test_node_that_swallows_even_that_is_told_so(store: Store):
    """There, a bare `except:` goes unnoticed in the same way."""

    def greedy(state: State) -> dict[str, Any]:
        try:
            return asks_name(state)
        except BaseException:  # noqa: BLE001 - just what is complained about
            return {"name": "nobody was asked"}

    graph = one_node(State, greedy, checkpointer=store)

    with pytest.raises(InterruptSwallowedError, match="'node'"):
        graph.invoke({}, thread())

    assert "name" not in graph.get_state(thread()).values


@pytest.mark.complaint(24)
def test_question_that_could_never_be_answered_is_an_error():
    """There, the graph stops and tells the question, and no answer can ever reach it."""
    graph = one_node(State, asks_name)

    with pytest.raises(InterruptError, match="checkpointer="):
        graph.invoke({})
