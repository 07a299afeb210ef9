"""`CachePolicy`: a node whose result is known already does not run."""

from __future__ import annotations

import pytest

from bide import CachePolicy, Command, InMemoryCache, RetryPolicy, StateGraph, Store, interrupt, step
from bide.errors import GraphError
from bide.types import START, Send
from tests.robustness.states import Flaky, State, Trouble, lone
from tests.threads import thread


def counted(driver, work, cache_policy=None, **options):
    """A graph of one node that does this work with the name, and keeps results."""
    node = driver.node(lambda state: {"value": work(f"hello {state['name']}")})
    return lone(node, options, cache_policy=cache_policy or CachePolicy())


def test_same_input_is_worked_on_once_whatever_the_thread(driver, store):
    work = Flaky()
    graph = counted(driver, work, checkpointer=store)

    results = [driver.invoke(graph, {"name": "ada"}, thread(number))["value"] for number in range(3)]

    assert results == ["hello ada"] * 3
    assert work.calls == 1


def test_other_input_is_worked_on_again(driver, store):
    work = Flaky()
    graph = counted(driver, work, checkpointer=store)

    given = enumerate(("ada", "bob", "ada"))
    results = [driver.invoke(graph, {"name": name}, thread(number))["value"] for number, name in given]

    assert results == ["hello ada", "hello bob", "hello ada"]
    assert work.calls == 2


def test_key_func_says_what_makes_two_inputs_the_same(driver, store):
    work = Flaky()
    policy = CachePolicy(key_func=lambda state: state["name"].lower())
    graph = counted(driver, work, policy, checkpointer=store)

    results = [driver.invoke(graph, {"name": name}, thread(name))["value"] for name in ("Ada", "ADA", "bob")]

    assert results == ["hello Ada", "hello Ada", "hello bob"]
    assert work.calls == 2


def test_result_is_kept_for_its_time_and_no_longer(driver, store, clock):
    work = Flaky()
    graph = counted(driver, work, CachePolicy(ttl=60), checkpointer=store)

    calls = []
    for number, seconds in enumerate((0, 59.999, 0.001, 59.0)):
        clock.advance(seconds)
        driver.invoke(graph, {"name": "ada"}, thread(number))
        calls.append(work.calls)

    assert calls == [1, 1, 2, 2]


def test_cached_update_says_so_in_the_stream(driver, store):
    graph = counted(driver, Flaky(), checkpointer=store)

    first, second = (driver.stream(graph, {"name": "ada"}, thread(number)) for number in (1, 2))

    assert first == [{"node": {"value": "hello ada"}}]
    assert second == [{"node": {"value": "hello ada"}, "__metadata__": {"cached": True}}]


def test_where_a_cached_node_led_is_kept_with_its_result(driver, store):
    work = Flaky()

    def node(state):
        return Command(update={"log": [work("chosen")]}, goto=Send("there", {"name": "sent"}))

    builder = StateGraph(State).add_node("node", driver.node(node), cache_policy=CachePolicy())
    builder.add_node("there", driver.node(lambda arg: {"log": [arg["name"]]})).add_edge(START, "node")
    graph = builder.compile(checkpointer=store)

    results = [driver.invoke(graph, {"name": "ada"}, thread(number))["log"] for number in (1, 2)]

    assert results == [["chosen", "sent"]] * 2
    assert work.calls == 1


def test_nodes_and_graphs_do_not_take_each_others_results(driver, store):
    builder = StateGraph(State)
    for name in ("a", "b"):
        node = driver.node(lambda state, name=name: {"log": [name]})
        builder.add_node(name, node, cache_policy=CachePolicy()).add_edge(START, name)
    one, other = (builder.compile(checkpointer=store, name=name) for name in ("one", "other"))

    first = driver.invoke(one, {"name": "x"}, thread(1))
    second, third = (driver.stream(other, {"name": "x"}, thread(number)) for number in (2, 3))

    assert first["log"] == ["a", "b"]
    assert not any("__metadata__" in part for part in second)
    assert all("__metadata__" in part for part in third)


def test_another_function_under_the_same_name_has_results_of_its_own(driver, store):
    def greet(state):
        return {"value": "hello"}

    def part(state):
        return {"value": "goodbye"}

    graphs = [lone(driver.node(node), {"checkpointer": store}, cache_policy=CachePolicy()) for node in (greet, part)]

    results = [driver.invoke(graph, {"name": "ada"}, thread(number))["value"] for number, graph in enumerate(graphs)]

    assert results == ["hello", "goodbye"]


def test_cache_in_memory_serves_graphs_without_a_store(driver):
    work, cache = Flaky(), InMemoryCache()
    graphs = [counted(driver, work, cache=cache) for _ in range(2)]

    results = [driver.invoke(graph, {"name": "ada"})["value"] for graph in graphs]
    cache.store.close()

    assert results == ["hello ada"] * 2
    assert work.calls == 1


def test_results_in_the_database_outlive_the_process(driver, tmp_path):
    url, work = f"sqlite:///{tmp_path / 'bide.db'}", Flaky()

    for number in (1, 2):
        with Store.open(url) as store:
            driver.invoke(counted(driver, work, checkpointer=store), {"name": "ada"}, thread(number))

    assert work.calls == 1


def test_cache_of_a_node_can_be_cleared(driver, store):
    work = Flaky()
    graph = counted(driver, work, checkpointer=store)
    driver.invoke(graph, {"name": "ada"}, thread(1))

    driver.call(graph, "clear_cache", ["node"])
    driver.invoke(graph, {"name": "ada"}, thread(2))

    assert work.calls == 2


def test_thing_that_is_no_policy_is_refused_where_it_is_written():
    with pytest.raises(GraphError, match="CachePolicy"):
        lone(lambda state: None, cache_policy=60)


# ── What is not kept ───────────────────────────────────────────────────────────────────────────────────────────────


def test_node_that_asks_asks_in_every_thread(driver, store):
    node = driver.node(lambda state: {"value": interrupt(f"may {state['name']}?")})
    graph = lone(node, {"checkpointer": store}, cache_policy=CachePolicy())
    driver.invoke(graph, {"name": "ada"}, thread(1))
    driver.invoke(graph, Command(resume="yes"), thread(1))

    second = driver.invoke(graph, {"name": "ada"}, thread(2))

    assert second.interrupt_value == "may ada?"
    assert "value" not in second


def test_graph_inside_a_node_that_asks_asks_in_every_thread(driver, store):
    inner = lone(driver.node(lambda state: {"value": interrupt("may I?")}))
    graph = lone(inner, {"checkpointer": store}, cache_policy=CachePolicy())
    driver.invoke(graph, {"name": "ada"}, thread(1))
    driver.invoke(graph, Command(resume="yes"), thread(1))

    second = driver.invoke(graph, {"name": "ada"}, thread(2))

    assert second.interrupt_value == "may I?"


def test_failure_is_not_kept(driver, store):
    work = Flaky(Trouble())
    graph = counted(driver, work, checkpointer=store)
    with pytest.raises(Trouble):
        driver.invoke(graph, {"name": "ada"}, thread(1))

    assert driver.invoke(graph, {"name": "ada"}, thread(2))["value"] == "hello ada"
    assert work.calls == 2


def test_what_a_handler_made_of_a_failure_is_not_kept(driver, store):
    work = Flaky(Trouble())
    graph = lone(
        driver.node(lambda state: {"value": work()}),
        {"checkpointer": store},
        cache_policy=CachePolicy(),
        error_handler=driver.node(lambda state: {"value": "makeshift"}),
    )

    results = [driver.invoke(graph, {"name": "ada"}, thread(number))["value"] for number in (1, 2, 3)]

    assert results == ["makeshift", "done", "done"]
    assert work.calls == 2


def test_result_of_a_later_attempt_is_kept(driver, store):
    work = Flaky(Trouble())
    graph = lone(
        driver.node(lambda state: {"value": work()}),
        {"checkpointer": store},
        cache_policy=CachePolicy(),
        retry_policy=RetryPolicy(jitter=False),
    )

    results = [driver.invoke(graph, {"name": "ada"}, thread(number))["value"] for number in (1, 2)]

    assert results == ["done", "done"]
    assert work.calls == 2


def test_node_that_has_made_steps_goes_on_by_itself_though_another_thread_was_faster(driver, store):
    paid, flaky = Flaky(), Flaky(Trouble())

    def node(state):
        receipt = step(paid, "receipt")
        flaky()
        return {"value": receipt}

    graph = lone(driver.node(node), {"checkpointer": store}, cache_policy=CachePolicy())
    with pytest.raises(Trouble):
        driver.invoke(graph, {"name": "ada"}, thread("slow"))
    driver.invoke(graph, {"name": "ada"}, thread("fast"))

    assert driver.invoke(graph, None, thread("slow"))["value"] == "receipt"
    assert paid.calls == 2
