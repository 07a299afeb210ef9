"""What the simulation has found, each as a small graph on the real store."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Interrupt, MemorySaver, RetryPolicy, Send, StateGraph, Store, step
from bide import interrupt as ask
from bide.engine.flow import advance
from bide.engine.opening import Request
from bide.engine.values import Begin, JournalEntry, Load, Task
from bide.errors import StoreUnavailableError, ThreadBusyError
from bide.graph.hold import Hold
from bide.graph.recorder import Recorder
from tests.drivers import DRIVERS, Driver
from tests.simulation.world import Breath
from tests.threads import in_a_row, one_node, thread

ASYNC = DRIVERS[1]


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = MemorySaver() if request.param == "memory" else Store.open(f"sqlite:///{tmp_path / 'bide.db'}")
    with opened:
        yield opened


def says(word: str) -> Any:
    return lambda state: {"log": [word]}


def asks(question: str) -> Any:
    return lambda state: {"log": [ask(question)]}


def asks_after(word: str) -> Any:
    return lambda state: [{"log": [word]}, Interrupt(f"{word}?")]


def the_answer(graph: CompiledGraph, driver: Driver, word: str = "yes") -> Command:
    asked = driver.call(graph, "get_state", thread()).interrupts
    return Command(resume={question.id: word for question in asked})


def test_deferred_node_and_sends_get_along(driver: Driver):
    builder = StateGraph(Log).add_node("a", says("a")).add_node("b", says("b"))
    builder.add_node("late", says("late"), defer=True).add_edge(START, "a").add_edge("a", "late")
    builder.add_conditional_edges("a", lambda state: [Send("b", {"log": []})], ["b"])

    result = driver.invoke(builder.compile(), {"log": []})

    assert result["log"] == ["a", "b", "late"]


def test_deferred_node_is_not_lost_when_an_answer_lets_the_way_be_chosen_again(driver: Driver, store: Store):
    builder = StateGraph(Log).add_node("a", asks_after("a")).add_edge(START, "a").add_edge(START, "late")
    builder.add_node("late", says("late"), defer=True).add_node("later", says("later"), defer=True)
    graph = builder.add_conditional_edges("a", lambda state: "later", ["later"]).compile(store)
    driver.invoke(graph, {"log": []}, thread())

    result = driver.invoke(graph, the_answer(graph, driver), thread())

    assert result["log"] == ["a", "late", "later"]


def test_thread_whose_last_node_returned_a_question_takes_new_input_when_it_is_done(driver: Driver, store: Store):
    graph = one_node(Log, asks_after("a"), checkpointer=store)
    driver.invoke(graph, {"log": ["one"]}, thread())
    driver.invoke(graph, the_answer(graph, driver), thread())

    result = driver.invoke(graph, {"log": ["two"]}, thread())

    assert result["log"] == ["one", "a", "two", "a"]


def test_graph_inside_adds_only_its_own_items_though_the_state_around_it_was_edited(driver: Driver, store: Store):
    graph = one_node(Log, one_node(Log, asks("?")), checkpointer=store)
    driver.invoke(graph, {"log": ["in"]}, thread())
    driver.call(graph, "update_state", thread(), {"log": ["edit"]})

    result = driver.invoke(graph, the_answer(graph, driver), thread())

    assert result["log"] == ["in", "edit", "yes"]


def test_graph_three_deep_goes_on_after_a_crash_inside(driver: Driver, store: Store):
    crashes = iter([KeyboardInterrupt()])

    def crash_once(state: Log) -> Log:
        for crash in crashes:
            raise crash
        return {"log": ["b"]}

    innermost = in_a_row(Log, {"a": says("a"), "b": crash_once})
    graph = one_node(Log, one_node(Log, innermost), checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        driver.invoke(graph, {"log": ["in"]}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["log"] == ["in", "a", "b"]


def test_edit_before_a_send_does_not_bring_its_pause_a_second_time(driver: Driver, store: Store):
    builder = StateGraph(Log).add_node("a", says("a")).add_node("b", says("b")).add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: [Send("b", {"log": []})], ["b"])
    graph = builder.compile(store, interrupt_before=["b"])
    driver.invoke(graph, {"log": []}, thread())
    driver.call(graph, "update_state", thread(), {"log": ["edit"]})

    result = driver.invoke(graph, None, thread())

    assert result.is_complete
    assert result["log"] == ["a", "edit", "b"]


def test_graph_inside_chooses_its_way_though_a_node_beside_it_has_just_failed(store: Store):
    failures = iter([ConnectionError()])

    async def fail_once(state: Log) -> Log:
        ask("go?")
        await Breath()
        for failure in failures:
            raise failure
        return {"log": ["late"]}

    inner = StateGraph(Log).add_node("a", asks_after("a")).add_node("b", says("b")).add_node("end", says("end"))
    for name in "ab":
        inner.add_edge(START, name).add_conditional_edges(name, lambda state: "end", ["end"])
    builder = StateGraph(Log).add_node("fails", fail_once).add_node("team", inner.compile())
    graph = builder.add_edge(START, "fails").add_edge(START, "team").compile(store)
    ASYNC.invoke(graph, {"log": []}, thread())
    with pytest.raises(ConnectionError):
        ASYNC.invoke(graph, the_answer(graph, ASYNC), thread())

    result = ASYNC.invoke(graph, None, thread())

    assert result["log"] == ["late", "a", "b", "end"]


def test_update_that_comes_with_a_question_inside_is_not_saved_before_the_question(store: Store):
    crashes, has_asked = iter([KeyboardInterrupt()]), Event()

    def ask_with_update(state: Log) -> Log:
        has_asked.set()
        return {"log": [ask("?", update={"log": ["note"]})]}

    async def finish_soon(state: Log) -> Log:
        for _ in range(20):
            await Breath()
        return {"log": ["soon"]}

    async def crash_later(state: Log) -> Log:
        while not has_asked.is_set():
            await Breath()
        for _ in range(200):
            await Breath()
        for crash in crashes:
            raise crash
        return {"log": ["late"]}

    builder = StateGraph(Log).add_node("a", one_node(Log, ask_with_update)).add_node("b", finish_soon)
    builder.add_node("c", crash_later).add_edge(START, "a").add_edge(START, "b").add_edge(START, "c")
    graph = builder.compile(store)
    with pytest.raises(KeyboardInterrupt):
        ASYNC.invoke(graph, {"log": []}, thread())
    ASYNC.invoke(graph, None, thread())

    result = ASYNC.invoke(graph, the_answer(graph, ASYNC), thread())

    assert result["log"] == ["note", "yes", "soon", "late"]


def test_update_that_comes_with_a_question_is_not_saved_again_when_the_graph_around_it_is_tried_again(
    driver: Driver, store: Store
):
    failures = iter([ConnectionError()])

    def ask_with_update(state: Log) -> Log:
        return {"log": [ask("?", update={"log": ["note"]})]}

    def fail_once(state: Log) -> Log:
        for failure in failures:
            raise failure
        return {"log": ["b"]}

    inner = StateGraph(Log).add_node("a", ask_with_update).add_node("b", fail_once)
    inner.add_edge(START, "a").add_edge(START, "b")
    builder = StateGraph(Log).add_edge(START, "team")
    builder.add_node("team", inner.compile(), retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    graph = builder.compile(store)
    driver.invoke(graph, {"log": []}, thread(max_concurrency=1))

    result = driver.invoke(graph, the_answer(graph, driver), thread())

    assert result["log"] == ["note", "yes", "b"]


def test_run_that_died_after_the_last_answer_is_brought_to_its_end(
    driver: Driver, store: Store, monkeypatch: pytest.MonkeyPatch
):
    graph = one_node(Log, asks_after("a"), checkpointer=store)
    driver.invoke(graph, {"log": []}, thread())
    answer, write = the_answer(graph, driver), store.database.write

    def die(name: str, *args: Any) -> Any:
        if name == "commit":
            raise StoreUnavailableError("the power has failed")
        return write(name, *args)

    with monkeypatch.context() as patch:
        patch.setattr(store.database, "write", die)
        with pytest.raises(StoreUnavailableError):
            driver.invoke(graph, answer, thread())

    result = driver.invoke(graph, None, thread())

    assert result.is_complete
    assert [row.status for row in store.threads()] == ["done"]


def test_step_in_the_stores_own_transaction_is_not_repeated_when_only_its_reply_was_lost(
    driver: Driver, store: Store, monkeypatch: pytest.MonkeyPatch
):
    made: list[str] = []
    write, failures = store.database.write_alone, iter([StoreUnavailableError("the store went away")])

    def write_and_fail_once(name: str, *args: Any) -> Any:
        value = write(name, *args)
        for failure in failures if name == "transact" else ():
            raise failure
        return value

    def node(state: Log) -> Log:
        step(lambda connection: made.append("made"), effect="tx")
        return {"log": ["done"]}

    monkeypatch.setattr(store.database, "write_alone", write_and_fail_once)
    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph = StateGraph(Log).add_node("node", node, retry_policy=policy).add_edge(START, "node").compile(store)

    result = driver.invoke(graph, {"log": []}, thread())

    assert result["log"] == ["done"]
    assert made == ["made"]


def test_run_that_only_seemed_to_be_left_is_not_taken_over_on_what_was_read_before_its_last_write(store: Store):
    graph = one_node(Log, says("a"), checkpointer=store)
    first, second = (Recorder(Hold(store, "t", "sync"), graph.spec) for _ in range(2))
    flow = advance(graph.spec, Request({"log": []}))
    first.perform(flow.send(first.perform(flow.send(None))))
    loaded = second.perform(Load(None))
    loaded = loaded._replace(run=loaded.run._replace(is_orphan=True))

    first.keep(Task("1.node", "node"), "step", JournalEntry("step", "", True, "made"))

    with pytest.raises(ThreadBusyError):
        second.perform(Begin(loaded, None, claim=loaded.run))
