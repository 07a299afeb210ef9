"""The flow decides and does nothing: here it is driven by hand, without a driver, a store or a thread."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, StateGraph, interrupt
from bide.engine.flow import Flow, advance
from bide.engine.opening import NOTHING, Request
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    PAUSED,
    RESULT,
    SAVED,
    TASK,
    VALUES,
    Begin,
    Begun,
    Commit,
    Emit,
    Ending,
    Join,
    Load,
    Loaded,
    Outcome,
    Question,
    Record,
    RunInfo,
    Start,
    Task,
)
from bide.errors import InvalidUpdateError, LeaseLostError, StoreError, ThreadBusyError
from bide.types import RunStatus
from tests.engine.notebook import Hand, Notebook
from tests.threads import in_a_row, side_by_side


class Seen(TypedDict):
    seen: Annotated[list[str], operator.add]


def never(state: Seen) -> None:
    raise AssertionError("the flow itself calls no node")


def two_in_a_row() -> GraphSpec:
    return in_a_row(Seen, {"a": never, "b": never}).spec


def two_side_by_side() -> GraphSpec:
    return side_by_side(Seen, {"a": never, "b": never}).spec


def finished(task: Task) -> Outcome:
    return Outcome(task, (("seen", [task.node]),))


def asking(task: Task, **more: Any) -> Outcome:
    return Outcome(task, asks=(Question(f"id of {task.node}", task.id, task.node, "#0", "call", **more),))


def failed(task: Task) -> Outcome:
    return Outcome(task, error=ValueError(f"{task.node} is broken"))


def begin(flow: Flow) -> Any:
    """Start a new thread; return what the flow wants next."""
    assert flow.send(None) == Load(None)
    assert isinstance(flow.send(NOTHING), Begin)
    return flow.send(Begun("thread", "uid", "run"))


def tasks_of(effect: Any) -> list[Task]:
    assert isinstance(effect, Start)
    return [assignment.task for assignment in effect.assignments]


def end(flow: Flow, reply: Any = None) -> Ending:
    """Send the last reply; return how the run ended."""
    with pytest.raises(StopIteration) as told:
        flow.send(reply)
    ending: Ending = told.value.value
    return ending


# ── Which effects, in which order ──────────────────────────────────────────────────────────────────────────────────


def test_linear_graph_starts_joins_and_commits_each_step_and_the_last_commit_ends_the_run():
    flow = advance(two_in_a_row(), Request({"seen": ["in"]}))
    start = begin(flow)

    joins = flow.send(None)
    first = flow.send([finished(*tasks_of(start))])
    second_start = flow.send(None)
    flow.send(None)
    second = flow.send([finished(*tasks_of(second_start))])
    ending = end(flow)

    assert joins == Join()
    assert (first.status, first.is_over, first.checkpoint.next) == (RunStatus.RUNNING, True, ("b",))
    assert (second.status, second.is_over, second.checkpoint.next) == (RunStatus.DONE, True, ())
    assert ending.checkpoint.values["seen"] == ["in", "a", "b"]
    assert not ending.is_paused


def test_first_checkpoint_holds_the_input_and_is_written_with_the_claim():
    flow = advance(two_in_a_row(), Request({"seen": ["in"]}))
    flow.send(None)

    taken = flow.send(NOTHING)

    assert isinstance(taken, Begin)
    assert taken.checkpoint is not None
    assert (taken.checkpoint.source, taken.checkpoint.next) == ("input", ("a",))
    assert taken.checkpoint.values["seen"] == ["in"]


def test_task_that_finishes_before_its_sibling_is_recorded_before_the_next_join():
    flow = advance(two_side_by_side(), Request({"seen": []}))
    a, b = tasks_of(begin(flow))
    assert flow.send(None) == Join()

    recorded = flow.send([finished(b)])
    joined = flow.send(None)
    committed = flow.send([finished(a)])

    assert recorded == Record((finished(b),))
    assert joined == Join()
    assert isinstance(committed, Commit)
    assert committed.checkpoint.values["seen"] == ["a", "b"], "in task order, though b finished first"


def test_tasks_that_finish_together_need_no_record_of_their_own():
    flow = advance(two_side_by_side(), Request({"seen": []}))
    a, b = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([finished(b), finished(a)])

    assert isinstance(committed, Commit)
    assert committed.checkpoint.values["seen"] == ["a", "b"]


def test_pause_is_one_commit_with_the_question_and_the_result_of_the_sibling():
    flow = advance(two_side_by_side(), Request({"seen": []}))
    a, b = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([asking(a), finished(b)])
    ending = end(flow)

    assert isinstance(committed, Commit)
    assert (committed.status, committed.changed) == (RunStatus.WAITING, None), "no new checkpoint"
    assert [question.node for question in committed.opens] == ["a"]
    assert committed.outcomes == (finished(b),)
    assert [question.node for question in ending.asks] == ["a"]


def test_update_given_with_a_question_makes_a_checkpoint_with_the_same_tasks():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    (a,) = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([asking(a, update={"seen": ["asked"]})])

    assert committed.changed == {"seen"}
    assert committed.checkpoint.tasks == (a,)
    assert committed.checkpoint.values["seen"] == ["asked"]


def test_failure_is_committed_without_a_checkpoint_and_then_raised():
    flow = advance(two_side_by_side(), Request({"seen": []}))
    a, b = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([failed(a), finished(b)])

    assert (committed.status, committed.changed, committed.is_over) == (RunStatus.FAILED, None, False)
    assert [outcome.task.node for outcome in committed.outcomes] == ["b", "a"]
    with pytest.raises(ValueError, match="a is broken"):
        flow.send(None)


def test_task_that_was_never_begun_is_neither_recorded_nor_counted_as_failed():
    flow = advance(two_side_by_side(), Request({"seen": []}))
    a, b = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([failed(a), Outcome(b, is_skipped=True)])

    assert [outcome.task.node for outcome in committed.outcomes] == ["a"]


def test_update_that_the_state_cannot_take_ends_the_run_as_failed():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    (a,) = tasks_of(begin(flow))
    flow.send(None)

    committed = flow.send([Outcome(a, (("seen", 5),))])

    assert isinstance(committed, Commit)
    assert (committed.status, committed.changed) == (RunStatus.FAILED, None)
    with pytest.raises(InvalidUpdateError, match="seen"):
        flow.send(None)


# ── When saving fails ──────────────────────────────────────────────────────────────────────────────────────────────


def test_commit_that_fails_ends_the_run_as_failed_and_raises_the_first_error():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    (a,) = tasks_of(begin(flow))
    flow.send(None)
    flow.send([finished(a)])

    marks = flow.throw(StoreError("disk full"))

    assert (marks.status, marks.changed) == (RunStatus.FAILED, None)
    with pytest.raises(StoreError, match="disk full"):
        flow.send(None)


def test_error_of_the_last_attempt_to_save_goes_along_with_the_first_as_a_note():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    (a,) = tasks_of(begin(flow))
    flow.send(None)
    flow.send([finished(a)])
    flow.throw(StoreError("disk full"))

    with pytest.raises(StoreError, match="disk full") as caught:
        flow.throw(StoreError("still full"))

    assert "still full" in " ".join(caught.value.__notes__)


def test_run_that_lost_its_lease_writes_nothing_more():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    (a,) = tasks_of(begin(flow))
    flow.send(None)
    flow.send([finished(a)])

    with pytest.raises(LeaseLostError):
        flow.throw(LeaseLostError("taken over"))


def test_thread_with_a_living_worker_is_refused_before_anything_is_written():
    flow = advance(two_in_a_row(), Request({"seen": []}))
    flow.send(None)
    busy = RunInfo("run", RunStatus.RUNNING, 1, is_orphan=False)

    with pytest.raises(ThreadBusyError):
        flow.send(Loaded("uid", 0, busy, None, {}, {}, {}, ()))


# ── What is told, and what is not ──────────────────────────────────────────────────────────────────────────────────


def test_flow_without_a_store_saves_nothing():
    flow = advance(two_in_a_row(), Request({"seen": []}, durable=False))

    start = flow.send(None)
    flow.send(None)
    second = flow.send([finished(*tasks_of(start))])

    assert isinstance(second, Start), "no Load, Begin or Commit between"


def test_events_are_made_only_for_those_who_want_them():
    ending, quiet = play(Request({"seen": []}))
    _, told = play(Request({"seen": []}, wants=frozenset({VALUES, TASK, RESULT, SAVED, PAUSED})))

    assert not [effect for effect in quiet if isinstance(effect, Emit)]
    assert [effect.kind for effect in told if isinstance(effect, Emit)] == [
        *(VALUES, SAVED),
        *(TASK, RESULT, SAVED, VALUES),
        *(TASK, RESULT, SAVED, VALUES),
    ]
    assert ending.checkpoint.values["seen"] == ["a", "b"]


def play(request: Request) -> tuple[Ending, list[Any]]:
    """Answer every effect of a run of two nodes; return its end and its effects."""
    flow, effects, reply, started = advance(two_in_a_row(), request), [], None, []
    while True:
        try:
            effect = flow.send(reply)
        except StopIteration as told:
            return told.value, effects
        effects.append(effect)
        reply = {Load: NOTHING, Begin: Begun("thread", "uid", "run")}.get(type(effect))
        if isinstance(effect, Start):
            started = tasks_of(effect)
        elif isinstance(effect, Join):
            reply = [finished(task) for task in started]


# ── Power cuts ─────────────────────────────────────────────────────────────────────────────────────────────────────

ANSWERS = {"right?": "yes", "one?": "1", "two?": "2"}


def asking_graph(ran: list[str]) -> GraphSpec:
    """A step of two nodes, one of which asks and gives an update; then a node that asks twice."""

    def left(state: Seen) -> Seen:
        ran.append("left")
        return {"seen": ["left"]}

    def right(state: Seen) -> Seen:
        return {"seen": [interrupt("right?", update={"seen": ["asked"]})]}

    def last(state: Seen) -> Seen:
        return {"seen": [interrupt("one?"), interrupt("two?")]}

    builder = StateGraph(Seen).add_node(left).add_node(right).add_node(last)
    builder.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "last")
    return builder.compile().spec


def next_request(notebook: Notebook) -> Request | None:
    """What a caller says to the thread as it is saved: begin, answer, go on; or nothing more."""
    if not notebook.checkpoints:
        return Request({"seen": ["in"]})
    waits = notebook.open_waits
    if waits:
        return Request(Command(resume={wait.question.id: ANSWERS[wait.question.value] for wait in waits}))
    return None if notebook.status is RunStatus.DONE else Request(None)


def live_through(spec: GraphSpec, power_cut: int | None) -> tuple[Notebook, int]:
    """Play a caller until the thread is done. The power fails once, after so many effects. Return what was saved."""
    notebook, effects = Notebook(), 0
    while (request := next_request(notebook)) is not None:
        hand = Hand(spec, notebook)
        left = None if power_cut is None else power_cut - effects
        if left == 0:
            left = power_cut = None
        hand.drive(advance(spec, request), effects=left)
        effects += hand.performed
        if left is not None and hand.performed == left:
            power_cut = None
    return notebook, effects


def test_state_is_the_same_wherever_the_power_fails():
    whole, effects = live_through(asking_graph([]), None)

    ends = [live_through(asking_graph([]), cut)[0].checkpoints for cut in range(1, effects)]

    assert whole.checkpoints[whole.head].values["seen"] == ["in", "asked", "left", "yes", "1", "2"]
    assert [end[max(end)].values for end in ends] == [whole.checkpoints[whole.head].values] * len(ends)
    assert [max(end) for end in ends] == [whole.head] * len(ends), "no checkpoint twice, and none is missing"
    assert len(ends) > 20


def test_recorded_sibling_never_runs_again_wherever_the_power_fails():
    times_run = []

    for cut in range(1, live_through(asking_graph([]), None)[1]):
        ran: list[str] = []
        live_through(asking_graph(ran), cut)
        times_run.append(len(ran))

    assert set(times_run) == {1, 2}
    assert times_run.count(2) == 1, "only when the power fails between its end and its record"
