"""The graphs that these tests put into each other, and a count of what their nodes do."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Annotated, Any, TypedDict

from bide import Command, CompiledGraph, interrupt, step
from tests.drivers import Driver
from tests.threads import in_a_row, one_node

Node = Callable[[Any], Any]


class State(TypedDict, total=False):
    """What all graphs of a test share, unless it says otherwise."""

    name: Any
    number: int
    log: Annotated[list[Any], operator.add]


class World:
    """Makes nodes, and counts what they do, from any thread."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.runs: list[str] = []
        self.made: list[str] = []
        self._lock = Lock()

    def run(self, name: str) -> None:
        """Note that a node has begun."""
        with self._lock:
            self.runs.append(name)

    def make(self, name: str) -> str:
        """Have an effect outside: it must not happen twice."""
        with self._lock:
            self.made.append(name)
        return f"{name} made"

    def take_runs(self) -> list[str]:
        """Return what ran since the last look, sorted, since siblings begin in any order."""
        ran, self.runs = sorted(self.runs), []
        return ran

    @property
    def repeated(self) -> dict[str, int]:
        """Name the effects that happened more than once."""
        return {name: times for name, times in Counter(self.made).items() if times > 1}

    def says(self, name: str) -> Node:
        """A node that adds its name to the log."""

        def node(state: State) -> dict[str, Any]:
            self.run(name)
            return {"log": [name]}

        return self.driver.node(node)

    def asks(self, name: str, **options: Any) -> Node:
        """A node that makes a step, asks, and adds the answer to the log."""

        def node(state: State) -> dict[str, Any]:
            self.run(name)
            step(self.make, name)
            return {"log": [interrupt(f"{name}?", **options)]}

        return self.driver.node(node)

    def fails_once(self, name: str, error: type[Exception] = ValueError) -> Node:
        """A node that makes a step and fails, and does not fail the second time."""

        def node(state: State) -> dict[str, Any]:
            is_first = name not in self.runs
            self.run(name)
            step(self.make, name)
            if is_first:
                raise error(f"{name} is broken")
            return {"log": [name]}

        return self.driver.node(node)

    def calls(self, name: str, *graphs: CompiledGraph, **given: Any) -> Node:
        """A node whose code calls graphs, one after the other, and adds their logs to its own."""

        def node(state: State) -> dict[str, Any]:
            self.run(name)
            return {"log": [said for graph in graphs for said in graph.invoke(given)["log"]]}

        async def anode(state: State) -> dict[str, Any]:
            self.run(name)
            return {"log": [said for graph in graphs for said in (await graph.ainvoke(given))["log"]]}

        return node if self.driver.name == "sync" else anode

    def asker(self, name: str) -> CompiledGraph:
        """A graph of three nodes, the second of which asks."""
        nodes = {f"{name}1": self.says(f"{name}1"), name: self.asks(name), f"{name}2": self.says(f"{name}2")}
        return in_a_row(State, nodes)


def nested(inner: CompiledGraph, depth: int, **options: Any) -> CompiledGraph:
    """A graph inside a graph, as often as asked for; the options are those of the outermost."""
    for level in range(1, depth + 1):
        inner = one_node(State, inner, **(options if level == depth else {}))
    return inner


def values_of(questions: Sequence[Any]) -> list[Any]:
    """What is asked."""
    return [question.value for question in questions]


def answer(*questions: Any) -> Command[Any]:
    """Answer each question with its own text, in capitals."""
    return Command(resume={question.id: str(question.value).upper() for question in questions})


def innermost(snapshot: Any) -> Any:
    """Follow the first task down to the graph that stands deepest."""
    while snapshot.tasks and snapshot.tasks[0].state is not None:
        snapshot = snapshot.tasks[0].state
    return snapshot
