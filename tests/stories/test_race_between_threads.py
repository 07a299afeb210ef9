"""Threads of one process that share a store: they may want the same thing, or write side by side."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Condition, Lock
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, Interrupt, Runtime, StateGraph, Store, interrupt, step
from bide.errors import BideError, ConflictError
from bide.store.sqlite import SqliteDatabase

RACERS = 8
ROUNDS = 25
PATIENCE_SECONDS = 30


class Race(TypedDict):
    done_by: str


class Ticker(TypedDict):
    ticks: Annotated[list[str], operator.add]


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}" if request.param == "file" else ":memory:") as store:
        yield store


def race_graph(store: Store, at_the_door: Callable[[], object], acted: list[tuple[str, str]]) -> CompiledGraph:
    """A thread that waits for whoever acts; `at_the_door` is called between reading the thread and taking it."""

    def to_act(state: Race) -> str:
        at_the_door()
        return "act"

    def act(state: Race, runtime: Runtime) -> dict[str, Any]:
        acted.append((str(runtime.thread_id), runtime.resume_value))
        return {"done_by": runtime.resume_value}

    graph = StateGraph(Race)
    graph.add_node("ask", lambda state: Interrupt("Who acts?"))
    graph.add_node("act", act)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", to_act)
    graph.add_edge("act", END)
    return graph.compile(checkpointer=store)


def end_of(call: Callable[[], Any]) -> Any:
    """What a call returned, or the error it was refused with."""
    try:
        return call()
    except BideError as error:
        return error


@pytest.mark.complaint(11)
def test_eight_threads_resume_the_same_thread_and_one_wins(store):
    doors = [lambda: None]
    acted: list[tuple[str, str]] = []
    graph = race_graph(store, lambda: doors[-1](), acted)
    configs = [{"configurable": {"thread_id": f"thread-{number}"}} for number in range(ROUNDS)]
    for config in configs:
        graph.invoke({"done_by": ""}, config)

    barrier = Barrier(RACERS, timeout=PATIENCE_SECONDS)
    doors.append(barrier.wait)
    with ThreadPoolExecutor(RACERS) as pool:
        rounds = [
            list(
                pool.map(
                    lambda who, config=config: end_of(lambda: graph.invoke(Command(resume=f"racer {who}"), config)),
                    range(RACERS),
                )
            )
            for config in configs
        ]

    winners = [[end["done_by"] for end in ends if not isinstance(end, BideError)] for ends in rounds]
    assert [len(won) for won in winners] == [1] * ROUNDS
    assert acted == [(f"thread-{number}", won[0]) for number, won in enumerate(winners)]
    assert all(isinstance(end, dict | ConflictError) for ends in rounds for end in ends)


def test_eight_threads_start_the_same_new_thread_and_one_wins(store):
    barrier = Barrier(RACERS, timeout=PATIENCE_SECONDS)
    started: list[str] = []
    graph = StateGraph(Race)

    def to_run(state: Race) -> str:
        barrier.wait()
        return "run"

    def run(state: Race) -> None:
        started.append(state["done_by"])

    graph.add_node(run)
    graph.add_conditional_edges(START, to_run)
    compiled = graph.compile(checkpointer=store)
    config = {"configurable": {"thread_id": "new"}}

    with ThreadPoolExecutor(RACERS) as pool:
        ends = list(pool.map(lambda who: end_of(lambda: compiled.invoke({"done_by": str(who)}, config)), range(RACERS)))

    won = [end["done_by"] for end in ends if not isinstance(end, BideError)]
    assert len(won) == 1
    assert started == won
    assert compiled.get_state(config).values == {"done_by": won[0]}


@pytest.mark.complaint(19)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_siblings_that_journal_at_the_same_moment_do_not_disturb_each_other(store, durability):
    siblings = [f"sibling-{number}" for number in range(RACERS)]
    barrier = Barrier(RACERS, timeout=PATIENCE_SECONDS)
    lock, made = Lock(), []

    def tick(what: str) -> str:
        with lock:
            made.append(what)
        return what

    def sibling(name: str) -> Callable[[Ticker], dict[str, Any]]:
        def node(state: Ticker) -> dict[str, Any]:
            barrier.wait()
            return {"ticks": [step(tick, f"{name}.{number}", key=str(number)) for number in range(5)]}

        return node

    graph = StateGraph(Ticker)
    graph.add_node("before", lambda state: {"ticks": ["before"]})
    graph.add_edge(START, "before")
    for name in siblings:
        graph.add_node(name, sibling(name))
        graph.add_edge("before", name)
    compiled = graph.compile(checkpointer=store, durability=durability)

    result = compiled.invoke({"ticks": []}, {"configurable": {"thread_id": "busy"}})

    expected = [f"{name}.{number}" for name in siblings for number in range(5)]
    assert result["ticks"] == ["before", *expected]
    assert sorted(made) == expected


class SlowCommit(SqliteDatabase):
    """A database whose first commit of a step is slow: it lets one line of a journal pass, if there is one."""

    def __init__(self, path: str) -> None:
        self.written: list[str] = []
        self.changed = Condition()
        super().__init__(path)

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        with self.changed:
            if name == "commit" and "commit" not in self.written:
                seen = self.written.count("journal")
                self.changed.wait_for(lambda: self.written.count("journal") > seen, timeout=0.3)
        value = super().write(name, work)
        with self.changed:
            self.written.append(name)
            self.changed.notify_all()
        return value


def test_step_is_made_once_though_a_sibling_is_still_saving_the_state_before_it(tmp_path):
    """With `exit`, the first step of a sibling makes the state before it durable; the others must wait for that."""
    database = SlowCommit(str(tmp_path / "bide.db"))
    barrier = Barrier(2, timeout=PATIENCE_SECONDS)
    made: list[str] = []

    def asking(name: str) -> Callable[[Ticker], dict[str, Any]]:
        def node(state: Ticker) -> dict[str, Any]:
            if name not in made:
                barrier.wait()
            step(made.append, name)
            return {"ticks": [interrupt(f"{name}?")]}

        return node

    graph = StateGraph(Ticker)
    graph.add_node("before", lambda state: {"ticks": [step(str, "before")]})
    graph.add_edge(START, "before")
    for name in ("left", "right"):
        graph.add_node(name, asking(name))
        graph.add_edge("before", name)

    with Store(database) as store:
        compiled = graph.compile(checkpointer=store, durability="exit")
        config = {"configurable": {"thread_id": "pair"}}
        paused = compiled.invoke({"ticks": []}, config)
        result = compiled.invoke(Command(resume={ask.id: ask.value for ask in paused.interrupts}), config)

    assert result["ticks"] == ["before", "left?", "right?"]
    assert sorted(made) == ["left", "right"]
