"""Streams with `subgraphs=True`: the same parts in the same order as LangGraph 1.2.20 gives for the same graphs."""

from __future__ import annotations

import re
from typing import Any, TypedDict

import pytest

from bide import Command, CompiledGraph, Store, get_stream_writer, interrupt
from tests.drivers import Driver
from tests.threads import in_a_row, one_node, side_by_side, thread


class Count(TypedDict, total=False):
    n: int


def add(state: Count) -> dict[str, Any]:
    return {"n": state.get("n", 0) + 1}


def tell_and_add(state: Count) -> dict[str, Any]:
    get_stream_writer()({"told": state["n"]})
    return add(state)


def three_levels(driver: Driver, store: Store) -> CompiledGraph:
    """`first`, then a graph with a graph in it, then a node that calls the inner graph."""
    inner = in_a_row(Count, {"a": driver.node(tell_and_add), "b": driver.node(add)})
    middle = in_a_row(Count, {"inner": inner, "m": driver.node(add)})

    def call(state: Count) -> dict[str, Any]:
        return {"n": inner.invoke({"n": state["n"]})["n"]}

    async def acall(state: Count) -> dict[str, Any]:
        return {"n": (await inner.ainvoke({"n": state["n"]}))["n"]}

    nodes = {"first": driver.node(add), "mid": middle, "call": call if driver.name == "sync" else acall}
    return in_a_row(Count, nodes, checkpointer=store)


def plain(ns: tuple[str, ...]) -> str:
    """A namespace without the numbers of its tasks."""
    assert all(re.fullmatch(r"\w+:[\w/]+|\d+", element) for element in ns)
    return "/".join(element.partition(":")[0] for element in ns)


UPDATES = [
    ("", {"first": {"n": 1}}),
    ("mid/inner", {"a": {"n": 2}}),
    ("mid/inner", {"b": {"n": 3}}),
    ("mid", {"inner": {"n": 3}}),
    ("mid", {"m": {"n": 4}}),
    ("", {"mid": {"n": 4}}),
    ("call", {"a": {"n": 5}}),
    ("call", {"b": {"n": 6}}),
    ("", {"call": {"n": 6}}),
]
VALUES = [
    *[("", 0), ("", 1), ("mid", 1), ("mid/inner", 1), ("mid/inner", 2), ("mid/inner", 3), ("mid", 3), ("mid", 4)],
    *[("", 4), ("call", 4), ("call", 5), ("call", 6), ("", 6)],
]


def test_updates_of_every_level_come_in_order(driver: Driver, store: Store):
    parts = driver.stream(three_levels(driver, store), {"n": 0}, thread(), subgraphs=True)

    assert [(plain(ns), payload) for ns, payload in parts] == UPDATES


def test_values_of_every_level_come_in_order(driver: Driver, store: Store):
    parts = driver.stream(three_levels(driver, store), {"n": 0}, thread(), stream_mode="values", subgraphs=True)

    assert [(plain(ns), payload["n"]) for ns, payload in parts] == VALUES


def test_second_shape_holds_the_same(driver: Driver, store: Store):
    modes = ["updates", "values", "custom"]
    options = {"stream_mode": modes, "subgraphs": True, "version": "v2"}

    parts = driver.stream(three_levels(driver, store), {"n": 0}, thread(), **options)

    by_mode = {mode: [(plain(part["ns"]), part["data"]) for part in parts if part["type"] == mode] for mode in modes}
    assert by_mode["updates"] == UPDATES
    assert [(ns, data["n"]) for ns, data in by_mode["values"]] == VALUES
    assert by_mode["custom"] == [("mid/inner", {"told": 1}), ("call", {"told": 4})]


def test_stream_without_subgraphs_tells_of_the_outer_graph_alone(driver: Driver, store: Store):
    parts = driver.stream(three_levels(driver, store), {"n": 0}, thread(), stream_mode=["updates", "custom"])

    assert parts == [("updates", payload) for ns, payload in UPDATES if not ns]


def test_question_is_told_once_per_level_and_the_answer_runs_on(driver: Driver, store: Store):
    inner = in_a_row(Count, {"a": driver.node(add), "ask": driver.node(lambda state: {"n": interrupt("q?")})})
    nodes = {"first": driver.node(add), "mid": one_node(Count, inner)}
    graph = in_a_row(Count, nodes, checkpointer=store)

    asked = driver.stream(graph, {"n": 0}, thread(), subgraphs=True)
    answered = driver.stream(graph, Command(resume=7), thread(), subgraphs=True)

    assert [(plain(ns), next(iter(payload))) for ns, payload in asked] == [
        ("", "first"),
        ("mid/node", "a"),
        ("mid/node", "__interrupt__"),
        ("mid", "__interrupt__"),
        ("", "__interrupt__"),
    ]
    assert len({payload["__interrupt__"][0].id for _, payload in asked if "__interrupt__" in payload}) == 1
    assert [(plain(ns), payload) for ns, payload in answered] == [
        ("mid/node", {"ask": {"n": 7}}),
        ("mid", {"node": {"n": 7}}),
        ("", {"mid": {"n": 7}}),
    ]


@pytest.mark.parametrize("mode", ["updates", "tasks", "debug", "checkpoints"])
def test_branches_side_by_side_lose_and_double_no_part(driver: Driver, store: Store, mode: Any):
    def part() -> CompiledGraph:
        return in_a_row(Count, {"x": driver.node(lambda state: None), "y": driver.node(lambda state: None)})

    graph = side_by_side(Count, {f"b{index}": part() for index in range(6)}, checkpointer=store)

    parts = driver.stream(graph, {"n": 0}, thread(), stream_mode=mode, subgraphs=True)
    per_branch = {f"b{index}": sum(plain(ns) == f"b{index}" for ns, _ in parts) for index in range(6)}

    expected = {"updates": 2, "tasks": 4, "checkpoints": 3, "debug": 7}[mode]
    assert per_branch == dict.fromkeys(per_branch, expected)


def test_same_run_streamed_in_parts_has_every_namespace_only_once(driver: Driver, store: Store):
    graph = three_levels(driver, store)

    first = driver.stream(graph, {"n": 0}, thread("one"), subgraphs=True)
    second = driver.stream(graph, {"n": 0}, thread("one"), subgraphs=True)

    inner = [{ns for ns, _ in parts if ns} for parts in (first, second)]
    assert not inner[0] & inner[1]
