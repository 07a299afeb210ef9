"""The world around a thread: what its nodes do outside, and the nodes themselves, made from plans."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from bide import END, START, CompiledGraph, Done, Interrupt, NotDone, RetryPolicy, Send, StateGraph, interrupt, step
from tests.simulation.graphs import Act, Ask, Fail, GraphPlan, NodePlan, Step

GENTLE = RetryPolicy(max_attempts=2, initial_interval=1, jitter=False)


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    """What every node said, in the order of the steps: the same in every world."""
    notes: Annotated[list[str], operator.add]
    """What came with questions, and by edits: the same lines in every world, each once, in any order."""


FIRST_INPUT: State = {"log": ["in"], "notes": []}


class Breath:
    """A moment at which others may go on; a single-threaded world hands over here, an event loop does so, too."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def answer_to(question: Any) -> str:
    return f"answer to {question}"


class World:
    """What happens outside of the thread, and is not undone when a worker dies."""

    def __init__(self, *, is_calm: bool, is_stale: Callable[[], bool] = lambda: False) -> None:
        self.is_calm = is_calm
        self.is_stale = is_stale
        """Whether the code that runs right now belongs to a worker whose run was taken over."""
        self.ledger: dict[str, str] = {}
        """Idempotency key → what was done: as a bank keeps it, each key once."""
        self.calls: Counter[str] = Counter()
        self.reported: set[str] = set()
        """Effects of steps that have returned: none of these may ever be made again."""
        self.failed: set[str] = set()
        self.offences: list[str] = []

    @property
    def effects(self) -> Counter[str]:
        """How often each thing was done."""
        return Counter(self.ledger.values())

    def act(self, label: str, effect: str, key: str) -> list[str]:
        """Do something outside."""
        if key in self.reported and not self.is_stale():
            self.offences.append(f"{label} was made again, though its step had returned")
        self.calls[key] += 1
        if effect == "tx" and self.calls[key] > 1:
            self.offences.append(f"{label} was made twice in the store's own transactions")
        self.ledger[key] = label
        return [label, key]

    def has_happened(self, key: str) -> Done | NotDone:
        """Say what became of a step in doubt."""
        return Done([self.ledger[key], key]) if key in self.ledger else NotDone()

    def report(self, made: list[str]) -> str:
        """Note that a step has returned."""
        label, key = made
        self.reported.add(key)
        return label

    def stumble(self, where: str) -> None:
        """Fail, the first time."""
        if not self.is_calm and where not in self.failed:
            self.failed.add(where)
            raise ConnectionError(where)


# ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Visit:
    """One run of a node through its plan."""

    def __init__(self, plan: NodePlan, world: World) -> None:
        self.plan = plan
        self.world = world
        self.said: list[Any] = [plan.path]
        self.notes: list[str] = []

    def do(self, act: Act) -> None:
        """Do what needs no waiting."""
        if isinstance(act, Fail):
            self.world.stumble(f"{self.plan.path}.{act.number}")
        elif isinstance(act, Ask):
            self.said.append(self._ask(act))
        else:
            self.said.append(self.world.report(self._step(act)))

    def _step(self, act: Step) -> Any:
        def made(label: str, *, idempotency_key: str) -> list[str]:
            return self.world.act(label, act.effect, idempotency_key)

        def made_with(connection: Any, label: str, *, idempotency_key: str) -> list[str]:
            return self.world.act(label, act.effect, idempotency_key)

        # A world without a store has no transactions either.
        is_tx = act.effect == "tx" and not self.world.is_calm
        return step(made_with if is_tx else made, self._label(act), **self._manner(act, is_tx=is_tx))

    async def do_slowly(self, act: Act) -> None:
        """Do it, and let others go on before, in the middle, and after."""
        await Breath()
        if not isinstance(act, Step) or act.effect == "tx":
            self.do(act)
            return

        async def made(label: str, *, idempotency_key: str) -> list[str]:
            await Breath()
            result = self.world.act(label, act.effect, idempotency_key)
            await Breath()
            return result

        self.said.append(self.world.report(await step(made, self._label(act), **self._manner(act, is_tx=False))))

    def _label(self, act: Step) -> str:
        return f"{self.plan.path}.{act.number}"

    def _manner(self, act: Step, *, is_tx: bool) -> dict[str, Any]:
        effect = "tx" if is_tx else "once" if act.effect == "once" else "idempotent"
        key = f"step {act.number}" if act.is_keyed else None
        return {"key": key, "effect": effect, "verify": self.world.has_happened if effect == "once" else None}

    def _ask(self, act: Ask) -> Any:
        question = f"{self.plan.path}?{act.number}"
        note = [f"note at {question}"] if act.has_update else []
        if self.world.is_calm:
            self.notes += note
            return answer_to(question)
        return interrupt(
            question,
            key=f"key {act.number}" if act.is_keyed else None,
            update={"notes": note} if note else None,
            response_schema={"type": "string"} if act.has_schema else None,
        )

    def result(self) -> Any:
        update = {"log": [self.said], "notes": self.notes}
        asks = self.plan.asks_after and not self.world.is_calm
        return [update, Interrupt(f"{self.plan.path}?after")] if asks else update


def a_node(plan: NodePlan, world: World) -> Callable[[State], Any]:
    def node(state: State) -> Any:
        visit = _Visit(plan, world)
        for act in plan.acts:
            visit.do(act)
        return visit.result()

    return node


def a_slow_node(plan: NodePlan, world: World) -> Callable[[State], Any]:
    async def node(state: State) -> Any:
        visit = _Visit(plan, world)
        for act in plan.acts:
            await visit.do_slowly(act)
        await Breath()
        return visit.result()

    return node


# ── Graphs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def build(plan: GraphPlan, world: World, *, is_async: bool, checkpointer: Any = None) -> CompiledGraph:
    """Make the graph of a plan, for one world. Static pauses are left to whoever calls it."""
    builder = StateGraph(State)
    for node in plan.nodes:
        builder.add_node(
            node.name,
            _action(node, world, is_async=is_async),
            defer=node.is_deferred,
            retry_policy=GENTLE if node.has_retry else None,
        )
    for node in plan.layers[0]:
        builder.add_edge(START, node.name)
    for (above, below), kind in zip(pairwise(plan.layers), plan.links, strict=True):
        _link(builder, above, below, kind)
    if plan.rounds > 1:
        _lead_back(builder, plan)
    return builder.compile(checkpointer)


def _action(node: NodePlan, world: World, *, is_async: bool) -> Any:
    if node.inner is not None:
        return build(node.inner, world, is_async=is_async, checkpointer=None if node.inner.is_saved else False)
    return a_slow_node(node, world) if is_async else a_node(node, world)


def _link(builder: StateGraph, above: Sequence[NodePlan], below: Sequence[NodePlan], kind: str) -> None:
    names = [node.name for node in below]
    if kind == "barrier" and len(above) > 1:
        for name in names:
            builder.add_edge([node.name for node in above], name)
    elif kind in ("edges", "barrier"):
        for node in above:
            for name in names:
                builder.add_edge(node.name, name)
    else:
        for node in above:
            router = _sender(node, names) if kind == "sends" else _chooser(node, names)
            builder.add_conditional_edges(node.name, router, names)


def visits(state: State, node: NodePlan) -> int:
    """Count what a node has said so far. No sibling changes it, so a choice by it is the same whenever it is made."""
    own = (said[0] for said in state["log"] if isinstance(said, list))
    return sum(path == node.path or path.startswith(f"{node.path}/") for path in own)


def _chooser(node: NodePlan, names: Sequence[str]) -> Callable[[State], str]:
    return lambda state: names[visits(state, node) % len(names)]


def _sender(node: NodePlan, names: Sequence[str]) -> Callable[[State], list[Send]]:
    def send(state: State) -> list[Send]:
        copies = 1 + visits(state, node) % 2
        return [Send(name, {"log": [f"from {node.path}"], "notes": []}) for name in names for _ in range(copies)]

    return send


def _lead_back(builder: StateGraph, plan: GraphPlan) -> None:
    """Lead from the last layer to the first, a few times; each visit says something, so it comes to an end."""
    last, first = plan.layers[-1][0], plan.layers[0][0]
    rounds = plan.rounds

    def again(state: State) -> str:
        return first.name if visits(state, last) < rounds else END

    builder.add_conditional_edges(last.name, again, [first.name, END])


def calm_end(plan: GraphPlan) -> tuple[list[Any], list[str], Counter[str]]:
    """Run the graph in one go, with every question answered at once: what it must come to in any other world."""
    world = World(is_calm=True)
    state = build(plan, world, is_async=False).invoke(FIRST_INPUT, {"recursion_limit": 1000})
    return state["log"], sorted(state["notes"]), world.effects
