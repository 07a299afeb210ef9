"""Any graph: run in pieces, with questions, failures, declared pauses and edits between, it ends as if run in one go.

Graphs and the ways through them are drawn from a seed, so a failure names the case that shows it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Interrupt, StateGraph, Store, interrupt, step
from tests.threads import thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@dataclass(frozen=True)
class Plan:
    """What one node does."""

    name: str
    steps: int
    questions: int
    has_keys: bool
    gives_update: bool
    fails: str
    """`first`: before anything · `last`: when all is done · `never`."""
    asks_after: bool
    """Whether it also returns a question."""


@dataclass
class World:
    """What the nodes of one thread have done outside, and who has failed already."""

    is_interrupted: bool
    effects: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)


def a_plan(name: str, random: Random) -> Plan:
    return Plan(
        name,
        steps=random.choice([0, 1, 2]),
        questions=random.choice([0, 0, 1, 2]),
        has_keys=random.random() < 0.5,
        gives_update=random.random() < 0.3,
        fails=random.choice(["first", "last", "never", "never", "never"]),
        asks_after=random.random() < 0.15,
    )


def a_node(plan: Plan, world: World) -> Any:
    """A node that does what its plan says; in a world without interruptions it answers its questions itself."""

    def act(index: int) -> str:
        world.effects.append(f"{plan.name}.{index}")
        return f"effect {index}"

    def ask(index: int) -> Any:
        question = f"{plan.name}?{index}"
        if not world.is_interrupted:
            return answer_to(question)
        key = f"key {index}" if plan.has_keys else None
        return interrupt(question, key=key, update={"log": []} if plan.gives_update else None)

    def fail(when: str) -> None:
        if world.is_interrupted and plan.fails == when and plan.name not in world.failed:
            world.failed.add(plan.name)
            raise ConnectionError(plan.name)

    def node(state: Log) -> Any:
        fail("first")
        said = [plan.name, *(step(act, index) for index in range(plan.steps)), *map(ask, range(plan.questions))]
        fail("last")
        update = {"log": [said]}
        return [update, Interrupt(f"{plan.name}?after")] if plan.asks_after and world.is_interrupted else update

    return node


def answer_to(question: str) -> str:
    return f"answer to {question}"


def a_graph(random: Random, world: World, store: Store | None) -> CompiledGraph:
    """Two to four layers of nodes; each layer is joined to the next by a barrier, by every edge, or by a choice."""
    layers = [
        [a_plan(f"n{depth}{place}", random) for place in range(random.randint(1, 3))]
        for depth in range(random.randint(2, 4))
    ]
    builder = StateGraph(Log)
    for plan in [plan for layer in layers for plan in layer]:
        builder.add_node(plan.name, a_node(plan, world))
    for plan in layers[0]:
        builder.add_edge(START, plan.name)
    for above, below in pairwise(layers):
        link(builder, [plan.name for plan in above], [plan.name for plan in below], random)
    guarded = [plan.name for layer in layers for plan in layer if random.random() < 0.15]
    where = random.choice(["interrupt_before", "interrupt_after"])
    return builder.compile(store, **({where: guarded} if store is not None else {}))


def link(builder: StateGraph, above: list[str], below: list[str], random: Random) -> None:
    kind = random.choice(["barrier", "edges", "choice"])
    for target in below:
        if kind == "barrier" and len(above) > 1:
            builder.add_edge(above, target)
        elif kind != "choice":
            for source in above:
                builder.add_edge(source, target)
    if kind == "choice":
        for place, source in enumerate(above):
            builder.add_conditional_edges(source, lambda state, place=place: below[place % len(below)], below)


def in_pieces(graph: CompiledGraph, random: Random) -> list[Any]:
    """Go through the thread as impatient people would: some answers at a time, retries, and edits in between."""
    given: Any = {"log": []}
    for _ in range(200):
        config = thread(max_concurrency=random.choice([1, 8]))
        try:
            result = graph.invoke(given, config, durability=random.choice(["sync", "async", "exit"]))
        except ConnectionError:
            given = an_answer(graph, random) if random.random() < 0.5 else None
            continue
        if result.is_complete:
            return result["log"]
        assert result.interrupts == graph.get_state(thread()).interrupts
        if random.random() < 0.2:
            graph.update_state(thread(), {"log": []})
        given = an_answer(graph, random)
    raise AssertionError("the thread does not come to its end")


def an_answer(graph: CompiledGraph, random: Random) -> Command | None:
    """Answer some of the open questions, at least one; or just go on when there are none."""
    questions = graph.get_state(thread()).interrupts
    some = random.sample(questions, random.randint(1, len(questions))) if questions else []
    return Command(resume={question.id: answer_to(question.value) for question in some}) if some else None


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.parametrize("seed", range(60))
def test_graph_run_in_pieces_ends_as_if_run_in_one_go_and_makes_each_effect_once(store: Store, seed: int):
    calm, rough = World(is_interrupted=False), World(is_interrupted=True)
    expected = a_graph(Random(seed), calm, None).invoke({"log": []})["log"]

    found = in_pieces(a_graph(Random(seed), rough, store), Random(seed + 1))

    assert found == expected
    assert sorted(rough.effects) == sorted(calm.effects)
