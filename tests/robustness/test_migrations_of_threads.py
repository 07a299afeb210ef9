"""`compile(migrate=…)`: threads that an older graph has left, brought up to date by a hook."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from bide import Command, StateGraph, interrupt, step
from bide.errors import GraphChanged
from bide.types import START
from tests.robustness.states import Flaky
from tests.threads import in_a_row, thread


class Old(TypedDict, total=False):
    town: Any
    noise: Any
    done: Any


class New(TypedDict, total=False):
    city: Any
    size: Any
    done: Any


LARGE = "x" * 1000
"""Too long to travel in the body of a checkpoint."""


def old_graph(driver, store, **options):
    """A graph that asks in its node `ask` and then ends."""
    return in_a_row(
        Old,
        {
            "ask": driver.node(lambda state: {"done": interrupt("done?")}),
            "end": driver.node(lambda state: None),
        },
        checkpointer=store,
        **options,
    )


def new_graph(driver, store, migrate, **nodes):
    """The graph of today, with other keys."""
    ask = driver.node(lambda state: {"done": interrupt("done?")})
    end = driver.node(lambda state: None)
    return in_a_row(New, nodes or {"ask": ask, "end": end}, checkpointer=store, migrate=migrate)


def move_town(stored):
    stored.rename_key("town", "city")
    stored.drop_key("noise")
    stored.values["size"] = 3


@pytest.mark.parametrize("town", ["Rome", LARGE], ids=["small", "large"])
def test_hook_brings_the_state_up_to_date(driver, store, town):
    driver.invoke(old_graph(driver, store), {"town": town, "noise": town}, thread())
    graph = new_graph(driver, store, move_town)

    assert driver.call(graph, "get_state", thread()).values == {"city": town, "size": 3}
    assert driver.invoke(graph, Command(resume="yes"), thread()) == {"city": town, "size": 3, "done": "yes"}


@pytest.mark.parametrize("town", ["Rome", LARGE], ids=["small", "large"])
def test_what_the_hook_changed_is_written_though_no_node_touches_it(driver, store, town):
    driver.invoke(old_graph(driver, store), {"town": town, "noise": town}, thread())
    driver.invoke(new_graph(driver, store, move_town), Command(resume="yes"), thread())

    without_hook = new_graph(driver, store, None)

    assert driver.call(without_hook, "get_state", thread()).values == {"city": town, "size": 3, "done": "yes"}


def test_what_the_hook_changed_is_written_by_an_edit_of_another_key(driver, store):
    driver.invoke(old_graph(driver, store), {"town": "Rome", "noise": "loud"}, thread())
    driver.call(new_graph(driver, store, move_town), "update_state", thread(), {"done": "edited"})

    without_hook = new_graph(driver, store, None)

    values = driver.call(without_hook, "get_state", thread()).values
    assert values == {"city": "Rome", "size": 3, "done": "edited"}


def test_answer_to_a_node_that_was_renamed_counts(driver, store):
    made = Flaky()

    def ask(state):
        step(made, "made", key="made")
        return {"done": interrupt("done?")}

    old = in_a_row(Old, {"ask": driver.node(ask)}, checkpointer=store)
    paused = driver.invoke(old, {"town": "Rome"}, thread())

    def migrate(stored):
        stored.rename_node("ask", "question")
        stored.rename_key("town", "city")
        assert stored.next == ("question",)

    graph = new_graph(driver, store, migrate, question=driver.node(ask))
    result = driver.invoke(graph, Command(resume={paused.interrupts[0].id: "yes"}), thread())

    assert result == {"city": "Rome", "done": "yes"}
    assert made.calls == 1


def test_result_of_a_renamed_sibling_is_kept(driver, store):
    quick = Flaky()

    def graph_of(name, migrate=None):
        builder = StateGraph(New)
        builder.add_node(name, driver.node(lambda state: {"size": quick(1)})).add_edge(START, name)
        builder.add_node("ask", driver.node(lambda state: {"done": interrupt("done?")})).add_edge(START, "ask")
        return builder.compile(checkpointer=store, migrate=migrate)

    driver.invoke(graph_of("quick"), {"city": "Rome"}, thread())
    renamed = graph_of("swift", lambda stored: stored.rename_node("quick", "swift"))

    result = driver.invoke(renamed, Command(resume="yes"), thread())

    assert result == {"city": "Rome", "size": 1, "done": "yes"}
    assert quick.calls == 1


def test_result_of_a_finished_sibling_is_kept_under_the_new_name_of_its_key(driver, store):
    quick = Flaky()

    def graph_of(schema, key, migrate=None):
        builder = StateGraph(schema)
        builder.add_node("quick", driver.node(lambda state: {key: quick("Rome")})).add_edge(START, "quick")
        builder.add_node("ask", driver.node(lambda state: {"done": interrupt("done?")})).add_edge(START, "ask")
        return builder.compile(checkpointer=store, migrate=migrate)

    driver.invoke(graph_of(Old, "town"), {}, thread())
    renamed = graph_of(New, "city", lambda stored: stored.rename_key("town", "city"))

    result = driver.invoke(renamed, Command(resume="yes"), thread())

    assert result == {"city": "Rome", "done": "yes"}
    assert quick.calls == 1


def test_hook_is_told_who_it_is_about(driver, store):
    driver.invoke(old_graph(driver, store), {"town": "Rome"}, thread("job"))
    told = []

    def migrate(stored):
        told.append((stored.thread_id, stored.next, stored.values["town"], bool(stored.fingerprint)))
        move_town(stored)

    driver.call(new_graph(driver, store, migrate), "get_state", thread("job"))

    assert told == [("job", ("ask",), "Rome", True)]


def test_hook_is_not_called_for_threads_of_the_same_graph(driver, store):
    called = Flaky()
    driver.invoke(old_graph(driver, store), {"town": "Rome"}, thread())

    same = old_graph(driver, store, migrate=called)
    driver.invoke(same, Command(resume="yes"), thread())

    assert called.calls == 0


def test_hook_is_called_no_more_once_the_thread_has_gone_on(driver, store):
    called = []

    def migrate(stored):
        called.append(stored.thread_id)
        move_town(stored)

    driver.invoke(old_graph(driver, store), {"town": "Rome"}, thread())
    graph = new_graph(driver, store, migrate)
    driver.invoke(graph, Command(resume="yes"), thread())
    before = len(called)

    driver.call(graph, "get_state", thread())

    assert before >= 1
    assert len(called) == before


def test_hook_that_raises_leaves_the_thread_as_it_was(driver, store):
    driver.invoke(old_graph(driver, store), {"town": "Rome"}, thread())

    def migrate(stored):
        stored.drop_key("town")
        raise KeyError("no such town")

    with pytest.raises(GraphChanged, match="no such town") as raised:
        driver.invoke(new_graph(driver, store, migrate), Command(resume="yes"), thread())

    assert "The thread is unchanged" in str(raised.value)
    old = driver.invoke(old_graph(driver, store), Command(resume="yes"), thread())
    assert old == {"town": "Rome", "done": "yes"}


def test_graph_without_a_hook_names_what_it_lacks(driver, store):
    driver.invoke(old_graph(driver, store), {"town": "Rome"}, thread())

    with pytest.raises(GraphChanged, match="town"):
        driver.invoke(new_graph(driver, store, None), Command(resume="yes"), thread())
