"""Questions inside graphs inside graphs: listed together, answered one by one, and nobody runs again who need not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from bide import START, Command, CompiledGraph, Interrupt, Runtime, StateGraph, Store, interrupt
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    InterruptSwallowedError,
    InvalidAnswerError,
    ThreadPausedError,
    UnknownInterruptError,
)
from tests.drivers import Driver
from tests.nested.world import State, World, answer, innermost, nested, values_of
from tests.threads import in_a_row, one_node, side_by_side, thread

DURABILITIES = ["sync", "async", "exit"]


def two_deep(world: World, store: Store, **options: Any) -> CompiledGraph:
    """Three branches that ask: one level down, two levels down, and in a graph that a node calls."""
    nodes = {
        "deep": one_node(State, world.asker("deep")),
        "flat": world.asker("flat"),
        "called": world.calls("called", world.asker("inside")),
    }
    return side_by_side(State, nodes, checkpointer=store, **options)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_answers_in_any_order_run_only_what_was_answered(
    driver: Driver, store: Store, world: World, durability: str, order: tuple[int, ...]
):
    graph = two_deep(world, store, durability=durability)
    questions = driver.invoke(graph, {"log": ["in"]}, thread()).interrupts
    assert values_of(questions) == ["inside?", "deep?", "flat?"]
    assert len({question.id for question in questions}) == 3
    world.take_runs()
    expected = {"inside?": ["called", "inside", "inside2"], "deep?": ["deep", "deep2"], "flat?": ["flat", "flat2"]}

    for place in order:
        result = driver.invoke(graph, answer(questions[place]), thread())
        assert world.take_runs() == expected[questions[place].value]

    called, deep, flat = ["inside1", "INSIDE?", "inside2"], ["deep1", "DEEP?", "deep2"], ["flat1", "FLAT?", "flat2"]
    assert result["log"] == ["in", *called, *deep, *flat]
    assert not world.repeated


def test_questions_have_the_same_ids_at_every_look_and_in_every_thread_others(
    driver: Driver, store: Store, world: World
):
    graph = two_deep(world, store)
    questions = driver.invoke(graph, {}, thread("one")).interrupts

    again = driver.invoke(graph, None, thread("one")).interrupts
    others = driver.invoke(graph, {}, thread("two")).interrupts

    assert questions == again == driver.call(graph, "get_state", thread("one")).interrupts
    assert not {question.id for question in questions} & {question.id for question in others}


def test_branch_that_still_waits_is_left_alone_when_another_part_of_it_was_answered_before(
    driver: Driver, store: Store, world: World
):
    middle = side_by_side(State, {"a": one_node(State, world.asks("a")), "b": one_node(State, world.asks("b"))})
    nodes = {"called": world.calls("called", middle), "other": world.asks("other")}
    graph = side_by_side(State, nodes, checkpointer=store)
    a, b, other = driver.invoke(graph, {}, thread()).interrupts
    driver.invoke(graph, answer(a), thread())
    world.take_runs()

    result = driver.invoke(graph, answer(other), thread())

    assert world.take_runs() == ["other"]
    assert result.interrupts == (b,)
    assert driver.invoke(graph, answer(b), thread())["log"] == ["A?", "B?", "OTHER?"]


def test_going_on_without_an_answer_runs_nothing(driver: Driver, store: Store, world: World):
    middle = side_by_side(State, {"a": one_node(State, world.asks("a")), "b": one_node(State, world.asks("b"))})
    graph = one_node(State, world.calls("called", middle), checkpointer=store)
    a, b = driver.invoke(graph, {}, thread()).interrupts
    driver.invoke(graph, answer(a), thread())
    world.take_runs()

    result = driver.invoke(graph, None, thread())

    assert result.interrupts == (b,)
    assert world.take_runs() == []


def test_questions_one_after_the_other_in_one_node_and_in_the_next(driver: Driver, store: Store, world: World):
    def twice(state: State) -> dict[str, Any]:
        world.run("twice")
        return {"log": [interrupt("first?"), interrupt("second?", key="second")]}

    inner = in_a_row(State, {"twice": driver.node(twice), "then": world.asks("then")})
    graph = nested(inner, 2, checkpointer=store)
    result = driver.invoke(graph, {}, thread())
    asked = []

    while result.is_interrupted:
        asked += result.interrupts
        result = driver.invoke(graph, answer(*result.interrupts), thread())

    assert values_of(asked) == ["first?", "second?", "then?"]
    assert result["log"] == ["FIRST?", "SECOND?", "THEN?"]
    assert world.take_runs() == ["then", "then", "twice", "twice", "twice"]


@pytest.mark.parametrize("keeps", [None, True, False])
def test_question_in_a_later_step_of_a_subgraph_gets_its_answer(
    driver: Driver, store: Store, world: World, keeps: bool | None
):
    """With checkpointer=False the subgraph runs anew from its start, and is answered all the same, as in LangGraph."""
    nodes = {"a": world.says("a"), "b": world.asks("b"), "c": world.asks("c")}
    inner = in_a_row(State, nodes, checkpointer=keeps)
    graph = one_node(State, inner, checkpointer=store)
    driver.invoke(graph, {}, thread())

    second = driver.invoke(graph, Command(resume="B"), thread())
    result = driver.invoke(graph, Command(resume="C"), thread())

    assert values_of(second.interrupts) == ["c?"]
    assert result["log"] == ["a", "B", "C"]
    assert not world.repeated


# ── What is refused ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_answer_to_several_questions_at_different_depths_is_refused(driver: Driver, store: Store, world: World):
    graph = two_deep(world, store)
    questions = driver.invoke(graph, {}, thread()).interrupts
    world.take_runs()

    with pytest.raises(AmbiguousResumeError):
        driver.invoke(graph, Command(resume="yes"), thread())

    assert driver.call(graph, "get_state", thread()).interrupts == questions
    assert world.take_runs() == []


def test_wrong_and_repeated_ids_are_refused_and_nothing_is_written(driver: Driver, store: Store, world: World):
    graph = two_deep(world, store)
    first, second, third = driver.invoke(graph, {}, thread()).interrupts
    driver.invoke(graph, answer(first), thread())
    known = len(store.events("t"))

    with pytest.raises(UnknownInterruptError):
        driver.invoke(graph, Command(resume={second.id: "yes", "0" * 32: "no"}), thread())
    with pytest.raises((AlreadyAnsweredError, UnknownInterruptError)):
        driver.invoke(graph, Command(resume={first.id: "no", second.id: "yes"}), thread())

    assert driver.call(graph, "get_state", thread()).interrupts == (second, third)
    assert len(store.events("t")) == known


def test_plain_input_on_a_thread_that_waits_inside_is_refused_merged_or_begins_anew(
    driver: Driver, store: Store, world: World
):
    graph = nested(world.asker("a"), 2, checkpointer=store)
    question = driver.invoke(graph, {}, thread()).interrupts[0]

    with pytest.raises(ThreadPausedError):
        driver.invoke(graph, {"name": "Ada"}, thread())
    anew = driver.invoke(graph, {"name": "Eve"}, thread(), on_paused="restart")
    merged = driver.invoke(graph, {"name": "Ada"}, thread(), on_paused="resume")

    assert anew.is_interrupted
    assert anew.interrupts[0].id != question.id
    assert merged["log"] == ["a1", {"name": "Ada"}, "a2"]


def test_going_elsewhere_cancels_questions_at_every_depth_visibly(driver: Driver, store: Store, world: World):
    builder = StateGraph(State).add_node("deep", one_node(State, world.asker("deep"))).add_edge(START, "deep")
    builder.add_node("flat", world.asker("flat")).add_edge(START, "flat").add_node("x", world.says("x"))
    graph = builder.compile(checkpointer=store)
    driver.invoke(graph, {}, thread())
    world.take_runs()

    result = driver.invoke(graph, Command(goto="x"), thread())

    assert result["log"] == ["x"]
    assert world.take_runs() == ["x"]
    assert store.open_waits() == []
    replaced = next(event for event in store.events("t") if event.kind == "run.replaced")
    assert b"deep" in replaced.body
    assert b"flat" in replaced.body


class Age(BaseModel):
    age: int

    @field_validator("age")
    @classmethod
    def is_positive(cls, age: int) -> int:
        if age < 0:
            raise ValueError("an age is not negative")
        return age


@pytest.mark.parametrize("bad", [{"age": "old"}, {"age": -1}], ids=["wrong type", "refused by the model"])
def test_answer_that_does_not_fit_leaves_the_question_open_and_siblings_answered(
    driver: Driver, store: Store, world: World, bad: Any
):
    def ask(state: State) -> dict[str, Any]:
        return {"log": [interrupt("age?", response_schema=Age, update={"log": ["asked"]}).age]}

    inner = side_by_side(State, {"age": driver.node(ask), "other": world.asks("other")})
    graph = nested(inner, 2, checkpointer=store)
    age, other = driver.invoke(graph, {}, thread()).interrupts

    with pytest.raises(InvalidAnswerError):
        driver.invoke(graph, Command(resume={age.id: bad}), thread())

    assert driver.call(graph, "get_state", thread()).interrupts == (age, other)
    driver.invoke(graph, answer(other), thread())
    assert driver.invoke(graph, Command(resume={"age": 7}), thread())["log"] == ["asked", 7, "OTHER?"]


# ── What comes with a question ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("durability", DURABILITIES)
def test_update_that_comes_with_a_question_inside_is_committed_once(
    driver: Driver, store: Store, world: World, durability: str
):
    nodes = {"a": world.asks("a", update={"log": ["a asked"]}), "b": world.asks("b", update={"log": ["b asked"]})}
    graph = nested(side_by_side(State, nodes), 2, checkpointer=store, durability=durability)
    a, b = driver.invoke(graph, {}, thread()).interrupts
    paused = innermost(driver.call(graph, "get_state", thread(), subgraphs=True))

    driver.invoke(graph, answer(b), thread())
    result = driver.invoke(graph, answer(a), thread())

    assert paused.values["log"] == ["a asked", "b asked"]
    assert result["log"] == ["a asked", "b asked", "A?", "B?"]


def asks_by_returning(driver: Driver, name: str) -> Any:
    return driver.node(lambda state: [{"log": [name]}, Interrupt(f"{name}?")])


def tells_the_answer(driver: Driver) -> Any:
    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"log": [runtime.resume_value]}

    return driver.node(node)


def test_question_returned_inside_a_subgraph_is_told_to_the_node_after_it(driver: Driver, store: Store):
    inner = in_a_row(State, {"a": asks_by_returning(driver, "a"), "b": tells_the_answer(driver)})
    graph = nested(inner, 2, checkpointer=store)
    asked = driver.invoke(graph, {}, thread()).interrupts

    result = driver.invoke(graph, answer(*asked), thread())

    assert result["log"] == ["a", "A?"]


def test_questions_returned_inside_by_two_nodes_and_answered_one_by_one_are_both_told(driver: Driver, store: Store):
    inner = StateGraph(State)
    for name in "ab":
        inner.add_node(name, asks_by_returning(driver, name)).add_edge(START, name)
    inner.add_node("after", tells_the_answer(driver)).add_edge(["a", "b"], "after")
    graph = one_node(State, inner.compile(), checkpointer=store)
    a, b = driver.invoke(graph, {}, thread()).interrupts

    driver.invoke(graph, answer(a), thread())
    result = driver.invoke(graph, answer(b), thread())

    assert result["log"] == ["a", "b", {"a": "A?", "b": "B?"}]


def test_question_returned_by_the_last_node_inside_pauses_before_the_graph_around_goes_on(
    driver: Driver, store: Store, world: World
):
    inner = one_node(State, asks_by_returning(driver, "a"))
    graph = in_a_row(State, {"inner": inner, "then": world.says("then")}, checkpointer=store)
    asked = driver.invoke(graph, {}, thread())
    assert world.take_runs() == []

    result = driver.invoke(graph, answer(*asked.interrupts), thread())

    assert result["log"] == ["a", "then"]


def test_node_that_swallows_the_pause_of_a_graph_that_it_called_is_told_so(driver: Driver, store: Store, world: World):
    inner = one_node(State, world.asks("a"))

    def node(state: State) -> dict[str, Any]:
        try:
            return {"log": inner.invoke({})["log"]}
        except BaseException:  # noqa: BLE001 — this is what the test is about
            return {"log": ["nobody asked"]}

    async def anode(state: State) -> dict[str, Any]:
        try:
            return {"log": (await inner.ainvoke({}))["log"]}
        except BaseException:  # noqa: BLE001 — as above
            return {"log": ["nobody asked"]}

    graph = one_node(State, node if driver.name == "sync" else anode, checkpointer=store)

    with pytest.raises(InterruptSwallowedError):
        driver.invoke(graph, {}, thread())
