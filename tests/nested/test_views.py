"""Looking into graphs inside graphs, editing them, and going back in time through them."""

from __future__ import annotations

from typing import Any

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt
from bide.errors import BideError, NotWaitingError, UnknownCheckpointError
from tests.drivers import Driver
from tests.nested.world import State, World, innermost, nested, values_of
from tests.threads import in_a_row, one_node, side_by_side, thread


def place_of(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a graph inside, without a checkpoint of it."""
    inner = config["configurable"]
    return {"configurable": {"thread_id": inner["thread_id"], "checkpoint_ns": inner["checkpoint_ns"]}}


def two_levels(world: World, store: Store) -> CompiledGraph:
    """Two nodes, and then a graph in a graph, which says `a1`, asks, and says `a2`."""
    nodes = {"one": world.says("one"), "two": world.says("two"), "deep": one_node(State, world.asker("a"))}
    return in_a_row(State, nodes, checkpointer=store)


def test_snapshot_shows_every_level_while_a_question_is_open(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    asked = driver.invoke(graph, {}, thread()).interrupts

    plain = driver.call(graph, "get_state", thread())
    whole = driver.call(graph, "get_state", thread(), subgraphs=True)
    levels = [whole, whole.tasks[0].state, innermost(whole)]

    assert plain.tasks[0].state == place_of(levels[1].config)
    assert [level.next for level in levels] == [("deep",), ("node",), ("a",)]
    assert [level.values["log"] for level in levels] == [["one", "two"], ["one", "two"], ["one", "two", "a1"]]
    assert [level.interrupts for level in levels] == [asked, asked, asked]
    assert all(level.tasks[0].interrupts == asked for level in levels)


def test_config_of_every_level_leads_back_to_it(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    whole = driver.call(graph, "get_state", thread(), subgraphs=True)

    for level in (whole.tasks[0].state, innermost(whole)):
        for config in (level.config, place_of(level.config)):
            found = driver.call(graph, "get_state", config)

            assert (found.values, found.next, found.interrupts) == (level.values, level.next, level.interrupts)
            assert found.config == level.config


def test_history_of_a_graph_inside_is_its_own(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    place = place_of(innermost(driver.call(graph, "get_state", thread(), subgraphs=True)).config)
    driver.invoke(graph, Command(resume="yes"), thread())

    history = driver.call(graph, "get_state_history", place)

    said = ["one", "two", "a1", "yes", "a2"]
    assert [(past.values["log"], past.next) for past in history] == [
        (said, ()),
        (said[:4], ("a2",)),
        (said[:3], ("a",)),
        (said[:2], ("a1",)),
    ]
    assert [values_of(past.interrupts) for past in history] == [[], [], ["a?"], []]
    assert all(driver.call(graph, "get_state", past.config).values == past.values for past in history)


def test_history_of_the_outer_graph_leads_to_the_graphs_inside(driver: Driver, store: Store, world: World):
    """As in LangGraph, a task that is a graph has the config of its place as its state."""
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    place = driver.call(graph, "get_state", thread()).tasks[0].state
    driver.invoke(graph, Command(resume="yes"), thread())

    history = driver.call(graph, "get_state_history", thread())

    assert [past.tasks[0].state for past in history if past.next == ("deep",)] == [place]


def test_place_that_does_not_exist_is_told_and_nothing_is_written(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    before = driver.call(graph, "get_state", thread())

    for ns in ("nowhere:1", "deep:99", "deep:3|node:99"):
        with pytest.raises(UnknownCheckpointError):
            driver.call(graph, "update_state", {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}, {"name": "x"})

    assert driver.call(graph, "get_state", thread()) == before


# ── Editing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_a_name(driver: Driver, world: World, store: Store) -> tuple[CompiledGraph, dict[str, Any]]:
    """A graph two levels down that says `a`, asks and tells the name in its state, and says `z`; it waits."""

    def ask(state: State) -> dict[str, Any]:
        world.run("ask")
        return {"log": [interrupt("q?"), state.get("name")]}

    inner = in_a_row(State, {"a": world.says("a"), "ask": driver.node(ask), "z": world.says("z")})
    graph = nested(inner, 2, checkpointer=store)
    driver.invoke(graph, {}, thread())
    return graph, innermost(driver.call(graph, "get_state", thread(), subgraphs=True)).config


def test_edit_of_a_graph_inside_keeps_its_question_and_the_outer_state(driver: Driver, store: Store, world: World):
    graph, config = with_a_name(driver, world, store)
    asked = driver.call(graph, "get_state", thread()).interrupts

    edited = driver.call(graph, "update_state", config, {"name": "Ada"})

    assert driver.call(graph, "get_state", edited).values["name"] == "Ada"
    assert driver.call(graph, "get_state", thread()).interrupts == asked
    assert "name" not in driver.call(graph, "get_state", thread()).values
    assert driver.invoke(graph, Command(resume="yes"), thread())["log"] == ["a", "yes", "Ada", "z"]


EDITS: list[tuple[str, list[Any], list[str]]] = [
    ("a", ["a", "yes", "Ada", "z"], ["ask", "z"]),
    ("ask", ["a", "z"], ["z"]),
    (END, ["a"], []),
]


@pytest.mark.parametrize(("as_node", "log", "ran"), EDITS)
def test_edit_of_a_graph_inside_as_one_of_its_nodes_moves_it(
    driver: Driver, store: Store, world: World, as_node: str, log: list[Any], ran: list[str]
):
    graph, config = with_a_name(driver, world, store)
    world.take_runs()

    driver.call(graph, "update_state", config, {"name": "Ada"}, as_node=as_node)
    with pytest.raises(NotWaitingError):
        driver.invoke(graph, Command(resume="yes"), thread())
    result = driver.invoke(graph, None, thread())
    if result.is_interrupted:
        world.take_runs()
        result = driver.invoke(graph, Command(resume="yes"), thread())

    assert (result["log"], result["name"]) == (log, "Ada")
    assert world.take_runs() == ran
    assert store.open_waits() == []


# ── Going back in time ─────────────────────────────────────────────────────────────────────────────────────────────


def test_going_back_before_a_subgraph_runs_it_anew_and_asks_anew(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    old = driver.invoke(graph, {}, thread()).interrupts[0]
    before = driver.call(graph, "get_state", thread()).config
    driver.invoke(graph, Command(resume="yes"), thread())
    world.take_runs()

    again = driver.invoke(graph, None, before)
    result = driver.invoke(graph, Command(resume="no"), thread())

    assert again.interrupts[0].id != old.id
    assert result["log"] == ["one", "two", "a1", "no", "a2"]
    assert world.take_runs() == ["a", "a", "a1", "a2"]


def test_fork_with_another_answer_to_a_question_inside(driver: Driver, store: Store, world: World):
    graph = two_levels(world, store)
    asked = driver.invoke(graph, {}, thread()).interrupts[0]
    then = driver.call(graph, "get_state", thread()).config
    driver.invoke(graph, Command(resume="yes"), thread())

    branch = driver.call(graph, "fork", then, answers={asked.id: "no"})
    result = driver.invoke(graph, None, branch)

    assert result["log"] == ["one", "two", "a1", "no", "a2"]


def test_checkpoint_of_a_graph_inside_is_never_taken_for_one_of_the_outer_graph(
    driver: Driver, store: Store, world: World
):
    """LangGraph goes on from there, inside. Whoever cannot do that must say so, and not go elsewhere."""
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    inside = innermost(driver.call(graph, "get_state", thread(), subgraphs=True)).config
    world.take_runs()

    try:
        result = driver.invoke(graph, None, inside)
    except BideError:
        result = None

    assert not {"one", "two"} & set(world.take_runs())
    assert result is None or values_of(result.interrupts) == ["a?"]
    assert driver.call(graph, "get_state", thread()).values["log"] == ["one", "two"]


def test_edit_of_a_graph_inside_a_step_that_is_over_is_refused_or_counts(driver: Driver, store: Store, world: World):
    """An edit that nothing will ever read must not look like one that was made."""
    graph = two_levels(world, store)
    driver.invoke(graph, {}, thread())
    inside = innermost(driver.call(graph, "get_state", thread(), subgraphs=True)).config
    driver.invoke(graph, Command(resume="yes"), thread())

    try:
        edited = driver.call(graph, "update_state", inside, {"name": "Ada"})
    except BideError:
        return

    assert driver.invoke(graph, None, edited).is_interrupted
    assert driver.invoke(graph, Command(resume="no"), thread())["name"] == "Ada"


def test_live_snapshot_counts_finished_branches_inside(driver: Driver, store: Store, world: World):
    inner = side_by_side(State, {"a": world.asks("a"), "b": world.says("b")})
    builder = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
    graph = builder.compile(checkpointer=store)
    driver.invoke(graph, {}, thread())

    inside = innermost(driver.call(graph, "get_state", thread(), subgraphs=True))

    assert inside.values["log"] == ["b"]
    assert inside.next == ("a",)
    assert [(task.name, task.result) for task in inside.tasks] == [("a", None), ("b", {"log": ["b"]})]
