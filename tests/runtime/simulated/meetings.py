"""Facts and those who wait for them meet: before, after, and while the waits are being registered.

One trial is a few threads with a tree of conditions each, and a few facts; all of it happens at once, in an order that
`choose` decides at every transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from bide import END, START, StateGraph, Store, all_of, any_of, quorum, wait_for
from bide.testing import FakeClock
from bide.types import RunStatus, WaitStatus
from bide.waits import email, event
from tests.runtime.simulated.process import Process
from tests.runtime.simulated.simulation import empty_database
from tests.runtime.simulated.stage import Actor, Stage, breathe

NAMES = ("a", "b", "c")
Choose = Callable[[int], int]
"""Returns a number from 0 to below what it is given."""


class Waiting(TypedDict, total=False):
    tree: Any
    got: Any


class Trial(NamedTuple):
    """What meets: trees of conditions, one for each thread, and facts by name and id."""

    trees: list[Any]
    facts: list[tuple[str, str]]


def hear(state: Waiting) -> Waiting:
    reply = wait_for(condition(state["tree"]))
    return {"got": reply.value if not isinstance(reply.value, dict) else "several"}


GRAPH = StateGraph(Waiting).add_node(hear).add_edge(START, "hear").add_edge("hear", END).compile(name="hears")


def condition(tree: Any) -> Any:
    """The condition that a tree means: a leaf is a name, and whether it wants the fact for itself."""
    kind, rest = tree[0], tree[1:]
    if kind == "event":
        return event(rest[0], exclusive=rest[1])
    if kind == "mail":
        return email(**rest[0], exclusive=True)
    parts = [condition(part) for part in rest[-1]]
    if kind == "quorum":
        return quorum(rest[0], *parts)
    return (any_of if kind == "any" else all_of)(*parts)


def a_trial(choose: Choose) -> Trial:
    """Draw a trial."""
    is_exclusive = bool(choose(2))
    trees = [_tree(choose, 2, is_exclusive) for _ in range(1 + choose(2))]
    facts = [(NAMES[choose(len(NAMES))], str(number)) for number in range(1 + choose(5))]
    again = [fact for fact in facts if not choose(4)]
    return Trial(trees, facts + again)


def _tree(choose: Choose, deep: int, is_exclusive: bool) -> Any:
    kind = choose(4) if deep else 0
    if kind == 0:
        return ["event", NAMES[choose(len(NAMES))], is_exclusive and bool(choose(2))]
    parts = [_tree(choose, deep - 1, is_exclusive) for _ in range(2 + choose(2))]
    if kind == 3:
        return ["quorum", 1 + choose(len(parts)), parts]
    return ["any" if kind == 1 else "all", parts]


def meet(trial: Trial, choose: Choose) -> None:
    """Let all of it happen, in some order, and check that nothing was lost and nothing came twice."""
    database, clock = empty_database(), FakeClock()
    process = Process("p", database, clock, [GRAPH], lambda point: False, Counter())
    try:
        _play(process, trial, choose)
        while process.app.run_ready(most=10):
            pass
        check_meeting(process.store, trial)
        found = process.store.verify()
        assert found.is_sound, str(found)
    finally:
        database.close()


def _play(process: Process, trial: Trial, choose: Choose) -> None:
    app = process.app

    def drive() -> None:
        for _ in range(2 * len(trial.trees)):
            app.run_ready(most=1)
            breathe()

    stories: list[Callable[[], Any]] = [drive, drive]
    for number, tree in enumerate(trial.trees):
        stories.append(lambda number=number, tree=tree: app.start("hears", {"tree": tree}, thread_id=f"t{number}"))
    for name, id_ in trial.facts:
        stories.append(lambda name=name, id_=id_: app.deliver(name, id_, source="world", external_id=id_))
    actors = [Actor(str(number), story) for number, story in enumerate(stories)]

    def director(actor: Actor | None) -> Actor | None:
        if actor is not None and actor.is_over:
            actors.remove(actor)
            if actor.error is not None:
                raise actor.error
        return actors[choose(len(actors))] if actors else None

    Stage().play(director)


def check_meeting(store: Store, trial: Trial, prefix: str = "") -> None:
    """Whoever still waits has no use for any fact that came; whoever was woken was woken once, by facts of its own."""
    facts = [one for one in store.deliveries(most=len(trial.facts)) if one[1].name.startswith(prefix)]
    waits = [_look_at(store, f"{prefix}t{number}", facts, trial) for number in range(len(trial.trees))]
    taken = Counter(delivery_id for wait in waits for delivery_id in wait)
    assert all(count == 1 for count in taken.values()), f"a fact was taken by two: {trial}"
    assert not any(row.is_pending for row, _ in facts)


def _look_at(store: Store, thread_id: str, facts: list[Any], trial: Trial) -> list[str]:
    """Check the wait of a thread; return the facts that it has taken for itself."""
    (wait,) = store.waits_of(thread_id)
    leaves = [
        Leaf(*row) for row in store.database.read(lambda tx: tx.all("read_conditions", {"wait_id": wait.wait_id}))
    ]
    used = [leaf.delivery_id for leaf in leaves if leaf.delivery_id is not None]
    assert len(set(used)) == len(used), f"one fact counts for one leaf of a wait: {trial}"
    answers = [event.kind for event in store.events(thread_id)].count("wait.answered")
    is_waiting = wait.status is WaitStatus.OPEN
    assert answers == (not is_waiting), f"{thread_id} is {wait.status} and was answered {answers} times: {trial}"
    (run,) = store.runs(thread_id)
    assert (run.status is RunStatus.WAITING) == is_waiting, (
        f"{thread_id} is {run.status}, its wait {wait.status}: {trial}"
    )
    for leaf in leaves:
        for row, fact in facts if leaf.is_open else ():
            is_wanted = leaf.correlation.endswith(fact.name) and row.delivery_id not in used
            is_free = not leaf.exclusive or row.taken_by is None
            assert not (is_wanted and is_free), f"{thread_id} waits for {fact.name!r}, which is there: {trial}"
        assert is_waiting or not leaf.is_open, f"{thread_id} was answered, and a leaf is open: {trial}"
    return [leaf.delivery_id for leaf in leaves if leaf.exclusive and leaf.delivery_id is not None]


class Leaf(NamedTuple):
    """A row of a condition."""

    number: int
    kind: str
    correlation: str
    due_at: int | None
    is_open: int
    exclusive: int
    delivery_id: str | None
    wake: bytes | None
