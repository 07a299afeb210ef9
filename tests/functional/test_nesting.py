"""Functions and graphs inside each other: tasks and entrypoints in nodes, graphs in tasks, and their questions."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, StateGraph, Store, entrypoint, interrupt, task
from tests.functional.world import World, answers, asked
from tests.threads import one_node, side_by_side, thread


class State(TypedDict, total=False):
    number: int
    log: Annotated[list[Any], operator.add]


@task
def ask(question: str) -> Any:
    return interrupt(question)


# ── Tasks in nodes ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_in_nodes_are_made_once(store: Store, driver, world: World):
    @task
    def pay(amount: int) -> str:
        return world.do(f"pay {amount}")

    def node(state: State) -> Any:
        return {"log": [pay(10).result(), interrupt("Ship?")]}

    graph = one_node(State, node, checkpointer=store)
    driver.invoke(graph, {"number": 1}, thread())

    assert driver.invoke(graph, Command(resume="yes"), thread())["log"] == ["pay 10 done", "yes"]
    assert world.effects == ["pay 10"]


def test_tasks_in_nodes_side_by_side_ask_for_themselves(store: Store, driver, world: World):
    def node(name: str) -> Any:
        def run(state: State) -> Any:
            world.do(name)
            works = [ask(f"{name}1"), ask(f"{name}2")]
            return {"log": [each.result() for each in works]}

        return run

    graph = side_by_side(State, {"a": node("a"), "b": node("b")}, checkpointer=store)

    first = driver.invoke(graph, {"number": 1}, thread())
    a1, a2, b1, b2 = sorted(first.interrupts, key=lambda question: question.value)
    second = driver.invoke(graph, answers((b1, 3), (b2, 4)), thread())
    ended = driver.invoke(graph, answers((a1, 1), (a2, 2)), thread())

    assert asked(first) == ["a1", "a2", "b1", "b2"]
    assert asked(second) == ["a1", "a2"]
    assert ended["log"] == [1, 2, 3, 4]
    assert world.counts == {"a": 2, "b": 2}


def test_a_node_whose_finished_task_had_asked_is_not_run_for_the_answer_of_another(store: Store, driver, world: World):
    def first(state: State) -> Any:
        world.do("first")
        works = [ask("a1"), ask("a2")]
        return {"log": [each.result() for each in works]}

    def second(state: State) -> Any:
        world.do("second")
        return {"log": [interrupt("b1"), interrupt("b2")]}

    graph = side_by_side(State, {"first": first, "second": second}, checkpointer=store)

    questions = {question.value: question for question in driver.invoke(graph, {"number": 1}, thread()).interrupts}
    driver.invoke(graph, answers((questions["a1"], 1)), thread())
    runs = world.counts["first"]
    paused = driver.invoke(graph, answers((questions["b1"], 2)), thread())

    assert sorted(asked(paused)) == ["a2", "b2"]
    assert world.counts["first"] == runs


# ── Entrypoints in graphs and in entrypoints ───────────────────────────────────────────────────────────────────────


def test_an_entrypoint_is_called_in_a_node(store: Store, driver, world: World):
    @task
    def work(number: int) -> int:
        world.do("work")
        return number * 10

    @entrypoint()
    def inner(number: int) -> list[Any]:
        return [work(number).result(), interrupt("Inner?")]

    def node(state: State) -> Any:
        return {"log": inner.invoke(state["number"])}

    graph = one_node(State, node, checkpointer=store)
    paused = driver.invoke(graph, {"number": 1}, thread())

    assert asked(paused) == ["Inner?"]
    assert driver.invoke(graph, Command(resume="yes"), thread())["log"] == [10, "yes"]
    assert world.effects == ["work"]


def test_an_entrypoint_is_a_node(store: Store, driver, world: World):
    @entrypoint()
    def inner(state: State) -> Any:
        return {"number": state["number"] * 10, "log": [interrupt("Inner?")]}

    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=store)
    paused = driver.invoke(graph, {"number": 1, "log": ["begin"]}, thread())

    assert asked(paused) == ["Inner?"]
    assert driver.invoke(graph, Command(resume="yes"), thread()) == {"number": 10, "log": ["begin", "yes"]}


def test_an_entrypoint_is_called_in_another_with_questions_in_both(store: Store, driver, world: World):
    @task
    def work(name: str) -> str:
        return world.do(name)

    @entrypoint()
    def inner(name: str) -> Any:
        return [work(f"inner {name}").result(), ask(f"{name}?").result()]

    @entrypoint(checkpointer=store)
    def outer(given: int) -> Any:
        found = [work("outer").result(), inner.invoke("a"), inner.invoke("b")]
        return [*found, interrupt("end?")]

    questions = [asked(driver.invoke(outer, 1, thread()))]
    for answer in ("A", "B"):
        questions.append(asked(driver.invoke(outer, Command(resume=answer), thread())))
    ended = driver.invoke(outer, Command(resume="E"), thread())

    assert questions == [["a?"], ["b?"], ["end?"]]
    assert ended == ["outer done", ["inner a done", "A"], ["inner b done", "B"], "E"]
    assert world.effects == ["outer", "inner a", "inner b"]


def test_an_entrypoint_that_keeps_its_state_has_its_own_previous(store: Store, driver):
    @entrypoint(checkpointer=True)
    def inner(number: int, *, previous: Any = None) -> int:
        return number + (previous or 0)

    @entrypoint(checkpointer=store)
    def outer(number: int, *, previous: Any = None) -> Any:
        return [inner.invoke(number), previous]

    assert driver.invoke(outer, 1, thread()) == [1, None]
    assert driver.invoke(outer, 2, thread()) == [3, [1, None]]


# ── Graphs in tasks ────────────────────────────────────────────────────────────────────────────────────────────────


def asking_graph(world: World) -> Any:
    def before(state: State) -> Any:
        world.do(f"before {state['number']}")
        return {"log": ["before"]}

    def node(state: State) -> Any:
        return {"log": [interrupt(f"{state['number']}?")]}

    builder = StateGraph(State).add_sequence([("before", before), ("node", node)])
    return builder.add_edge(START, "before").compile()


def test_graphs_in_tasks_side_by_side_ask_at_once_and_go_on_one_by_one(store: Store, driver, world: World):
    graph = asking_graph(world)

    @task
    def call(number: int) -> Any:
        world.do(f"call {number}")
        return graph.invoke({"number": number})["log"]

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        works = [call(number) for number in (1, 2)]
        return [each.result() for each in works]

    first = driver.invoke(run, 1, thread())
    second = driver.invoke(run, answers((first.interrupts[1], "B")), thread())
    ended = driver.invoke(run, Command(resume="A"), thread())

    assert [asked(first), asked(second)] == [["1?", "2?"], ["1?"]]
    assert ended == [["before", "A"], ["before", "B"]]
    assert world.counts == {"call 1": 2, "call 2": 2, "before 1": 1, "before 2": 1}


def test_async_graphs_in_async_tasks_ask_at_once(store: Store, world: World):
    async def node(state: State) -> Any:
        return {"log": [interrupt(f"{state['number']}?")]}

    graph = one_node(State, node)

    @task
    async def call(number: int) -> Any:
        return (await graph.ainvoke({"number": number}))["log"]

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        return await asyncio.gather(call(1), call(2))

    first = asyncio.run(run.ainvoke(1, thread()))
    one, two = first.interrupts

    assert asked(first) == ["1?", "2?"]
    assert asyncio.run(run.ainvoke(answers((one, "A"), (two, "B")), thread())) == [["A"], ["B"]]


def test_a_graph_in_an_entrypoint_asks(store: Store, driver, world: World):
    graph = asking_graph(world)

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [graph.invoke({"number": number})["log"] for number in (1, 2)]

    questions = [asked(driver.invoke(run, 1, thread()))]
    questions.append(asked(driver.invoke(run, Command(resume="A"), thread())))

    assert questions == [["1?"], ["2?"]]
    assert driver.invoke(run, Command(resume="B"), thread()) == [["before", "A"], ["before", "B"]]
    assert world.counts == {"before 1": 1, "before 2": 1}


def test_a_graph_that_keeps_its_state_goes_on_when_a_task_calls_it(store: Store, driver):
    counting = one_node(State, lambda state: {"log": [len(state.get("log", []))]}, checkpointer=True)

    @task
    def call() -> Any:
        return counting.invoke({"number": 1})["log"]

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        found = call().result()
        interrupt("Go on?")
        return found

    results = []
    for _ in range(2):
        driver.invoke(run, 1, thread())
        results.append(driver.invoke(run, Command(resume="yes"), thread()))

    assert results == [[0], [0, 1]]


def test_tasks_inside_tasks_are_made_once(store: Store, driver, world: World):
    @task
    def leaf(number: int) -> int:
        world.do(f"leaf {number}")
        return number

    @task
    def branch(number: int) -> int:
        world.do(f"branch {number}")
        return sum(each.result() for each in [leaf(number * 10 + index) for index in (1, 2)])

    @entrypoint(checkpointer=store)
    def tree(given: int) -> Any:
        works = [branch(number) for number in (1, 2)]
        return [*[each.result() for each in works], interrupt("Go on?")]

    driver.invoke(tree, 1, thread())

    assert driver.invoke(tree, Command(resume="yes"), thread()) == [23, 43, "yes"]
    assert set(world.counts.values()) == {1}


def test_tasks_inside_a_task_that_failed_are_not_made_again(store: Store, driver, world: World):
    @task
    def leaf() -> str:
        return world.do("leaf")

    @task
    def branch() -> str:
        found = leaf().result()
        if world.do("try") and world.counts["try"] == 1:
            raise ValueError("broken")
        return found

    @entrypoint(checkpointer=store)
    def tree(given: int) -> Any:
        return branch().result()

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(tree, 1, thread())

    assert driver.invoke(tree, None, thread()) == "leaf done"
    assert world.counts == {"leaf": 1, "try": 2}
