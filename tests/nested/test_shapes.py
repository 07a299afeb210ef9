"""Graphs inside graphs, where nothing is asked and nothing fails: depth, loops, branches, schemas, commands."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from bide import END, START, Command, CompiledGraph, Send, StateGraph, Store
from tests.drivers import Driver
from tests.nested.world import State, World, nested
from tests.threads import in_a_row, one_node, side_by_side, thread

DEPTHS = [1, 2, 3]


@pytest.mark.parametrize("depth", DEPTHS)
def test_graph_as_a_node_hands_back_what_it_added(driver: Driver, store: Store, world: World, depth: int):
    inner = in_a_row(State, {"a": world.says("a"), "b": world.says("b")})
    graph = nested(inner, depth, checkpointer=store)

    result = driver.invoke(graph, {"log": ["outer"]}, thread())

    assert result["log"] == ["outer", "a", "b"]
    assert world.take_runs() == ["a", "b"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_graph_called_in_a_node_runs_at_any_depth(driver: Driver, store: Store, world: World, depth: int):
    graph = one_node(State, world.says("a"))
    for level in range(depth):
        graph = one_node(State, world.calls(f"call {level}", graph), checkpointer=store if level == depth - 1 else None)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["a"]


def test_graph_called_several_times_in_a_node_begins_anew_each_time(driver: Driver, store: Store, world: World):
    inner = one_node(State, world.says("a"))
    graph = one_node(State, world.calls("f", inner, inner, inner), checkpointer=store)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["a", "a", "a"]


def test_loop_over_a_subgraph_begins_anew_in_each_round(driver: Driver, store: Store, world: World):
    class Round(TypedDict, total=False):
        number: int
        own: int

    def count(state: Round) -> dict[str, Any]:
        return {"number": state["number"] + 1, "own": state.get("own", 0) + 1}

    inner = StateGraph(Round, output_schema=TypedDict("Out", {"number": int}))
    inner.add_node("count", driver.node(count)).add_edge(START, "count")
    outer = StateGraph(Round).add_node("round", inner.compile()).add_edge(START, "round")
    outer.add_conditional_edges("round", lambda state: "round" if state["number"] < 5 else END)

    result = driver.invoke(outer.compile(checkpointer=store), {"number": 0}, thread())

    assert result == {"number": 5}


def test_outer_state_without_a_key_that_the_subgraph_takes_is_no_error(driver: Driver, store: Store):
    """LangGraph runs the subgraph; it simply begins with nothing."""

    class Outer(TypedDict, total=False):
        topic: str
        result: str

    class Inner(TypedDict, total=False):
        result: str

    inner = one_node(Inner, driver.node(lambda state: {"result": "done"}))
    graph = one_node(Outer, inner, checkpointer=store)

    assert driver.invoke(graph, {"topic": "bees"}, thread()) == {"topic": "bees", "result": "done"}


def test_subgraph_keeps_its_private_keys_and_hands_back_its_output_only(driver: Driver, store: Store):
    class Wide(TypedDict, total=False):
        number: int
        secret: int

    class In(TypedDict):
        number: int

    class Out(TypedDict):
        number: int

    inner = StateGraph(Wide, input_schema=In, output_schema=Out)
    inner.add_node("first", driver.node(lambda state: {"secret": state["number"] * 10}))
    inner.add_node("second", driver.node(lambda state: {"number": state["secret"] + 1}))
    inner.add_edge(START, "first").add_edge("first", "second")
    graph = one_node(Wide, inner.compile(), checkpointer=store)

    assert driver.invoke(graph, {"number": 4, "secret": 7}, thread()) == {"number": 41, "secret": 7}


@dataclass
class Card:
    number: int = 0
    log: Annotated[list[Any], operator.add] = field(default_factory=list)


class Model(BaseModel):
    number: int = 0
    log: Annotated[list[Any], operator.add] = []


@pytest.mark.parametrize("outer_schema", [State, Card, Model])
@pytest.mark.parametrize("inner_schema", [State, Card, Model])
def test_schemas_of_different_kinds_meet(driver: Driver, store: Store, outer_schema: Any, inner_schema: Any):
    def read(state: Any) -> int:
        return state["number"] if isinstance(state, dict) else state.number

    inner = one_node(inner_schema, driver.node(lambda state: {"number": read(state) + 1, "log": ["inner"]}))
    graph = in_a_row(
        outer_schema,
        {"first": driver.node(lambda state: {"number": read(state) + 1, "log": ["first"]}), "inner": inner},
        checkpointer=store,
    )

    result = driver.invoke(graph, {"number": 1}, thread())

    assert (result["number"], result["log"]) == (3, ["first", "inner"])


def test_subgraphs_side_by_side_are_applied_in_the_order_of_their_names(driver: Driver, store: Store, world: World):
    nodes = {name: in_a_row(State, {"x": world.says(f"{name}x"), "y": world.says(f"{name}y")}) for name in "bac"}
    graph = side_by_side(State, nodes, checkpointer=store)

    result = driver.invoke(graph, {"log": ["in"]}, thread())

    assert result["log"] == ["in", "ax", "ay", "bx", "by", "cx", "cy"]


class Item(TypedDict, total=False):
    item: int
    log: Annotated[list[Any], operator.add]


class Said(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def of_items(driver: Driver) -> CompiledGraph:
    """A graph that takes an item, and tells of it."""
    builder = StateGraph(Item, output_schema=Said)
    builder.add_node("tell", driver.node(lambda state: {"log": [state["item"] * 10]})).add_edge(START, "tell")
    return builder.compile()


def test_subgraph_is_sent_several_times(driver: Driver, store: Store):
    builder = StateGraph(Item).add_node("worker", of_items(driver))
    builder.add_conditional_edges(START, lambda state: [Send("worker", {"item": item}) for item in range(4)])

    result = driver.invoke(builder.compile(checkpointer=store), {"log": ["in"]}, thread())

    assert result["log"] == ["in", 0, 10, 20, 30]


def test_sends_joins_and_deferred_nodes_work_inside_a_subgraph(driver: Driver, store: Store, world: World):
    inner = StateGraph(Item).add_node("worker", of_items(driver)).add_node("split", driver.node(lambda state: None))
    inner.add_node("left", world.says("left")).add_node("right", world.says("right"))
    inner.add_node("both", world.says("both")).add_node("last", world.says("last"), defer=True)
    inner.add_edge(START, "split").add_edge(START, "left").add_edge("left", "right")
    inner.add_conditional_edges("split", lambda state: [Send("worker", {"item": item}) for item in (1, 2)])
    inner.add_edge(["split", "right"], "both").add_edge("worker", "last")
    graph = one_node(State, inner.compile(), checkpointer=store)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["left", "right", 10, 20, "both", "last"]
    assert world.take_runs() == ["both", "last", "left", "right"]


# ── Commands to the graph around ───────────────────────────────────────────────────────────────────────────────────


def leads(driver: Driver, goto: Any) -> Any:
    """A node that tells the graph around its own where to go."""
    return driver.node(lambda state: Command(graph=Command.PARENT, goto=goto, update={"log": ["led"]}))


def around(inner: Any, world: World, **options: Any) -> CompiledGraph:
    """A graph with the node `inner`, and two nodes that nothing but a command leads to."""
    builder = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    builder.add_node("x", world.says("x")).add_node("y", world.says("y"))
    return builder.compile(**options)


TARGETS: list[tuple[Any, list[str]]] = [
    ("x", ["led", "x"]),
    (["x", "y"], ["led", "x", "y"]),
    ([Send("x", {}), Send("x", {})], ["led", "x", "x"]),
    (["y", Send("x", {})], ["led", "y", "x"]),
]


@pytest.mark.parametrize(("goto", "log"), TARGETS)
def test_command_to_the_parent_leads_the_graph_around(
    driver: Driver, store: Store, world: World, goto: Any, log: list[str]
):
    inner = in_a_row(State, {"first": world.says("dropped"), "lead": leads(driver, goto), "never": world.says("never")})
    graph = around(inner, world, checkpointer=store)

    result = driver.invoke(graph, {"log": ["in"]}, thread())

    assert result["log"] == ["in", *log]
    assert "never" not in world.take_runs()


def test_command_to_the_parent_from_two_levels_down_leads_the_graph_in_the_middle(
    driver: Driver, store: Store, world: World
):
    middle = around(one_node(State, leads(driver, "x")), world)
    graph = side_by_side(State, {"middle": middle, "sibling": world.says("sibling")}, checkpointer=store)

    result = driver.invoke(graph, {"log": ["in"]}, thread())

    assert result["log"] == ["in", "led", "x", "sibling"]


def test_command_to_the_parent_from_a_graph_that_a_node_calls_ends_that_node(
    driver: Driver, store: Store, world: World
):
    inner = one_node(State, leads(driver, "x"))
    graph = around(world.calls("f", inner, one_node(State, world.says("never"))), world, checkpointer=store)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == ["led", "x"]
    assert world.take_runs() == ["f", "x"]


def test_two_siblings_inside_may_both_lead_the_graph_around(driver: Driver, store: Store, world: World):
    inner = side_by_side(State, {"a": leads(driver, "x"), "b": leads(driver, "y"), "c": world.says("dropped")})
    graph = around(inner, world, checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["led", "led", "x", "y"]


def test_command_to_the_parent_waits_for_a_sibling_that_asks(driver: Driver, store: Store, world: World):
    inner = side_by_side(State, {"a": leads(driver, "x"), "b": world.asks("b")})
    graph = around(inner, world, checkpointer=store)
    assert driver.invoke(graph, {}, thread()).is_interrupted
    world.take_runs()

    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert result["log"] == ["led", "x"]
    assert world.take_runs() == ["b", "x"]
