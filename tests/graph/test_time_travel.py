"""Going back: forks at any checkpoint, with other values or other answers, also inside graphs inside graphs."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, StateGraph, StateUpdate, Store, interrupt
from bide.errors import AmbiguousResumeError, InvalidUpdateError, NotWaitingError, UnknownInterruptError
from tests.drivers import Driver
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def ask(state: Log) -> Any:
    return {"log": [interrupt("which way?")]}


def nested(store: Store, runs: list[str]) -> CompiledGraph:
    """Two graphs deep: `first`, then `team` → `member` → prepare, check, ask; then `last`."""

    def note(name: str) -> Any:
        def node(state: Log) -> Any:
            runs.append(name)
            return {"log": [name]}

        return node

    member = in_a_row(Log, {"prepare": note("prepare"), "check": note("check"), "ask": ask})
    team = one_node(Log, member)
    return in_a_row(Log, {"first": note("first"), "team": team, "last": note("last")}, checkpointer=store)


def innermost(graph: CompiledGraph) -> list[Any]:
    """The history of the innermost graph, newest first."""
    snapshot = graph.get_state(thread(), subgraphs=True)
    inner = snapshot.tasks[0].state.tasks[0].state
    return list(graph.get_state_history(inner.config))


def test_other_answer_makes_another_branch_and_the_first_one_stays(store, driver):
    graph = one_node(Log, ask, checkpointer=store)
    driver.invoke(graph, {"log": ["input"]}, thread())
    asked_at = graph.get_state(thread()).config
    driver.invoke(graph, Command(resume="left"), thread())

    driver.call(graph, "fork", asked_at, answers="right")
    result = driver.invoke(graph, None, thread())

    assert result == {"log": ["input", "right"]}
    history = list(graph.get_state_history(thread()))
    assert [snapshot.values["log"] for snapshot in history if not snapshot.next] == [
        ["input", "right"],
        ["input", "left"],
    ]


def test_answers_of_a_fork_may_be_given_by_the_ids_of_the_old_questions(store, driver):
    graph = side_by_side(Log, {"a": ask, "b": ask}, checkpointer=store)
    paused = driver.invoke(graph, {"log": []}, thread())
    asked_at = graph.get_state(thread()).config
    driver.invoke(graph, Command(resume={one.id: "old" for one in paused.interrupts}), thread())

    driver.call(graph, "fork", asked_at, answers={paused.interrupts[0].id: "new"})
    result = driver.invoke(graph, None, thread())

    assert [open_.node for open_ in result.interrupts] == ["b"]
    assert driver.invoke(graph, Command(resume="other"), thread()) == {"log": ["new", "other"]}


def test_answers_that_fit_no_question_are_refused(store):
    graph = side_by_side(Log, {"a": ask, "b": ask}, checkpointer=store)
    graph.invoke({"log": []}, thread())
    asked_at = graph.get_state(thread()).config

    with pytest.raises(AmbiguousResumeError):
        graph.fork(asked_at, answers="one for two")
    with pytest.raises(UnknownInterruptError):
        graph.fork(asked_at, answers={"0" * 32: "nobody asked"})
    start = one_node(Log, lambda state: None, checkpointer=store)
    start.invoke({"log": []}, thread("other"))
    with pytest.raises(NotWaitingError):
        start.fork(thread("other"), answers="nothing was asked")
    assert len(graph.get_state(thread()).interrupts) == 2


def test_fork_merges_values_into_its_own_branch(store, driver):
    graph = in_a_row(Log, {"a": lambda s: {"log": ["a"]}, "b": lambda s: {"log": ["b"]}}, checkpointer=store)
    driver.invoke(graph, {"log": []}, thread())
    after_a = next(found for found in graph.get_state_history(thread()) if found.next == ("b",))

    config = driver.call(graph, "fork", after_a.config, {"log": ["edited"]})

    assert graph.get_state(config).values == {"log": ["a", "edited"]}
    assert driver.invoke(graph, None, config) == {"log": ["a", "edited", "b"]}


def test_fork_answers_a_question_inside_a_graph_inside(store, driver):
    runs: list[str] = []
    graph = nested(store, runs)
    driver.invoke(graph, {"log": []}, thread())
    asked_at = graph.get_state(thread()).config
    driver.invoke(graph, Command(resume="left"), thread())

    driver.call(graph, "fork", asked_at, answers="right")
    result = driver.invoke(graph, None, thread())

    assert result == {"log": ["first", "prepare", "check", "right", "last"]}


def test_going_on_from_a_checkpoint_inside_runs_only_what_came_after_it(store, driver):
    runs: list[str] = []
    graph = nested(store, runs)
    driver.invoke(graph, {"log": []}, thread())
    before_check = next(found for found in innermost(graph) if found.next == ("check",))
    driver.invoke(graph, Command(resume="left"), thread())
    runs.clear()

    paused = driver.invoke(graph, None, before_check.config)

    assert runs == ["check"]
    result = driver.invoke(graph, Command(resume="right"), thread())
    assert result == {"log": ["first", "prepare", "check", "right", "last"]}
    assert paused.is_interrupted
    assert runs == ["check", "last"]


def test_edit_of_a_graph_inside_that_has_ended_begins_another_branch(store, driver):
    graph = nested(store, [])
    driver.invoke(graph, {"log": []}, thread())
    asked_at = innermost(graph)[0].config
    driver.invoke(graph, Command(resume="left"), thread())

    driver.call(graph, "update_state", asked_at, {"log": ["edited"]})
    driver.invoke(graph, None, thread())
    result = driver.invoke(graph, Command(resume="right"), thread())

    assert result == {"log": ["first", "prepare", "check", "edited", "right", "last"]}


def test_edit_of_a_graph_inside_that_waits_keeps_its_question(store, driver):
    graph = nested(store, [])
    paused = driver.invoke(graph, {"log": []}, thread())

    driver.call(graph, "update_state", innermost(graph)[0].config, {"log": ["edited"]})

    assert graph.get_state(thread()).interrupts == paused.interrupts
    result = driver.invoke(graph, Command(resume="right"), thread())
    assert result == {"log": ["first", "prepare", "check", "edited", "right", "last"]}


def test_going_back_before_a_graph_inside_starts_it_anew(store, driver):
    runs: list[str] = []
    graph = nested(store, runs)
    driver.invoke(graph, {"log": []}, thread())
    before_team = graph.get_state(thread()).config
    driver.invoke(graph, Command(resume="left"), thread())
    runs.clear()

    driver.invoke(graph, None, before_team)

    assert runs == ["prepare", "check"]


def test_new_input_at_a_checkpoint_inside_is_refused(store, driver):
    graph = nested(store, [])
    driver.invoke(graph, {"log": []}, thread())

    with pytest.raises(InvalidUpdateError, match="leave checkpoint_ns out"):
        driver.invoke(graph, {"log": ["new"]}, innermost(graph)[0].config)


def test_bulk_update_writes_one_checkpoint_for_each_list(store, driver: Driver):
    builder = StateGraph(Log).add_node("a", lambda s: {"log": ["a"]}).add_node("b", lambda s: {"log": ["b"]})
    builder.add_node("c", lambda s: {"log": ["c"]}).add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    graph = builder.compile(store)

    driver.call(
        graph,
        "bulk_update_state",
        thread(),
        [[StateUpdate({"log": ["in"]}, START)], [StateUpdate({"log": ["A"]}, "a"), StateUpdate({"log": ["B"]}, "b")]],
    )

    assert [found.values["log"] for found in graph.get_state_history(thread())] == [["in", "A", "B"], ["in"]]
    assert graph.get_state(thread()).next == ("c",)
    assert driver.invoke(graph, None, thread()) == {"log": ["in", "A", "B", "c"]}


def test_several_updates_in_one_step_must_say_whose_they_are(store):
    graph = one_node(Log, ask, checkpointer=store)

    with pytest.raises(InvalidUpdateError, match="as_node"):
        graph.bulk_update_state(thread(), [[StateUpdate({"log": [1]}), StateUpdate({"log": [2]})]])
