"""What a question may carry: a schema for its answer, an update for the state; and questions that a node returns."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest

from bide import END, START, Command, CompiledGraph, Interrupt, Runtime, StateGraph, Store, interrupt
from bide.errors import InterruptError, InvalidAnswerError, InvalidUpdateError
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    way: str


@dataclass
class Refund:
    amount: int
    reason: str = ""


class Verdict(TypedDict):
    verdict: Literal["yes", "no"]


class Booking(pydantic.BaseModel):
    first: int
    last: int

    @pydantic.model_validator(mode="after")
    def in_order(self) -> Booking:
        if self.first > self.last:
            raise ValueError("first comes after last")
        return self


WHOLE_NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def resume(graph: CompiledGraph, answer: Any) -> Any:
    return graph.invoke(Command(resume=answer), thread())


def asking_for(shape: Any, store: Store, seen: list[Any], name: str = "node") -> CompiledGraph:
    def node(state: Log) -> Log:
        seen.append(interrupt("?", response_schema=shape))
        return {"log": ["answered"]}

    return one_node(Log, node, checkpointer=store)


# ── A schema for the answer ────────────────────────────────────────────────────────────────────────────────────────

SHAPES = [
    (WHOLE_NUMBER, {"n": 0}, {"n": 2}, {"n": 2}),
    (Refund, {"amount": "much"}, {"amount": 5}, Refund(5)),
    (Verdict, {"verdict": "perhaps"}, {"verdict": "no"}, {"verdict": "no"}),
    (Booking, {"first": 1}, {"first": 1, "last": 2}, Booking(first=1, last=2)),
]


@pytest.mark.parametrize(("shape", "bad", "good", "built"), SHAPES, ids=["json", "dataclass", "typeddict", "pydantic"])
def test_answer_of_another_shape_leaves_the_question_open_and_the_right_one_is_built(
    store: Store, shape: Any, bad: Any, good: Any, built: Any
):
    seen: list[Any] = []
    graph = asking_for(shape, store, seen)
    asked = graph.invoke({"log": []}, thread()).interrupts

    with pytest.raises(InvalidAnswerError, match="still open"):
        resume(graph, bad)
    still_open = graph.get_state(thread()).interrupts
    done = resume(graph, {asked[0].id: good})

    assert still_open == asked
    assert seen == [built]
    assert done.is_complete


@pytest.mark.parametrize("shape", [WHOLE_NUMBER, Refund, Verdict, Booking])
def test_schema_travels_with_the_question_as_json_schema(store: Store, shape: Any):
    graph = asking_for(shape, store, [])
    graph.invoke({"log": []}, thread())

    shown = graph.get_state(thread()).interrupts[0].response_schema

    assert shown["type"] == "object"
    assert set(shown["required"]) <= set(shown["properties"])


def test_bad_answer_beside_a_good_one_spoils_both(store: Store):
    nodes = {name: lambda state: {"log": [interrupt("?", response_schema=WHOLE_NUMBER)]} for name in "ab"}
    graph = side_by_side(Log, nodes, checkpointer=store)
    ids = [question.id for question in graph.invoke({"log": []}, thread()).interrupts]

    with pytest.raises(InvalidAnswerError):
        resume(graph, {ids[0]: {"n": 1}, ids[1]: {"n": "one"}})

    assert len(graph.get_state(thread()).interrupts) == 2


def test_answer_that_only_the_class_itself_refuses_opens_the_question_again(store: Store):
    seen: list[Any] = []
    graph = asking_for(Booking, store, seen)
    asked = graph.invoke({"log": []}, thread()).interrupts

    with pytest.raises(InvalidAnswerError, match="first comes after last"):
        resume(graph, {"first": 3, "last": 1})
    still_open = graph.get_state(thread())
    done = resume(graph, {"first": 1, "last": 3})

    assert still_open.interrupts == asked
    assert still_open.next == ("node",)
    assert seen == [Booking(first=1, last=3)]
    assert done["log"] == ["answered"]


def test_answer_refused_by_its_class_does_not_undo_a_sibling_that_was_answered_well(store: Store):
    def ask(key: str) -> Callable[[Log], Log]:
        def node(state: Log) -> Log:
            booking = interrupt("?", response_schema=Booking)
            return {"log": [f"{key} {booking.first}-{booking.last}"]}

        return node

    graph = side_by_side(Log, {"a": ask("a"), "b": ask("b")}, checkpointer=store)
    ids = [question.id for question in graph.invoke({"log": []}, thread()).interrupts]

    with pytest.raises(InvalidAnswerError, match="first comes after last"):
        resume(graph, {ids[0]: {"first": 1, "last": 2}, ids[1]: {"first": 4, "last": 3}})
    open_ids = [question.id for question in graph.get_state(thread()).interrupts]
    done = resume(graph, {"first": 3, "last": 4})

    assert open_ids == [ids[1]]
    assert done["log"] == ["a 1-2", "b 3-4"]


async def test_answer_is_checked_the_same_with_asyncio(store: Store):
    async def node(state: Log) -> Log:
        return {"log": [interrupt("?", response_schema=Refund).amount]}

    graph = one_node(Log, node, checkpointer=store)
    await graph.ainvoke({"log": []}, thread())

    with pytest.raises(InvalidAnswerError):
        await graph.ainvoke(Command(resume={"amount": "much"}), thread())

    assert (await graph.ainvoke(Command(resume={"amount": 7}), thread()))["log"] == [7]


# ── An update with the question ────────────────────────────────────────────────────────────────────────────────────


def test_update_is_committed_with_the_pause_and_once(store: Store):
    def node(state: Log) -> Log:
        first = interrupt("one?", update={"log": ["asked one"]})
        second = interrupt("two?", update={"log": ["asked two"]})
        return {"log": [first, second]}

    graph = one_node(Log, node, checkpointer=store)

    paused = graph.invoke({"log": []}, thread())
    looked = graph.invoke(None, thread())
    again = resume(graph, 1)
    done = resume(graph, 2)

    assert paused["log"] == looked["log"] == ["asked one"]
    assert again["log"] == ["asked one", "asked two"]
    assert done["log"] == ["asked one", "asked two", 1, 2]


def test_replayed_node_sees_the_update_that_it_gave_with_its_question(store: Store):
    seen = []

    def node(state: Log) -> None:
        seen.append(list(state["log"]))
        interrupt("?", update={"log": ["asked"]})

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())
    resume(graph, "yes")

    assert seen == [[], ["asked"]]


def test_updates_of_several_questions_in_a_step_are_merged_in_task_order(store: Store):
    nodes = {name: lambda state, name=name: interrupt("?", update={"log": [name]}) for name in "ba"}
    graph = side_by_side(Log, nodes, checkpointer=store)

    assert graph.invoke({"log": []}, thread())["log"] == ["a", "b"]


def test_update_with_an_unknown_key_is_an_error_that_names_the_node(store: Store):
    graph = one_node(Log, lambda state: interrupt("?", update={"lug": []}), checkpointer=store)

    with pytest.raises(InvalidUpdateError, match=r"'node'.*'lug'.*Did you mean 'log'"):
        graph.invoke({"log": []}, thread())

    assert graph.get_state(thread()).interrupts == ()


def test_state_changed_in_place_before_the_question_is_dropped(store: Store):
    def node(state: Log) -> None:
        state["log"].append("in place")
        state["way"] = "changed"
        interrupt("?")

    graph = one_node(Log, node, checkpointer=store)

    assert graph.invoke({"log": []}, thread()).value == {"log": []}
    assert resume(graph, 1).value == {"log": []}


# ── Questions that a node returns ──────────────────────────────────────────────────────────────────────────────────


def act(state: Log, runtime: Runtime[Any]) -> Log:
    return {"log": [f"act on {runtime.resume_value!r}"]}


def test_returned_question_finishes_the_node_and_its_answer_goes_to_the_next(store: Store):
    runs = []

    def ask(state: Log) -> Interrupt:
        runs.append("ask")
        return Interrupt("?")

    graph = in_a_row(Log, {"ask": ask, "act": act, "later": act}, checkpointer=store)
    paused = graph.invoke({"log": []}, thread())
    done = resume(graph, {"approved": True})

    assert (paused.interrupt_value, paused.next) == ("?", ("act",))
    assert done["log"] == ["act on {'approved': True}", "act on None"], "the answer is for the node after the question"
    assert runs == ["ask"]


def test_update_beside_a_returned_question_is_kept(store: Store):
    graph = in_a_row(Log, {"ask": lambda state: [{"log": ["asked"]}, Interrupt("?")], "act": act}, checkpointer=store)

    paused = graph.invoke({"log": []}, thread())

    assert paused["log"] == ["asked"]
    assert resume(graph, 1)["log"] == ["asked", "act on 1"]


def test_returned_question_of_the_last_node_is_answered_and_then_the_run_is_done(store: Store):
    graph = one_node(Log, lambda state: Interrupt("happy?"), checkpointer=store)

    paused = graph.invoke({"log": []}, thread())
    done = resume(graph, "yes")

    assert (paused.is_interrupted, paused.next) == (True, ())
    assert done.is_complete


def routed(store: Store) -> CompiledGraph:
    """A question, and a way that depends on state at the time of the answer."""
    builder = StateGraph(Log).add_node("ask", lambda state: Interrupt("?")).add_edge(START, "ask")
    for name in ("go", "stop"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    builder.add_conditional_edges("ask", lambda state: state.get("way", "go"), ["go", "stop"])
    return builder.compile(store)


def test_way_after_a_returned_question_is_chosen_when_it_is_answered(store: Store):
    graph = routed(store)
    paused = graph.invoke({"log": []}, thread())

    done = graph.invoke(Command(resume="no", update={"way": "stop"}), thread())

    assert paused.next == ("go",)
    assert done["log"] == ["stop"]


def test_edge_sees_the_answer_itself_when_it_chooses_the_way(store: Store):
    def by_answer(state: Log, runtime: Runtime[Any]) -> str:
        return "go" if runtime.resume_value == "yes" else END

    builder = StateGraph(Log).add_node("ask", lambda state: Interrupt("?")).add_edge(START, "ask")
    builder.add_node("go", lambda state: {"log": ["gone"]})
    builder.add_conditional_edges("ask", by_answer)
    graph = builder.compile(store)

    results = []
    for name, answer in (("one", "yes"), ("two", "no")):
        graph.invoke({"log": []}, thread(name))
        results.append(graph.invoke(Command(resume=answer), thread(name))["log"])

    assert results == [["gone"], []]


def test_questions_returned_by_several_nodes_are_all_needed_before_the_next_step(store: Store):
    nodes = {name: lambda state, name=name: Interrupt(name) for name in "ab"}
    graph = side_by_side(Log, nodes, checkpointer=store)
    ids = [question.id for question in graph.invoke({"log": []}, thread()).interrupts]

    partly = resume(graph, {ids[1]: "b"})
    done = resume(graph, {ids[0]: "a"})

    assert [question.value for question in partly.interrupts] == ["a"]
    assert done.is_complete


def test_answers_to_questions_returned_by_several_nodes_all_reach_the_next_one(store: Store):
    builder = StateGraph(Log).add_node(act)
    for name in "ab":
        builder.add_node(name, lambda state, name=name: Interrupt(name)).add_edge(START, name)
    graph = builder.add_edge(["a", "b"], "act").compile(store)
    paused = graph.invoke({"log": []}, thread())

    done = resume(graph, {question.id: f"to {question.value}" for question in paused.interrupts})

    assert "to a" in done["log"][0]
    assert "to b" in done["log"][0]


def test_plain_continue_does_not_answer_a_returned_question(store: Store):
    graph = in_a_row(Log, {"ask": lambda state: Interrupt("?"), "act": act}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    looked = graph.invoke(None, thread())

    assert looked.is_interrupted
    assert looked["log"] == []


def test_returned_question_has_a_schema_that_its_answer_must_fit(store: Store):
    asked = Interrupt("?", response_schema=WHOLE_NUMBER)
    graph = in_a_row(Log, {"ask": lambda state: asked, "act": act}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(InvalidAnswerError):
        resume(graph, {"n": "one"})

    assert resume(graph, {"n": 1})["log"] == ["act on {'n': 1}"]


# ── Questions in a conditional edge ────────────────────────────────────────────────────────────────────────────────


def ask_the_way(state: Log) -> str:
    return interrupt("which way?")


def test_conditional_edge_may_ask_which_way_to_go(store: Store):
    builder = StateGraph(Log).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a")
    builder.add_node("left", lambda state: {"log": ["left"]}).add_node("right", lambda state: {"log": ["right"]})
    graph = builder.add_conditional_edges("a", ask_the_way, ["left", "right"]).compile(store)

    paused = graph.invoke({"log": []}, thread())
    done = resume(graph, "right")

    assert paused.interrupt_value == "which way?"
    assert done["log"] == ["a", "right"]


def test_conditional_entry_that_asks_is_refused_and_does_not_end_in_silence(store: Store):
    builder = StateGraph(Log).add_node("left", lambda state: {"log": ["left"]})
    graph = builder.add_conditional_edges(START, ask_the_way, ["left"]).compile(store)

    with pytest.raises(InterruptError, match="ask_the_way"):
        graph.invoke({"log": []}, thread())


def test_edge_that_asks_after_a_returned_question_is_refused_and_does_not_end_in_silence(store: Store):
    builder = StateGraph(Log).add_node("a", lambda state: Interrupt("done?")).add_edge(START, "a")
    builder.add_node("left", lambda state: {"log": ["left"]})
    graph = builder.add_conditional_edges("a", ask_the_way, ["left"]).compile(store)
    graph.invoke({"log": []}, thread())
    resume(graph, "left")

    with pytest.raises(InterruptError, match="ask_the_way"):
        resume(graph, "yes, done")

    assert graph.get_state(thread()).next == ("left",)
