"""Complaints 8, 14, 15, 20, 21 and 25: the same questions, inside graphs inside graphs.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.errors import AmbiguousResumeError
from tests.complaints.world import State, World, answer
from tests.threads import in_a_row, one_node, side_by_side, thread

DEPTHS = [1, 2, 3]


@pytest.fixture
def world() -> World:
    return World()


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


def asks_colour(state: State) -> dict[str, Any]:
    return {"colour": interrupt("Your colour?")}


def nested(inner: CompiledGraph, depth: int, **options: Any) -> CompiledGraph:
    """A graph inside a graph, as often as asked for."""
    for level in range(1, depth + 1):
        inner = one_node(State, inner, **(options if level == depth else {}))
    return inner


@pytest.mark.complaint(8)
@pytest.mark.parametrize("depth", DEPTHS)
def test_step_before_a_question_inside_a_subgraph_is_made_once(store: Store, world: World, depth: int):
    """There, a `@task` in this place ran again in releases before; on 1.2.20 it does not."""

    def pay(state: State) -> dict[str, Any]:
        return {"log": [step(world.do, "pay"), interrupt("Ship?")]}

    graph = nested(one_node(State, pay), depth, checkpointer=store)
    graph.invoke({}, thread())

    result = graph.invoke(Command(resume="yes"), thread())

    assert result["log"] == ["pay done", "yes"]
    assert world.effects == ["pay"]


@pytest.mark.complaint(15)
@pytest.mark.parametrize("depth", DEPTHS)
def test_one_answer_to_several_questions_of_a_subgraph_is_an_error_at_every_depth(store: Store, depth: int):
    """There, this was accepted until 1.2.20, and one of them got the answer."""
    inner = side_by_side(State, {"name": asks_name, "colour": asks_colour})
    graph = nested(inner, depth, checkpointer=store)
    asked = graph.invoke({}, thread()).interrupts

    with pytest.raises(AmbiguousResumeError):
        graph.invoke(Command(resume="Ada"), thread())

    assert sorted(question.value for question in asked) == ["Your colour?", "Your name?"]
    assert set(graph.get_state(thread()).interrupts) == set(asked)


@pytest.mark.complaint(14)
@pytest.mark.parametrize("depth", DEPTHS)
def test_questions_of_a_subgraph_come_in_the_same_order_everywhere(store: Store, depth: int):
    """There, `invoke` tells them in the order in which threads happen to finish, at every depth."""
    nodes = {f"node{number}": lambda state, number=number: interrupt(number) for number in range(8)}
    graph = nested(side_by_side(State, nodes), depth, checkpointer=store)

    result = graph.invoke({}, thread())

    assert [question.value for question in result.interrupts] == list(range(8))
    assert graph.get_state(thread()).interrupts == result.interrupts


@pytest.mark.complaint(1, 15)
def test_branch_of_a_subgraph_that_still_waits_is_not_run_again(store: Store, world: World):
    """There, answering one branch runs the other one again here too."""

    def asks(side: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            world.do(side)
            return {"log": [interrupt(f"{side}?")]}

        return node

    graph = nested(side_by_side(State, {"left": asks("left"), "right": asks("right")}), 2, checkpointer=store)
    left, right = graph.invoke({}, thread()).interrupts
    world.effects.clear()

    still_waiting = graph.invoke(answer(left, "yes"), thread())

    assert world.effects == ["left"]
    assert still_waiting.interrupts == (right,)
    assert sorted(graph.invoke(answer(right, "no"), thread())["log"]) == ["no", "yes"]


class Rounds:
    """A subgraph of three nodes, the second of which asks, in a loop of three rounds."""

    def __init__(self, world: World) -> None:
        self.world = world

    def before(self, state: State) -> dict[str, Any]:
        self.world.do("before")
        return {}

    def ask(self, state: State) -> dict[str, Any]:
        self.world.do("ask")
        return {"colour": interrupt(f"Colour of round {state['name']}?")}

    def after(self, state: State) -> dict[str, Any]:
        self.world.do(f"after {state['colour']}")
        return {}

    def graph(self, store: Store) -> CompiledGraph:
        inner = in_a_row(State, {"before": self.before, "ask": self.ask, "after": self.after})
        builder = StateGraph(State)
        builder.add_node("count", lambda state: {"name": state.get("name", 0) + 1}).add_node("inner", inner)
        builder.add_edge(START, "count").add_edge("count", "inner")
        builder.add_conditional_edges("inner", lambda state: "count" if state["name"] < 3 else END)
        return builder.compile(checkpointer=store)


@pytest.mark.complaint(20)
def test_subgraph_in_a_loop_neither_restarts_nor_skips_nor_reuses_an_answer(store: Store, world: World):
    """There, each of these happened in some release, and was mended shape by shape; on 1.2.20 this one is right."""
    graph = Rounds(world).graph(store)
    result = graph.invoke({}, thread())
    for colour in ("red", "green", "blue"):
        assert result.is_interrupted
        result = graph.invoke(Command(resume=colour), thread())

    assert result.is_complete
    assert world.effects == [
        effect for colour in ("red", "green", "blue") for effect in ("before", "ask", "ask", f"after {colour}")
    ]


@pytest.mark.complaint(20)
def test_list_that_a_subgraph_hands_back_is_not_added_to_itself(store: Store):
    """There, what the parent had said before is added once more with every visit of the subgraph."""
    inner = one_node(State, lambda state: {"log": ["inner"]})
    graph = in_a_row(State, {"first": lambda state: {"log": ["first"]}, "inner": inner}, checkpointer=store)

    assert graph.invoke({}, thread())["log"] == ["first", "inner"]


@pytest.mark.complaint(20)
def test_function_that_calls_a_graph_replays_and_the_graph_goes_on_where_it_was(store: Store, world: World):
    """There, the function runs again from its top, and the graph goes on: the same."""
    inner = in_a_row(State, {"work": lambda state: {"log": [world.do("work")]}, "ask": asks_name})

    def caller(state: State) -> dict[str, Any]:
        return {"name": inner.invoke({})["name"]}

    graph = one_node(State, caller, checkpointer=store)
    graph.invoke({}, thread())

    assert graph.invoke(Command(resume="Ada"), thread())["name"] == "Ada"
    assert world.effects == ["work"]


@pytest.mark.complaint(21)
@pytest.mark.parametrize("depth", DEPTHS)
def test_answer_with_the_id_of_the_checkpoint_does_not_restart_the_subgraph(store: Store, world: World, depth: int):
    """There, this restarted the subgraph until 1.2; a user interface always sends the id."""
    inner = in_a_row(State, {"work": lambda state: {"log": [world.do("work")]}, "ask": asks_name})
    graph = nested(inner, depth, checkpointer=store)
    question = graph.invoke({}, thread()).interrupts[0]

    result = graph.invoke(answer(question, "Ada"), graph.get_state(thread()).config)

    assert result["name"] == "Ada"
    assert world.effects == ["work"]


@pytest.mark.complaint(25)
def test_question_inside_a_subgraph_is_listed_and_told_live_like_any_other(store: Store):
    """There, user interfaces miss nested questions, since they are only in the state of a subgraph's own namespace."""
    graph = nested(one_node(State, asks_name), 2, checkpointer=store)

    told = list(graph.stream({}, thread()))[-1]["__interrupt__"]

    assert [question.value for question in told] == ["Your name?"]
    assert [wait.wait_id for wait in store.open_waits()] == [told[0].id]
    assert graph.get_state(thread()).interrupts == told
