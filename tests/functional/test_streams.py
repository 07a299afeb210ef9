"""What readers of a stream see of entrypoints and tasks: the shapes are LangGraph's."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from bide import AIMessage, CachePolicy, Command, InMemoryCache, Store, entrypoint, get_stream_writer, interrupt, task
from tests.functional.world import World
from tests.threads import one_node, thread


@task
def add(first: int, second: int) -> int:
    return first + second


@task
def nothing() -> None:
    return None


@task
def fail() -> None:
    raise ValueError("broken")


@task
def ask(question: str) -> Any:
    return interrupt(question)


def summing(store: Store | None) -> Any:
    @entrypoint(checkpointer=store)
    def total(number: int) -> Any:
        get_stream_writer()("begin")
        found = add(number, 1).result()
        nothing().result()
        return entrypoint.final(value=found, save="saved")

    return total


def test_updates_have_a_part_for_each_task_and_one_for_the_entrypoint(store: Store, driver):
    parts = driver.stream(summing(store), 1, thread(), stream_mode="updates")

    assert parts == [{"add": 2}, {"nothing": None}, {"total": 2}]


def test_values_have_the_result_alone(store: Store, driver):
    run = summing(store)

    assert driver.stream(run, 1, thread(), stream_mode="values") == [2]
    assert driver.stream(run, 5, thread(), stream_mode="values") == [6]


def test_several_modes_come_as_pairs(store: Store, driver):
    parts = driver.stream(summing(store), 1, thread(), stream_mode=["updates", "custom"])

    assert parts == [
        ("custom", "begin"),
        ("updates", {"add": 2}),
        ("updates", {"nothing": None}),
        ("updates", {"total": 2}),
    ]


def test_tasks_tell_the_beginning_and_the_end_of_each(store: Store, driver):
    parts = driver.stream(summing(store), 1, thread(), stream_mode="tasks")

    begins = [(part["name"], part["input"]) for part in parts if "input" in part]
    ends = [(part["name"], part["error"], part["interrupts"]) for part in parts if "result" in part]
    assert begins == [("total", 1), ("add", ((1, 1), {})), ("nothing", ((), {}))]
    assert ends == [("add", None, []), ("nothing", None, []), ("total", None, [])]
    assert [part["name"] for part in parts] == ["total", "add", "add", "nothing", "nothing", "total"]
    assert len({part["id"] for part in parts}) == 3


def test_a_task_that_failed_is_told_as_such(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        return f"{fail().exception()}"

    assert driver.stream(run, 1, thread("updates")) == [{"run": "broken"}]
    ends = [part for part in driver.stream(run, 1, thread(), stream_mode="tasks") if "result" in part]
    assert [(part["name"], part["error"]) for part in ends] == [("fail", "ValueError('broken')"), ("run", None)]


def test_a_result_from_the_cache_is_marked(store: Store, driver):
    @task(cache_policy=CachePolicy())
    def work(number: int) -> int:
        return number

    @entrypoint(checkpointer=store, cache=InMemoryCache())
    def run(number: int) -> int:
        return work(number).result()

    assert driver.stream(run, 1, thread("a")) == [{"work": 1}, {"run": 1}]
    assert driver.stream(run, 1, thread("b")) == [{"work": 1, "__metadata__": {"cached": True}}, {"run": 1}]


def test_a_pause_ends_the_stream_and_finished_tasks_are_not_told_again(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [add(1, 2).result(), ask("first?").result(), interrupt("second?")]

    first = driver.stream(run, 1, thread())
    second = driver.stream(run, Command(resume="a"), thread())
    third = driver.stream(run, Command(resume="b"), thread())

    assert first[0] == {"add": 3}
    assert [question.value for question in first[1]["__interrupt__"]] == ["first?"]
    assert second[0] == {"ask": "a"}
    assert [question.value for question in second[1]["__interrupt__"]] == ["second?"]
    assert third == [{"run": [3, "a", "b"]}]


def test_all_questions_of_tasks_side_by_side_are_in_one_part(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        works = [ask("a"), ask("b")]
        return [each.result() for each in works]

    parts = driver.stream(run, 1, thread())

    assert [[question.value for question in part["__interrupt__"]] for part in parts] == [["a", "b"]]


def test_tasks_write_to_the_stream_while_they_run(store: Store):
    heard: list[Any] = []
    turn = asyncio.Event()

    @task
    async def talk(name: str) -> None:
        get_stream_writer()(f"{name} begins")
        await turn.wait()

    @entrypoint(checkpointer=store)
    async def run(given: int) -> None:
        await asyncio.gather(talk("a"), talk("b"))

    async def read() -> None:
        async for part in run.astream(1, thread(), stream_mode="custom"):
            heard.append(part)
            if len(heard) == 2:
                turn.set()

    asyncio.run(read())

    assert heard == ["a begins", "b begins"]


@pytest.mark.timeout(60)
def test_more_parts_than_there_is_room_for_all_arrive(store: Store, driver, world: World):
    @task
    def talk(number: int) -> int:
        get_stream_writer()(number)
        return number

    @entrypoint(checkpointer=store)
    def run(count: int) -> int:
        return sum(each.result() for each in [talk(number) for number in range(count)])

    parts = driver.stream(run, 1500, thread(), stream_mode=["custom", "updates"])

    assert sum(mode == "custom" for mode, _ in parts) == 1500
    assert parts[-1] == ("updates", {"run": 1124250})


def test_messages_that_a_task_returns_are_told_once(store: Store, driver):
    @task
    def say() -> Any:
        return AIMessage("hello", id="m1")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return say().result()

    parts = driver.stream(run, 1, thread(), stream_mode="messages")

    assert [message.content for message, _ in parts] == ["hello"]


class State(TypedDict):
    number: int


def test_tasks_of_a_node_are_told_as_those_of_an_entrypoint_are(store: Store, driver):
    def node(state: State) -> Any:
        return {"number": add(state["number"], 1).result()}

    graph = one_node(State, node, checkpointer=store)

    assert driver.stream(graph, {"number": 1}, thread()) == [{"add": 2}, {"node": {"number": 2}}]


def test_events_and_debug_know_tasks(store: Store):
    run = summing(store)

    events = list(run.events(1, thread("events")))
    kinds = [part["type"] for part in run.stream(1, thread("debug"), stream_mode="debug")]

    assert [event.get("node") for event in events[:-1]] == ["add", "nothing", "total"]
    assert kinds == ["checkpoint", "task", "task", "task_result", "task", "task_result", "task_result", "checkpoint"]
