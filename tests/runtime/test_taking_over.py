"""A start on a thread that waits goes on in place of the run that waited, with the answers that it brings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import pytest

from bide import START, Bide, Command, StateGraph, interrupt
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    ConflictError,
    InvalidAnswerError,
    NotWaitingError,
    ResumeError,
    UnknownInterruptError,
)
from bide.store import Store


class State(TypedDict, total=False):
    first: Any
    second: Any


def ask_twice(state: State) -> dict[str, Any]:
    return {"first": interrupt("first?", response_schema={"type": "string"}), "second": interrupt("second?")}


def ask_left(state: State) -> dict[str, Any]:
    return {"first": interrupt("left?")}


def ask_right(state: State) -> dict[str, Any]:
    return {"second": interrupt("right?")}


def open_app(store: Store) -> Bide:
    both = StateGraph(State).add_node(ask_left).add_node(ask_right)
    both.add_edge(START, "ask_left").add_edge(START, "ask_right")
    twice = StateGraph(State).add_node(ask_twice).add_edge(START, "ask_twice")
    return Bide(store, [twice.compile(name="twice"), both.compile(name="both")])


@pytest.fixture
def app(store: Store) -> Bide:
    return open_app(store)


def started(app: Bide, graph: str = "twice") -> Any:
    run = app.start(graph, {}, thread_id="t")
    app.run_ready()
    return run


def test_an_answer_that_comes_with_a_start_ends_the_run_that_waited_and_begins_another(app):
    first = started(app)

    second = app.start("twice", Command(resume="yes"), thread_id="t", by="maya", if_busy="enqueue")

    assert [(run.run_id, run.status) for run in app.runs("t")] == [(second.run_id, "ready"), (first.run_id, "done")]
    app.run_ready()
    assert app.get("t").waits[0].question == "second?"
    assert app.get("t").waits[0].run_id == second.run_id
    answered = [row for row in app.store.waits_of("t") if row.status == "answered"]
    assert [row.answered_by for row in answered] == ["maya"]
    assert app.store.verify().is_sound


def test_what_comes_beside_the_answer_is_done_too(app):
    started(app)

    app.start("twice", Command(resume="yes", update={"second": "kept"}), thread_id="t")
    app.run_ready()

    assert app.get("t").values["second"] == "kept"
    assert [wait.question for wait in app.get("t").waits] == ["second?"]


def test_an_answer_that_does_not_fit_starts_nothing(app):
    first = started(app)

    with pytest.raises(InvalidAnswerError):
        app.start("twice", Command(resume=7), thread_id="t")

    assert [run.run_id for run in app.runs("t")] == [first.run_id]
    assert app.get("t").status == "waiting"


def test_of_several_who_answer_with_a_start_one_wins_and_the_others_start_nothing(app):
    started(app)

    def answer(number: int) -> Any:
        try:
            return app.start("twice", Command(resume=f"by {number}"), thread_id="t").run_id
        except (ConflictError, ResumeError) as late:
            return late

    with ThreadPoolExecutor(8) as pool:
        came = list(pool.map(answer, range(8)))

    assert sum(isinstance(one, str) for one in came) == 1
    assert len(app.runs("t")) == 2
    assert app.store.verify().is_sound


def test_an_answer_to_a_thread_at_rest_is_refused(app):
    started(app)
    app.start("twice", Command(resume="a"), thread_id="t")
    app.run_ready()
    app.start("twice", Command(resume="b"), thread_id="t")
    app.run_ready()

    with pytest.raises(NotWaitingError, match="is done"):
        app.start("twice", Command(resume="c"), thread_id="t")

    assert app.get("t").values == {"first": "a", "second": "b"}


def test_the_same_key_answers_once(app):
    started(app)
    first = app.start("twice", Command(resume="a"), thread_id="t", key="k")
    app.run_ready()

    again = app.start("twice", Command(resume="a"), thread_id="t", key="k")

    assert again.run_id == first.run_id
    assert not again.is_new


def test_going_on_without_an_answer_leaves_the_question_open_and_takes_over(app):
    started(app)

    second = app.start("twice", None, thread_id="t", if_waiting="take_over")
    app.run_ready()

    assert app.get("t").status == "waiting"
    assert app.get("t").waits[0].run_id == second.run_id


def test_a_pause_at_a_node_is_passed_by_going_on(app):
    app.start("twice", {}, thread_id="t", interrupt_before=["ask_twice"])
    app.run_ready()
    assert app.get("t").waits[0].kind == "pause"

    app.start("twice", None, thread_id="t", if_waiting="take_over")
    app.run_ready()

    assert app.get("t").waits[0].question == "first?"


def test_of_two_questions_one_may_be_answered_and_the_other_is_the_new_runs(app):
    started(app, "both")
    left, right = sorted(app.get("t").waits, key=lambda wait: wait.node)

    with pytest.raises(AmbiguousResumeError):
        app.start("both", Command(resume="one for both"), thread_id="t")
    with pytest.raises(UnknownInterruptError):
        app.start("both", Command(resume={left.id: 1, "0" * 32: 2}), thread_id="t")
    app.start("both", Command(resume={left.id: "L"}), thread_id="t")
    app.run_ready()

    assert [wait.id for wait in app.get("t").waits] == [right.id]
    app.wake(right.id, "R")
    app.run_ready()
    assert app.get("t").values == {"first": "L", "second": "R"}


def test_an_answer_after_another_through_a_wake_is_told_so(app):
    started(app)
    app.wake(app.waits()[0].id, "early")

    with pytest.raises((AlreadyAnsweredError, ConflictError)):
        app.start("twice", Command(resume={app.store.waits_of("t")[0].wait_id: "late"}), thread_id="t")


def test_a_new_input_takes_over_when_it_says_that_it_begins_anew(app):
    first = started(app)

    app.start("twice", {"second": "new"}, thread_id="t", on_paused="restart", if_waiting="take_over")
    app.run_ready()

    assert [run.status for run in app.runs("t") if run.run_id == first.run_id] == ["done"]
    assert len(app.get("t").waits) == 1
    assert app.store.verify().is_sound
