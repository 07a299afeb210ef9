"""Random graphs, as plain plans: what each node does, and how they are joined. Drawn by dice, or by Hypothesis.

A plan is data, so the same graph can be built twice: once for a calm world, where nothing goes wrong and every question
is answered at once, and once for a rough one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """Whoever makes the choices."""

    def integer(self, least: int, most: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...

    def chance(self, percent: int) -> bool: ...


class Dice:
    """Choices from a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def integer(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent


# ── What a node does ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Step:
    """A journaled call."""

    number: int
    effect: str
    is_keyed: bool


@dataclass(frozen=True)
class Ask:
    """A question."""

    number: int
    is_keyed: bool
    has_update: bool
    has_schema: bool


@dataclass(frozen=True)
class Fail:
    """A failure that passes: only the first time around, for the whole life of a thread."""

    number: int


Act = Step | Ask | Fail


@dataclass(frozen=True)
class NodePlan:
    """One node: a list of things to do, or a graph."""

    name: str
    path: str
    """Its name under the names of the graphs around it."""
    acts: tuple[Act, ...] = ()
    asks_after: bool = False
    """Whether it returns a question beside its update."""
    has_retry: bool = False
    is_deferred: bool = False
    inner: GraphPlan | None = None


@dataclass(frozen=True)
class GraphPlan:
    """Layers of nodes; each is joined to the next by a barrier, by every edge, by a choice, or by `Send`s."""

    layers: tuple[tuple[NodePlan, ...], ...]
    links: tuple[str, ...]
    rounds: int = 1
    """How often the last layer leads back to the first."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_saved: bool = True
    """Whether a graph inside another is saved; one that is not is run anew at every resume."""

    @property
    def nodes(self) -> Iterator[NodePlan]:
        return (node for layer in self.layers for node in layer)

    @property
    def deepest(self) -> int:
        return 1 + max((node.inner.deepest for node in self.nodes if node.inner is not None), default=0)


DEEPEST = 3
LINKS = ("edges", "barrier", "choice", "sends")


def a_graph(choose: Chooser, around: str = "", depth: int = 1, *, is_saved: bool = True) -> GraphPlan:
    """Draw a graph; the deeper it lies inside others, the smaller."""
    layers = tuple(
        tuple(
            _a_node(choose, f"n{row}{'abc'[place]}", around, depth, is_saved=is_saved)
            for place in range(choose.pick((1, 1, 2, 3) if depth == 1 else (1, 2)))
        )
        for row in range(choose.integer(1, 4 if depth == 1 else 2))
    )
    links: list[str] = []
    for _ in layers[1:]:
        # Where a node may run several times in one step, a choice by what it has said would depend on its siblings.
        links.append(choose.pick(("edges", "barrier") if links and links[-1] == "sends" else LINKS))
    names = [node.name for layer in layers for node in layer]
    guarded = tuple(name for name in names if choose.chance(15)) if depth == 1 else ()
    is_before = bool(guarded) and choose.chance(50)
    is_sent_to = bool(links) and links[-1] == "sends"
    return GraphPlan(
        layers,
        tuple(links),
        rounds=choose.integer(1, 3) if choose.chance(30) and not is_sent_to else 1,
        before=guarded if is_before else (),
        after=() if is_before else guarded,
        is_saved=is_saved,
    )


def _a_node(choose: Chooser, name: str, around: str, depth: int, *, is_saved: bool) -> NodePlan:
    path, has_retry = around + name, choose.chance(20)
    is_deferred = choose.chance(10)
    if depth < DEEPEST and choose.chance(15):
        inner = a_graph(choose, f"{path}/", depth + 1, is_saved=is_saved and not choose.chance(20))
        return NodePlan(name, path, has_retry=has_retry, is_deferred=is_deferred, inner=inner)
    acts = tuple(_an_act(choose, number, is_saved=is_saved) for number in range(choose.integer(0, 3)))
    asks_after = is_saved and choose.chance(12)
    return NodePlan(name, path, acts, asks_after, has_retry=has_retry, is_deferred=is_deferred)


def _an_act(choose: Chooser, number: int, *, is_saved: bool) -> Act:
    kind = choose.pick(("step", "step", "ask", "ask", "fail"))
    if kind == "step":
        return Step(number, choose.pick(("idempotent", "idempotent", "once", "tx")), choose.chance(50))
    if kind == "ask":
        # What a graph that is not saved writes at a pause is gone with the rest of its state.
        return Ask(number, choose.chance(50), is_saved and choose.chance(40), choose.chance(30))
    return Fail(number)
