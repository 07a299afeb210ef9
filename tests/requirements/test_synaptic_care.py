"""Synaptic's tests of cached and deferred nodes, with a clock that the test moves, and with joins that really wait."""

from __future__ import annotations

from typing import Any

import pytest

from bide import START, CachePolicy, Command, CompiledGraph, Send, StateGraph, Store, interrupt
from tests.drivers import Driver
from tests.requirements.conftest import FakeClock
from tests.requirements.graphs import thread
from tests.requirements.visits import Visits, after, counting


class Counted:
    """One node, and how often it was really run."""

    def __init__(self, store: Store | None, policy: CachePolicy | None = None) -> None:
        self.runs = 0
        builder = StateGraph(Visits).add_node("a", self.run, cache_policy=policy).add_edge(START, "a")
        self.graph: CompiledGraph = builder.compile(store)

    def run(self, state: Visits) -> Visits:
        self.runs += 1
        return after("a")


MINUTE = CachePolicy(ttl=60)


# ── Cached nodes ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("cache.rs::cached_node_executes_once_for_same_input")
def test_cached_node_runs_once_for_the_same_input_whatever_the_thread(driver: Driver, store: Store):
    node = Counted(store, MINUTE)

    results = [driver.invoke(node.graph, {}, thread(name)).value for name in ("one", "two", "three")]

    assert results == [after("a")] * 3
    assert node.runs == 1


@pytest.mark.seed("cache.rs::cached_node_re_executes_for_different_input")
def test_cached_node_runs_again_for_another_input(driver: Driver, store: Store):
    node = Counted(store, MINUTE)

    counters = [driver.invoke(node.graph, {"counter": given})["counter"] for given in (0, 5, 0, 5)]

    assert counters == [1, 6, 1, 6]
    assert node.runs == 2


@pytest.mark.seed("cache.rs::cache_expires_after_ttl")
def test_cached_result_is_good_until_its_time_and_not_after(driver: Driver, store: Store, clock: FakeClock):
    node = Counted(store, MINUTE)
    runs = []

    for seconds in (0, 59, 1, 59, 1):
        clock.advance(seconds=seconds)
        driver.invoke(node.graph, {})
        runs.append(node.runs)

    assert runs == [1, 1, 2, 2, 3], "its time runs from when it was made, not from when it was last read"


@pytest.mark.seed("cache.rs::uncached_node_always_executes")
def test_node_without_a_policy_runs_every_time(driver: Driver, store: Store):
    node = Counted(store)

    for _ in range(3):
        driver.invoke(node.graph, {})

    assert node.runs == 3


@pytest.mark.seed("cache.rs::cached_node_executes_once_for_same_input")
def test_answer_given_on_one_thread_is_never_taken_from_the_cache_of_another(driver: Driver, store: Store):
    """Synaptic's cache may hand a question of one thread to another; here the node asks on each."""

    def ask(state: Visits) -> Visits:
        return {"visited": [interrupt("Delete everything?")]}

    graph = StateGraph(Visits).add_node("ask", ask, cache_policy=MINUTE).add_edge(START, "ask").compile(store)
    driver.invoke(graph, {}, thread("one"))
    approved = driver.invoke(graph, Command(resume="yes"), thread("one"))

    asked = driver.invoke(graph, {}, thread("two"))

    assert approved["visited"] == ["yes"]
    assert (asked.interrupt_value, asked["visited"]) == ("Delete everything?", [])
    assert driver.invoke(graph, Command(resume="no"), thread("two"))["visited"] == ["no"]


# ── Deferred nodes ─────────────────────────────────────────────────────────────────────────────────────────────────


def drawn(*edges: tuple[str, str], deferred: str, **nodes: Any) -> StateGraph:
    """A graph of these edges, one of whose nodes is deferred."""
    builder = StateGraph(Visits)
    for name in sorted({place for edge in edges for place in edge} - {START}):
        builder.add_node(name, nodes.get(name, counting(name)), defer=name == deferred)
    for source, target in edges:
        builder.add_edge(source, target)
    return builder


@pytest.mark.seed("deferred.rs::deferred_node_compiles_and_runs")
def test_deferred_node_in_a_line_runs_in_its_place(driver: Driver):
    graph = drawn((START, "a"), ("a", "b"), ("b", "c"), deferred="b").compile()

    assert driver.invoke(graph, {}).value == after("a", "b", "c")


@pytest.mark.seed("deferred.rs::deferred_node_is_queryable")
def test_deferred_node_is_the_one_that_waits_while_anything_else_is_left(driver: Driver, store: Store):
    """Synaptic only labels it. Here its place in the history shows that it waits."""
    graph = drawn((START, "a"), ("a", "b"), ("b", "c"), (START, "late"), deferred="late").compile(store)
    driver.invoke(graph, {}, thread("t"))

    ran = [list(part) for part in driver.stream(graph, {}, thread("t"))]
    told = graph.get_state(thread("t")).values["visited"]

    assert ran == [["a"], ["b"], ["c"], ["late"]]
    assert told == ["a", "b", "c", "late"] * 2


@pytest.mark.seed("deferred.rs::incoming_edge_count_computed_correctly")
def test_deferred_join_runs_once_however_long_its_branches_are(driver: Driver, store: Store):
    edges = [(START, "a"), ("a", "join"), (START, "b"), ("b", "c"), ("c", "join")]
    deferred = drawn(*edges, deferred="join").compile(store)
    eager = drawn(*edges, deferred="nobody").compile(store)

    joined = driver.invoke(deferred, {}, thread("deferred"))
    twice = driver.invoke(eager, {}, thread("eager"))

    assert joined["visited"] == ["a", "b", "c", "join"]
    assert twice["visited"].count("join") == 2, "without defer it runs whenever an edge leads to it"
    assert [edge.source for edge in deferred.get_graph().edges if edge.target == "join"] == ["a", "c"]


@pytest.mark.seed("deferred.rs::incoming_edge_count_computed_correctly")
def test_deferred_join_waits_for_a_branch_that_asks_and_then_runs_once(driver: Driver, store: Store):
    def ask(state: Visits) -> Visits:
        return {"visited": [interrupt("Go on?")]}

    edges = [(START, "a"), ("a", "join"), (START, "ask"), ("ask", "join")]
    graph = drawn(*edges, deferred="join", ask=ask).compile(store)
    paused = driver.invoke(graph, {}, thread("t"))

    done = driver.invoke(graph, Command(resume="yes"), thread("t"))

    assert paused.next == ("ask",)
    assert done["visited"] == ["a", "yes", "join"]


@pytest.mark.seed("deferred.rs::incoming_edge_count_computed_correctly")
def test_deferred_join_counts_what_was_sent_at_run_time(driver: Driver):
    """Synaptic cannot send: its graph ends in silence."""
    builder = StateGraph(Visits).add_node("work", lambda given: {"visited": [given["what"]]})
    builder.add_node("join", counting("join"), defer=True).add_edge("work", "join")
    builder.add_conditional_edges(START, lambda state: [Send("work", {"what": what}) for what in "xyz"], ["work"])

    assert driver.invoke(builder.compile(), {})["visited"] == ["x", "y", "z", "join"]
