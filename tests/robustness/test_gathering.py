"""Where branches meet: nodes that are put off, edges that wait for several nodes, and fan-in nodes."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, Send, StateGraph, interrupt
from bide.types import END, START
from tests.robustness.states import State, Trouble
from tests.threads import thread


def saying(driver, *words):
    """A node that adds these words to the log."""
    return driver.node(lambda state: {"log": list(words)})


def branches_of_different_lengths(driver, **last):
    """`a` alone, and `b`, `c`, `d` in a row, both leading to `last`."""
    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, saying(driver, name))
    builder.add_node("last", saying(driver, "last"), **last)
    builder.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge("c", "d")
    return builder.add_edge("a", "last").add_edge("d", "last")


# ── Put off ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_node_that_is_put_off_runs_once_when_nothing_else_is_left(driver, store):
    plain = branches_of_different_lengths(driver).compile(checkpointer=store)
    deferred = branches_of_different_lengths(driver, defer=True).compile(checkpointer=store)

    assert driver.invoke(plain, {}, thread(1))["log"] == ["a", "b", "c", "last", "d", "last"]
    assert driver.invoke(deferred, {}, thread(2))["log"] == ["a", "b", "c", "d", "last"]


def test_node_that_is_put_off_waits_for_tasks_that_are_sent(driver, store):
    builder = StateGraph(State).add_node("send", saying(driver, "send")).add_edge(START, "send")
    builder.add_node("work", driver.node(lambda arg: {"log": [arg["name"]]})).add_edge("work", "last")
    builder.add_node("last", saying(driver, "last"), defer=True).add_edge("send", "last")
    builder.add_conditional_edges("send", lambda state: [Send("work", {"name": number}) for number in range(3)])
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["send", 0, 1, 2, "last"]


def test_node_that_is_put_off_may_be_sent_to(driver, store):
    builder = StateGraph(State).add_node("lead", saying(driver, "lead")).add_edge(START, "lead")
    builder.add_node("last", driver.node(lambda arg: {"log": [arg.get("name", "whole")]}), defer=True)
    builder.add_conditional_edges("lead", lambda state: [Send("last", {"name": "sent"})])
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["lead", "sent"]


def test_barrier_made_of_sends_of_different_depth_opens_once(driver, store):
    def dig(arg):
        left = arg["name"] - 1
        return Command(update={"log": [arg["name"]]}, goto=Send("dig", {"name": left}) if left else "last")

    builder = StateGraph(State).add_node("dig", driver.node(dig))
    builder.add_node("last", saying(driver, "last"), defer=True)
    builder.add_conditional_edges(START, lambda state: [Send("dig", {"name": depth}) for depth in (1, 3, 2)])
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == [1, 3, 2, 2, 1, 1, "last"]


def test_node_that_is_put_off_runs_in_every_round_of_a_loop(driver, store):
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, saying(driver, name))
    builder.add_node("last", saying(driver, "last"), defer=True)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("a", "last").add_edge("c", "last")
    builder.add_conditional_edges("last", lambda state: END if state["log"].count("last") == 2 else "a")
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["a", "b", "c", "last"] * 2


def test_two_nodes_that_are_put_off_run_together(driver, store):
    builder = StateGraph(State).add_node("a", saying(driver, "a")).add_node("b", saying(driver, "b"))
    builder.add_node("x", saying(driver, "x"), defer=True).add_node("y", saying(driver, "y"), defer=True)
    builder.add_edge(START, "a").add_edge(START, "y").add_edge("a", "b").add_edge("a", "x")
    graph = builder.compile(checkpointer=store)

    updates = driver.stream(graph, {}, thread(max_concurrency=1))

    assert [next(iter(update)) for update in updates] == ["a", "b", "x", "y"]


def test_question_in_a_branch_keeps_the_last_node_waiting(driver, store):
    builder = branches_of_different_lengths(driver, defer=True)
    builder.nodes.pop("c")
    builder.add_node("c", driver.node(lambda state: {"log": [interrupt("c?")]}))
    graph = builder.compile(checkpointer=store)

    paused = driver.invoke(graph, {}, thread())
    result = driver.invoke(graph, Command(resume="answered"), thread())

    assert paused["log"] == ["a", "b"]
    assert result["log"] == ["a", "b", "answered", "d", "last"]


def test_edit_that_chooses_another_way_leaves_the_last_node_for_the_end(driver, store):
    builder = StateGraph(State)
    for name in ("a", "short", "long", "longer"):
        builder.add_node(name, saying(driver, name))
    builder.add_node("last", saying(driver, "last"), defer=True)
    builder.add_edge(START, "a").add_edge("a", "last").add_edge("long", "longer")
    builder.add_conditional_edges("a", lambda state: state["name"], ["short", "long"])
    graph = builder.compile(checkpointer=store)
    driver.invoke(graph, {"name": "short"}, thread(), interrupt_after=["a"])

    driver.call(graph, "update_state", thread(), {"name": "long"})
    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["a", "long", "longer", "last"]


# ── Joins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edge_from_several_nodes_waits_for_all_of_them_in_every_round(driver, store):
    builder = StateGraph(State)
    for name in ("a", "b", "c", "join"):
        builder.add_node(name, saying(driver, name))
    builder.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge(["a", "c"], "join")
    again = ["a", "b"]
    builder.add_conditional_edges("join", lambda state: END if state["log"].count("join") == 2 else again)
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["a", "b", "c", "join"] * 2


# ── Fan-in ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rounds(TypedDict, total=False):
    round: Annotated[int, operator.add]
    seen: Annotated[list[Any], operator.add]
    a: Any
    b: Any


def fan_in(driver, store, rounds, **nodes):
    builder = StateGraph(Rounds)
    builder.add_node("begin", driver.node(lambda state: {"round": 1}))
    builder.add_node("a", nodes.get("a") or driver.node(lambda state: {"a": f"a{state['round']}"}))
    builder.add_node("slow", driver.node(lambda state: None))
    builder.add_node("b", nodes.get("b") or driver.node(lambda state: {"b": f"b{state['round']}"}))
    builder.add_fanin_node("all", driver.node(lambda state, parallel_results: {"seen": [parallel_results]}))
    builder.add_edge(START, "begin").add_edge("begin", "a").add_edge("begin", "slow").add_edge("slow", "b")
    builder.add_edge("a", "all").add_edge("b", "all")
    builder.add_conditional_edges("all", lambda state: "begin" if state["round"] < rounds else END)
    return builder.compile(checkpointer=store)


def test_fan_in_sees_what_each_branch_returned(driver, store):
    result = driver.invoke(fan_in(driver, store, 1), {}, thread())

    assert result["seen"] == [[{"a": "a1"}, {"b": "b1"}]]


def test_results_of_a_step_come_in_the_order_of_names(driver, store):
    builder = StateGraph(Rounds).add_node("lead", driver.node(lambda state: None)).add_edge(START, "lead")
    for name in ("b", "a"):
        builder.add_node(name, driver.node(lambda state, name=name: {name: name})).add_edge("lead", name)
        builder.add_edge(name, "all")
    builder.add_fanin_node("all", driver.node(lambda state, parallel_results: {"seen": parallel_results}))
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["seen"] == [{"a": "a"}, {"b": "b"}]


def test_second_round_does_not_see_the_results_of_the_first(driver, store):
    result = driver.invoke(fan_in(driver, store, 3), {}, thread())

    assert result["seen"] == [[{"a": f"a{number}"}, {"b": f"b{number}"}] for number in (1, 2, 3)]


def test_second_call_does_not_see_the_results_of_the_first(driver, store):
    graph = fan_in(driver, store, 1)
    driver.invoke(graph, {}, thread())

    result = driver.invoke(graph, {"round": 1}, thread())

    assert result["seen"][1:] == [[{"a": "a3"}, {"b": "b3"}]]


def test_results_are_saved_with_the_checkpoint_while_a_branch_asks(driver, store):
    graph = fan_in(driver, store, 1, b=driver.node(lambda state: {"b": interrupt("b?")}))
    driver.invoke(graph, {}, thread())

    waiting = driver.call(graph, "get_state", thread()).values["parallel_results"]
    result = driver.invoke(graph, Command(resume="answered"), thread())

    assert waiting == [{"a": "a1"}]
    assert result["seen"] == [[{"a": "a1"}, {"b": "answered"}]]


def test_branch_that_failed_is_gathered_when_it_is_mended(driver, store):
    errors = [Trouble()]

    def b(state):
        if errors:
            raise errors.pop()
        return {"b": "mended"}

    graph = fan_in(driver, store, 1, b=driver.node(b))
    with pytest.raises(Trouble):
        driver.invoke(graph, {}, thread())

    assert driver.invoke(graph, None, thread())["seen"] == [[{"a": "a1"}, {"b": "mended"}]]


def test_sends_are_gathered_in_the_order_in_which_they_were_sent(driver, store):
    builder = StateGraph(Rounds).add_node("work", driver.node(lambda arg: {"seen": [arg["round"]]}))
    builder.add_fanin_node("all", driver.node(lambda state, parallel_results: {"a": parallel_results}))
    builder.add_edge("work", "all")
    builder.add_conditional_edges(START, lambda state: [Send("work", {"round": number}) for number in (3, 1, 2)])
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["a"] == [{"seen": [3]}, {"seen": [1]}, {"seen": [2]}]
