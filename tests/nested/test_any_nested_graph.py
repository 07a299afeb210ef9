"""Any graph with graphs in it: run in pieces, with questions, failures and restarts, it ends as if run in one go.

Graphs are drawn from a seed, so a failure names the case that shows it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bide import START, Command, CompiledGraph, MemorySaver, Send, StateGraph, Store, interrupt, step
from tests.drivers import Driver
from tests.nested.world import State
from tests.threads import let_tasks_end, thread

DURABILITIES = ["sync", "async", "exit"]


@dataclass
class World:
    """What the nodes of one thread have done outside, and who has failed already."""

    is_interrupted: bool
    effects: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def act(self, name: str) -> str:
        self.effects.append(name)
        return f"{name} made"

    def ask(self, text: str, *, has_update: bool) -> Any:
        """Ask; in a world without interruptions the answer is known."""
        if not self.is_interrupted:
            return text.upper()
        return interrupt(text, update={"log": []} if has_update else None)

    def fail(self, name: str) -> None:
        if self.is_interrupted and name not in self.failed:
            self.failed.add(name)
            raise ConnectionError(name)


@dataclass
class Maker:
    """Makes a graph of what a seed says."""

    driver: Driver
    world: World
    random: Random

    def graph(self, name: str, depth: int, **options: Any) -> CompiledGraph:
        """One or two layers of one or two nodes, some of which are graphs, or call them, or are sent."""
        random, builder = self.random, StateGraph(State)
        layers = [
            [f"{name}{layer}{place}" for place in range(random.randint(1, 2))] for layer in range(random.randint(1, 2))
        ]
        for node in [node for layer in layers for node in layer]:
            builder.add_node(node, self.node(node, depth), defer=random.random() < 0.1)
        for node in layers[0]:
            builder.add_edge(START, node)
        for above, below in pairwise(layers):
            self.link(builder, above, below)
        return builder.compile(**options)

    def link(self, builder: StateGraph, above: list[str], below: list[str]) -> None:
        kind = self.random.choice(["barrier", "edges", "choice", "send"])
        if kind == "barrier" and len(above) > 1:
            for target in below:
                builder.add_edge(above, target)
        elif kind == "choice":
            for place, source in enumerate(above):
                builder.add_conditional_edges(source, lambda state, place=place: below[place % len(below)], below)
        elif kind == "send":
            sent = [Send(target, {"log": []}) for target in below]
            builder.add_conditional_edges(above[0], lambda state: sent, below)
        else:
            for source, target in [(source, target) for source in above for target in below]:
                builder.add_edge(source, target)

    def node(self, name: str, depth: int) -> Any:
        kind = self.random.choice(["plain", "graph", "calls"]) if depth else "plain"
        if kind == "plain":
            return self.driver.node(self.plain(name))
        keeps = self.random.choice([None, None, None, False])
        calls = "x" if kind == "graph" else "xy"
        graphs = [self.graph(f"{name}{call}", depth - 1, checkpointer=keeps) for call in calls]
        return graphs[0] if kind == "graph" else self.calling(graphs)

    def calling(self, graphs: list[CompiledGraph]) -> Any:
        def call(state: State) -> dict[str, Any]:
            return {"log": [said for graph in graphs for said in graph.invoke({})["log"]]}

        async def acall(state: State) -> dict[str, Any]:
            return {"log": [said for graph in graphs for said in (await graph.ainvoke({}))["log"]]}

        return call if self.driver.name == "sync" else acall

    def plain(self, name: str) -> Any:
        random, world = self.random, self.world
        steps, questions = random.randint(0, 1), random.choice([0, 0, 1, 2])
        fails, has_update = random.random() < 0.15, random.random() < 0.2

        def node(state: State) -> dict[str, Any]:
            said: list[Any] = [name, *(step(world.act, name) for _ in range(steps))]
            said += [world.ask(f"{name}?{index}", has_update=has_update) for index in range(questions)]
            if fails:
                world.fail(name)
            return {"log": [said]}

        return node


def make(driver: Driver, world: World, seed: int, **options: Any) -> CompiledGraph:
    return Maker(driver, world, Random(seed)).graph("n", 2, **options)


def some_answers(graph: CompiledGraph, random: Random) -> Command[Any] | None:
    """Answer some of the open questions, at least one; or just go on when there are none."""
    questions = graph.get_state(thread()).interrupts
    some = random.sample(questions, random.randint(1, len(questions))) if questions else []
    return Command(resume={question.id: question.value.upper() for question in some}) if some else None


def one_leg(driver: Driver, graph: CompiledGraph, given: Any) -> Any:
    """Run until an end, a pause or a failure; return the result if there is one."""
    try:
        return driver.invoke(graph, given, thread())
    except ConnectionError:
        return None


def one_short_leg(graph: CompiledGraph, given: Any, random: Random) -> None:
    """Read a little of the stream, and leave."""
    stream = graph.stream(given, thread(), subgraphs=True)
    try:
        for _, _ in zip(range(random.randint(1, 4)), stream, strict=False):
            pass
    except ConnectionError:
        pass
    stream.close()
    let_tasks_end()


def in_pieces(driver: Driver, world: World, seed: int, opened: Any, *, leaves: bool) -> list[Any]:
    """Answer some questions at a time, try again what failed, leave; each time with the graph made anew."""
    random, given = Random(seed + 1), {"log": []}
    for _ in range(300):
        with opened() as store:
            graph = make(driver, world, seed, checkpointer=store, durability=random.choice(DURABILITIES))
            if leaves and random.random() < 0.3:
                one_short_leg(graph, given, random)
            else:
                result = one_leg(driver, graph, given)
                if result is not None and result.is_complete:
                    return result["log"]
            given = some_answers(graph, random)
            found = graph.get_state(thread())
            if found.created_at is not None and not found.next and not found.interrupts:
                return found.values["log"]
    raise AssertionError("the thread does not come to its end")


@pytest.mark.parametrize("seed", range(30))
def test_nested_graph_run_in_pieces_ends_as_if_run_in_one_go_and_makes_each_effect_once(driver: Driver, seed: int):
    calm, rough = World(is_interrupted=False), World(is_interrupted=True)
    expected = driver.invoke(make(driver, calm, seed), {"log": []})["log"]

    with MemorySaver() as store:
        found = in_pieces(driver, rough, seed, lambda: nullcontext(store), leaves=False)

    assert found == expected
    assert sorted(rough.effects) == sorted(calm.effects)


@pytest.mark.parametrize("seed", range(100, 110))
def test_nested_graph_that_is_left_and_opened_anew_ends_as_if_run_in_one_go(seed: int, tmp_path: Path):
    driver = Driver()
    calm, rough = World(is_interrupted=False), World(is_interrupted=True)
    expected = make(driver, calm, seed).invoke({"log": []})["log"]

    def opened() -> AbstractContextManager[Store]:
        return Store.open(f"sqlite:///{tmp_path / 'bide.db'}")

    found = in_pieces(driver, rough, seed, opened, leaves=True)

    assert found == expected
    assert sorted(rough.effects) == sorted(calm.effects)
