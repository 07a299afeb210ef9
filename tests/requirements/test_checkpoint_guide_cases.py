"""Pauses where they are easy to get wrong: twice at one node, in parallel branches, in nested values."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Interrupt, Send, StateGraph, interrupt
from bide.errors import (
    GraphChanged,
)
from tests.requirements.graphs import Line, Work, answer, in_line, thread


class Fan:
    """split → left, right → join: two branches and a node that waits for both."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def split(self, state: Work) -> None:
        self.ran.append("split")

    def left(self, state: Work) -> dict[str, Any]:
        self.ran.append("left")
        return {"found": ["left"]}

    def right(self, state: Work) -> dict[str, Any]:
        self.ran.append("right")
        return {"found": ["right"]}

    def join(self, state: Work) -> dict[str, Any]:
        self.ran.append("join")
        return {"joined": list(state["found"])}

    def graph(self) -> StateGraph:
        graph = StateGraph(Work)
        for node in (self.split, self.left, self.right, self.join):
            graph.add_node(node)
        graph.set_entry_point("split").add_edge("split", "left").add_edge("split", "right")
        return graph.add_edge(["left", "right"], "join").set_finish_point("join")


# ── One node, several pauses ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-06", "T2-07")
def test_node_in_both_lists_pauses_twice_and_runs_once(store):
    line = Line()
    graph = line.graph().compile(store, interrupt_before=["b"], interrupt_after=["b"])
    stops = []
    for given in ({"value": 1}, None, None):
        result = graph.invoke(given, thread("work"))
        stops.append((result.status, result.next, list(line.ran)))

    assert stops == [
        ("waiting", ("b",), ["a"]),
        ("waiting", ("c",), ["a", "b"]),
        ("done", (), ["a", "b", "c"]),
    ]


@pytest.mark.requirement("T2-06", "T2-07")
def test_node_that_also_asks_pauses_before_inside_and_after(store):
    ran = []

    def ask(state: Work) -> dict[str, Any]:
        ran.append("ask")
        return {"joined": [interrupt("Which?")]}

    graph = in_line(Work, ask, Line().c).compile(store, interrupt_before=["ask"], interrupt_after=["ask"])
    before = graph.invoke({"value": 1}, thread("work"))
    inside = graph.invoke(None, thread("work"))
    after = graph.invoke(Command(resume="this"), thread("work"))
    done = graph.invoke(None, thread("work"))

    assert [before.interrupt_value, inside.interrupt_value, after.interrupt_value] == [None, "Which?", None]
    assert [before.next, inside.next, after.next, done.next] == [("ask",), ("ask",), ("c",), ()]
    assert ran == ["ask", "ask"]
    assert done["joined"] == ["this"]


@pytest.mark.requirement("T2-06")
def test_pause_fires_again_when_the_node_is_visited_again(store):
    def count(state: Work) -> dict[str, Any]:
        return {"value": state["value"] + 1}

    graph = StateGraph(Work).add_node(count).set_entry_point("count")
    graph.add_conditional_edges("count", lambda state: "count" if state["value"] < 3 else "__end__")
    compiled = graph.compile(store, interrupt_before=["count"])
    values = [compiled.invoke({"value": 0}, thread("work"))["value"]]
    while compiled.get_state(thread("work")).next:
        values.append(compiled.invoke(None, thread("work"))["value"])

    assert values == [0, 1, 2, 3]


@pytest.mark.requirement("T2-10")
def test_every_pause_needs_its_own_resume(store):
    line = Line()
    graph = line.graph().compile(store, interrupt_before=["b", "c"])
    first = graph.invoke({"value": 1})

    second = graph.invoke(None, checkpoint=first.checkpoint_id)
    done = graph.invoke(None, checkpoint=second.checkpoint_id)

    assert [first.next, second.next, done.next] == [("b",), ("c",), ()]
    assert line.ran == ["a", "b", "c"]


@pytest.mark.requirement("T2-07")
def test_node_that_returns_its_question_is_not_run_again(store):
    line = Line()

    def gate(state: Work) -> list[Any]:
        line.ran.append("gate")
        return [{"found": ["gate"]}, Interrupt("Go on?")]

    graph = in_line(Work, line.a, gate, line.c).compile(store)
    paused = graph.invoke({"value": 1}, thread("work"))

    done = graph.invoke(Command(resume=True), thread("work"))

    assert paused.interrupt_value == "Go on?"
    assert paused["found"] == ["a", "gate"]
    assert line.ran == ["a", "gate", "c"]
    assert done["found"] == ["a", "gate", "c"]


# ── Parallel branches ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-07")
def test_pause_after_a_node_that_fans_out_resumes_every_branch_and_their_join(store):
    fan = Fan()
    graph = fan.graph().compile(store, interrupt_after=["split"])
    paused = graph.invoke({"value": 1}, thread("work"))

    done = graph.invoke(None, thread("work"))

    assert paused.next == ("left", "right")
    assert sorted(fan.ran) == ["join", "left", "right", "split"]
    assert done["joined"] == ["left", "right"]


@pytest.mark.requirement("T2-06")
def test_pause_before_one_branch_is_kept_and_each_branch_runs_once(store):
    fan = Fan()
    graph = fan.graph().compile(store, interrupt_before=["right"])
    paused = graph.invoke({"value": 1}, thread("work"))

    done = graph.invoke(None, thread("work"))

    assert paused.is_interrupted
    assert sorted(fan.ran) == ["join", "left", "right", "split"]
    assert done["joined"] == ["left", "right"]


@pytest.mark.requirement("T2-07")
def test_pause_after_one_branch_is_kept_and_each_branch_runs_once(store):
    fan = Fan()
    graph = fan.graph().compile(store, interrupt_after=["left"])
    paused = graph.invoke({"value": 1}, thread("work"))

    done = graph.invoke(None, thread("work"))

    assert paused.next == ("join",)
    assert paused["found"] == ["left", "right"]
    assert sorted(fan.ran) == ["join", "left", "right", "split"]
    assert done["joined"] == ["left", "right"]


@pytest.mark.requirement("T2-14")
def test_question_inside_a_branch_pauses_and_its_finished_sibling_never_runs_again(open_file):
    fan = Fan()

    def right(state: Work) -> dict[str, Any]:
        fan.ran.append("right")
        return {"found": [f"right {interrupt('Which way?')}"]}

    fan.right = right
    paused = fan.graph().compile(open_file()).invoke({"value": 1}, thread("work"))

    done = fan.graph().compile(open_file()).invoke(Command(resume="up"), thread("work"))

    assert paused.interrupt_value == "Which way?"
    assert paused.next == ("right",)
    assert sorted(fan.ran) == ["join", "left", "right", "right", "split"]
    assert done["joined"] == ["left", "right up"]


@pytest.mark.requirement("T2-14")
def test_questions_of_several_branches_are_answered_in_any_order_and_the_unanswered_is_not_run(store):
    ran = []

    def ask(arg: dict[str, Any]) -> dict[str, Any]:
        ran.append(arg["who"])
        return {"found": [f"{arg['who']} says {interrupt(arg['who'] + '?')}"]}

    graph = StateGraph(Work).add_node("ask", ask).add_node("join", Fan().join).set_finish_point("join")
    graph.set_conditional_entry_point(lambda state: [Send("ask", {"who": who}) for who in ("ada", "ben", "cy")])
    compiled = graph.add_edge("ask", "join").compile(store)
    ada, ben, cy = compiled.invoke({"value": 1}, thread("work")).interrupts
    ran.clear()

    partly = compiled.invoke(answer(cy, "no"), thread("work"))
    ran_partly = list(ran)
    done = compiled.invoke(Command(resume={ada.id: "yes", ben.id: "maybe"}), thread("work"))

    assert [question.value for question in (ada, ben, cy)] == ["ada?", "ben?", "cy?"]
    assert partly.interrupts == (ada, ben)
    assert ran_partly == ["cy"]
    assert sorted(ran) == ["ada", "ben", "cy"]
    assert done["joined"] == ["ada says yes", "ben says maybe", "cy says no"]


@pytest.mark.requirement("T2-14")
def test_open_questions_come_in_task_order_wherever_they_are_looked_at(store):
    def ask(arg: dict[str, Any]) -> None:
        interrupt(arg["number"])

    graph = StateGraph(Work).add_node("ask", ask)
    graph.set_conditional_entry_point(lambda state: [Send("ask", {"number": number}) for number in range(8)])
    compiled = graph.compile(store)
    first = compiled.invoke({"value": 1}, thread("work"))

    again = compiled.invoke(None, thread("work"))
    snapshot = compiled.get_state(thread("work"))

    assert [question.value for question in first.interrupts] == list(range(8))
    assert again.interrupts == first.interrupts
    assert snapshot.interrupts == first.interrupts


@pytest.mark.requirement("T2-06", "T2-14")
@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_pause_at_the_join_is_kept_after_an_earlier_resume(store, how):
    fan = Fan()
    graph = fan.graph().compile(store, interrupt_before=["join"], interrupt_after=["split"])
    graph.invoke({"value": 1}, thread("work"))

    if how == "invoke":
        graph.invoke(None, thread("work"))
    else:
        *_, last = graph.stream(None, thread("work"), stream_mode="updates")
        assert last == {"__interrupt__": ()}
    at_join = graph.get_state(thread("work"))
    ran_by_then = sorted(fan.ran)
    done = graph.invoke(None, thread("work"))

    assert at_join.next == ("join",)
    assert at_join.values["found"] == ["left", "right"]
    assert ran_by_then == ["left", "right", "split"]
    assert done["joined"] == ["left", "right"]


@pytest.mark.requirement("T2-14")
def test_checkpoint_after_the_join_holds_what_every_branch_found(open_file):
    paused = Fan().graph().compile(open_file(), interrupt_after=["join"]).invoke({"value": 1}, thread("work"))

    saved = Fan().graph().compile(open_file()).get_state(thread("work"))

    assert paused.is_interrupted
    assert saved.values == {"value": 1, "found": ["left", "right"], "joined": ["left", "right"]}


# ── What is saved is what was there ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-14")
def test_changing_what_went_in_or_came_out_does_not_change_what_was_saved(store):
    graph = Line().graph().compile(store, interrupt_before=["b"])
    given = {"value": 1, "nested": {"deep": [1]}}
    paused = graph.invoke(given, thread("work"))

    given["nested"]["deep"].append("changed by the caller")
    paused["nested"]["deep"].append("changed in the result")
    graph.get_state(thread("work")).values["nested"]["deep"].append("changed in a snapshot")
    done = graph.invoke(None, thread("work"))

    assert done["nested"] == {"deep": [1]}


@pytest.mark.requirement("T2-14")
def test_nested_change_that_a_node_does_not_return_is_not_part_of_the_pause(store):
    def meddle(state: Work) -> None:
        state["nested"]["deep"].append("changed in place")

    graph = in_line(Work, meddle, Line().b).compile(store, interrupt_before=["b"])

    paused = graph.invoke({"value": 1, "nested": {"deep": [1]}}, thread("work"))

    assert paused["nested"] == graph.get_state(thread("work")).values["nested"] == {"deep": [1]}


@pytest.mark.requirement("T2-14")
def test_nested_change_of_one_node_is_not_seen_by_the_next_unless_it_was_returned(store):
    def meddle(state: Work) -> None:
        state["nested"]["deep"].append("changed in place")

    def look(state: Work) -> dict[str, Any]:
        return {"found": [str(state["nested"]["deep"])]}

    graph = in_line(Work, meddle, look).compile(store)

    done = graph.invoke({"value": 1, "nested": {"deep": [1]}}, thread("work"))

    assert done["found"] == ["[1]"]


@pytest.mark.requirement("T2-07")
def test_graph_compiled_anew_with_other_options_repeats_nothing(open_file):
    line = Line()
    line.graph().compile(open_file(), interrupt_after=["a"]).invoke({"value": 1}, thread("work"))

    later = line.graph().compile(open_file(), interrupt_before=["c"]).invoke(None, thread("work"))
    ran_by_then = list(line.ran)
    done = line.graph().compile(open_file()).invoke(None, thread("work"))

    assert later.next == ("c",)
    assert ran_by_then == ["a", "b"]
    assert line.ran == ["a", "b", "c"]
    assert done["found"] == ["a", "b", "c"]


@pytest.mark.requirement("T2-10")
def test_checkpoint_of_a_node_that_the_graph_lost_is_an_error_that_names_it(open_file):
    line = Line()
    paused = line.graph().compile(open_file(), interrupt_before=["b"]).invoke({"value": 1}, thread("work"))

    with pytest.raises(GraphChanged, match="'b'"):
        in_line(Work, line.a, line.c).compile(open_file()).invoke(None, checkpoint=paused.checkpoint_id)

    assert line.ran == ["a"]
    assert line.graph().compile(open_file()).invoke(None, thread("work"))["found"] == ["a", "b", "c"]
