"""`interrupt_before` and `interrupt_after` of a graph that is part of another."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Store
from tests.drivers import Driver
from tests.nested.world import State, World, innermost
from tests.threads import in_a_row, one_node, side_by_side, thread


def legs(driver: Driver, graph: Any, world: World) -> list[list[str]]:
    """Go on past every pause; return what ran between them."""
    result = driver.invoke(graph, {}, thread())
    ran = [world.take_runs()]
    while result.is_interrupted:
        result = driver.invoke(graph, None, thread())
        ran.append(world.take_runs())
    return ran


@pytest.mark.parametrize("keeps", ["store", True])
def test_subgraph_pauses_where_it_was_compiled_to_pause(driver: Driver, store: Store, world: World, keeps: Any):
    """A graph that is made to be a part of another is given the same store, or True; LangGraph asks for neither."""
    nodes = {"a": world.says("a"), "b": world.says("b"), "c": world.says("c")}
    inner = in_a_row(
        State, nodes, checkpointer=store if keeps == "store" else True, interrupt_before=["b"], interrupt_after=["b"]
    )
    graph = one_node(State, one_node(State, inner), checkpointer=store)

    assert legs(driver, graph, world) == [["a"], ["b"], ["c"]]


def test_pauses_of_subgraphs_side_by_side_are_passed_together(driver: Driver, store: Store, world: World):
    def part(name: str) -> Any:
        nodes = {"x": world.says(f"{name}x"), "y": world.says(f"{name}y")}
        return in_a_row(State, nodes, checkpointer=True, interrupt_before=["y"])

    graph = side_by_side(State, {"a": part("a"), "b": part("b")}, checkpointer=store)

    assert legs(driver, graph, world) == [["ax", "bx"], ["ay", "by"]]
    assert driver.call(graph, "get_state", thread()).values["log"] == ["ax", "ay", "bx", "by"]


def test_pause_after_the_last_node_inside_is_passed_without_running_it_again(
    driver: Driver, store: Store, world: World
):
    inner = one_node(State, world.says("a"), checkpointer=True, interrupt_after="*")
    graph = in_a_row(State, {"inner": inner, "then": world.says("then")}, checkpointer=store)

    assert legs(driver, graph, world) == [["a"], ["then"]]


def test_pause_asked_for_by_the_call_counts_for_the_outer_graph_only(driver: Driver, store: Store, world: World):
    graph = in_a_row(State, {"inner": one_node(State, world.says("a"))}, checkpointer=store)

    held = driver.invoke(graph, {}, thread(), interrupt_before="*")
    done = driver.invoke(graph, None, thread(), interrupt_after="*")

    assert held.is_interrupted
    assert world.take_runs() == ["a"]
    assert done.is_interrupted
    assert driver.invoke(graph, None, thread())["log"] == ["a"]


def test_static_pause_and_a_question_beside_it_are_settled_by_one_answer(driver: Driver, store: Store, world: World):
    held = in_a_row(State, {"x": world.says("x"), "y": world.says("y")}, checkpointer=True, interrupt_before=["y"])
    graph = side_by_side(State, {"held": held, "inner": one_node(State, world.asks("q"))}, checkpointer=store)
    paused = driver.invoke(graph, {}, thread())
    assert [question.value for question in paused.interrupts] == ["q?"]
    assert innermost(driver.call(graph, "get_state", thread(), subgraphs=True)).next == ("y",)

    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert result["log"] == ["x", "y", "yes"]
