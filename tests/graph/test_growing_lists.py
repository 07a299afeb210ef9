"""A list of the state costs what is said, in the database and in every checkpoint that is read."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, AIMessage, Command, HumanMessage, MessagesState, RemoveMessage, StateGraph, Store
from tests.drivers import Driver
from tests.threads import one_node, thread


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def merged_by_key(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Change an entry that is there in its place: a reducer should not, and some do."""
    merged = list(old or [])
    for entry in new:
        if merged and entry["key"] == merged[0]["key"]:
            merged[0].update(entry)
        else:
            merged.append(entry)
    return merged


class Entries(TypedDict):
    entries: Annotated[list[dict[str, Any]], merged_by_key]


def line(number: int) -> str:
    return f"{number:06} " + "said once and stored once " * 10


def says(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(line(len(state["messages"])))]}


@pytest.mark.complaint(37)
def test_conversation_is_read_back_at_every_turn_as_it_was(driver: Driver, store: Store):
    graph = one_node(MessagesState, says, checkpointer=store)
    results = [
        driver.invoke(graph, {"messages": [HumanMessage(line(turn))]}, thread())["messages"] for turn in range(80)
    ]

    history = list(driver.call(graph, "get_state_history", thread()))

    ends = [snapshot.values["messages"] for snapshot in reversed(history) if not snapshot.next]
    assert ends == results


def test_message_that_is_replaced_or_removed_long_after_is_so_at_its_checkpoint_and_not_before(store: Store):
    graph = one_node(MessagesState, lambda state: {}, checkpointer=store)
    said = [HumanMessage(line(number), id=str(number)) for number in range(100)]
    for message in said:
        graph.invoke({"messages": [message]}, thread())

    graph.invoke({"messages": [HumanMessage("said otherwise", id="7"), RemoveMessage("3")]}, thread())

    now = graph.get_state(thread()).values["messages"]
    assert [message.id for message in now] == [str(number) for number in range(100) if number != 3]
    assert now[6].content == "said otherwise"
    before = next(snapshot for snapshot in graph.get_state_history(thread()) if len(snapshot.values["messages"]) == 100)
    assert before.values["messages"] == said


def test_message_that_a_node_changes_in_its_place_is_stored_as_it_is_then(driver: Driver, store: Store):
    def corrects(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        last.content = last.content + " (corrected)"
        return {"messages": [last]}

    graph = one_node(MessagesState, driver.node(corrects), checkpointer=store)
    said = [HumanMessage(line(number), id=str(number)) for number in range(5)]

    driver.invoke(graph, {"messages": said}, thread())

    assert driver.call(graph, "get_state", thread()).values["messages"][-1].content == line(4) + " (corrected)"


def test_dict_that_is_changed_in_its_place_by_a_reducer_is_stored_as_it_is_then(store: Store):
    graph = one_node(Entries, lambda state: {}, checkpointer=store)
    graph.invoke({"entries": [{"key": number, "text": line(number)} for number in range(5)]}, thread())

    graph.invoke({"entries": [{"key": 0, "text": "another"}]}, thread())

    assert graph.get_state(thread()).values["entries"][0] == {"key": 0, "text": "another"}


@dataclass
class Reading:
    sensor: str
    values: list[float]


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param([line(number) for number in range(60)], id="texts"),
        pytest.param(list(range(2000)), id="numbers"),
        pytest.param([{"role": "user", "content": line(number)} for number in range(60)], id="dicts"),
        pytest.param([Reading(f"s{number}", [number / 3] * 20) for number in range(60)], id="dataclasses"),
        pytest.param([True, 1, 1.0, "1", b"1", None, [], {}] * 60, id="values that are equal and not the same"),
    ],
)
def test_elements_come_back_equal_and_of_their_types(store: Store, elements: list[Any]):
    class Readings(TypedDict):
        log: Annotated[list[Reading | Any], operator.add]

    graph = one_node(Readings, lambda state: {}, checkpointer=store)
    for start in range(0, len(elements), 20):
        graph.invoke({"log": elements[start : start + 20]}, thread())

    found = graph.get_state(thread()).values["log"]
    assert found == elements
    assert [type(element) for element in found] == [type(element) for element in elements]


def test_element_that_becomes_equal_to_another_type_is_stored_as_that_type(store: Store):
    class State(TypedDict):
        flags: list[Any]

    graph = one_node(State, lambda state: {"flags": [True, *state["flags"][1:]]}, checkpointer=store)

    graph.invoke({"flags": [1, *["x" * 40] * 20]}, thread())

    assert graph.get_state(thread()).values["flags"][0] is True


@pytest.mark.complaint(37)
def test_bytes_grow_with_what_is_said(tmp_path):
    def size_after(turns: int) -> int:
        path = tmp_path / f"{turns}.db"
        with Store.open(f"sqlite:///{path}") as store:
            graph = one_node(Log, lambda state: {}, checkpointer=store)
            for turn in range(turns):
                graph.invoke({"log": [line(turn)]}, thread())
        return path.stat().st_size

    assert size_after(400) < 2.2 * size_after(200)


def test_vector_that_is_replaced_is_stored_whole_and_small(store: Store):
    class State(TypedDict):
        vector: list[float]

    graph = one_node(State, lambda state: {"vector": [x + 1 for x in state["vector"]]}, checkpointer=store)

    result = graph.invoke({"vector": [float(number) for number in range(500)]}, thread())

    assert result["vector"] == graph.get_state(thread()).values["vector"] == [number + 1.0 for number in range(500)]


@pytest.mark.complaint(37)
def test_forks_go_on_from_the_past_that_they_share(driver: Driver, store: Store):
    graph = one_node(Log, lambda state: {}, checkpointer=store)
    for turn in range(100):
        driver.invoke(graph, {"log": [line(turn)]}, thread())
    whole, past = (
        next(s for s in driver.call(graph, "get_state_history", thread()) if len(s.values["log"]) == size)
        for size in (100, 40)
    )

    driver.call(graph, "update_state", past.config, {"log": [line(1000)]})
    for turn in range(1001, 1090):
        driver.invoke(graph, {"log": [line(turn)]}, thread())

    expected = [line(turn) for turn in [*range(40), *range(1000, 1090)]]
    assert driver.call(graph, "get_state", thread()).values["log"] == expected
    assert driver.call(graph, "get_state", whole.config).values["log"] == [line(turn) for turn in range(100)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_list_that_grows_in_a_loop_is_whole_in_every_mode(driver: Driver, store: Store, durability: Any):
    def grow(state: Log) -> Command[Any]:
        size = len(state["log"])
        return Command(update={"log": [line(size)]}, goto="grow" if size < 150 else END)

    graph = StateGraph(Log)
    graph.add_node("grow", driver.node(grow), destinations=("grow", END))
    graph.add_edge(START, "grow")
    compiled = graph.compile(checkpointer=store)

    driver.invoke(compiled, {"log": []}, thread(), durability=durability)

    assert driver.call(compiled, "get_state", thread()).values["log"] == [line(number) for number in range(151)]
