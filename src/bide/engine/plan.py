"""What comes next: from finished tasks to the tasks of the following step. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b

from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Origin, Outcome, Question, Task, Wait
from bide.types import END, START, UNSET, Send, WaitStatus

Place = str | Send


def targets_of(spec: GraphSpec, outcomes: Sequence[Outcome], full_joins: Iterable[str]) -> list[Place]:
    """Collect every place that the finished tasks lead to, in task order."""
    places: list[Place] = []
    for outcome in outcomes:
        node = spec.start if outcome.task.node == START else spec.nodes[outcome.task.node]
        places += node.edges
        places += outcome.routes
        places += outcome.goto
    for join in full_joins:
        places.append(spec.joins[join])
    return places


def plan(seq: int, places: Sequence[Place]) -> tuple[Task, ...]:
    """Make the tasks of the step after checkpoint `seq`: nodes by name, then `Send`s in the order they were sent.

    The order is the order in which writes are applied, so it depends on nothing but names.
    """
    if len(places) == 1 and places[0].__class__ is str:
        return () if places[0] == END else (Task(f"{seq}.{places[0]}", places[0]),)
    names = sorted({place for place in places if isinstance(place, str)} - {END})
    sends = [place for place in places if isinstance(place, Send)]
    return (
        *(Task(f"{seq}.{name}", name) for name in names),
        *(Task(f"{seq}/{index}.{send.node}", send.node, send.arg) for index, send in enumerate(sends)),
    )


def origins_of(outcomes: Sequence[Outcome]) -> tuple[Origin, ...]:
    """Remember what the next tasks came from, so that an edit can route again."""
    return tuple([Origin(outcome.task.id, outcome.task.node, outcome.goto) for outcome in outcomes])


def planned_at(task_id: str) -> int:
    """Return the checkpoint at which a task was planned: its id is `12.node`, or `12/3.node` for the fourth `Send`."""
    return int(task_id.partition(".")[0].partition("/")[0])


def replant(tasks: Sequence[Task], seq: int) -> tuple[Task, ...]:
    """Plan the same tasks anew under another checkpoint: a fork asks its own questions."""
    return plan(seq, [task.node if task.arg is UNSET else Send(task.node, task.arg) for task in tasks])


def held_before(
    nodes: frozenset[str], checkpoint: Checkpoint, waits: Sequence[Wait], begun: Collection[str], uid: str
) -> tuple[Question, ...]:
    """Return the static pauses that stand before the next tasks and were not passed yet."""
    fresh = [(task.id, task.node) for task in checkpoint.tasks if task.id not in begun]
    return _held("before", nodes, fresh, waits, uid)


def held_after(nodes: frozenset[str], checkpoint: Checkpoint, waits: Sequence[Wait], uid: str) -> tuple[Question, ...]:
    """Return the static pauses that stand after the tasks that led to this checkpoint."""
    return _held("after", nodes, [(origin.task_id, origin.node) for origin in checkpoint.origins], waits, uid)


def _held(
    kind: str, nodes: frozenset[str], tasks: Sequence[tuple[str, str]], waits: Sequence[Wait], uid: str
) -> tuple[Question, ...]:
    passed = {wait.question.id for wait in waits if wait.status is not WaitStatus.OPEN}
    questions = (
        Question(question_id(uid, task_id, f"@{kind}"), task_id, node, f"@{kind}", kind)
        for task_id, node in tasks
        if (node in nodes or "*" in nodes) and node != START
    )
    return tuple(question for question in questions if question.id not in passed)


def question_id(uid: str, task_id: str, key: str) -> str:
    """Name a question: the same at every replay, never shared with another question, thread or life of a thread."""
    return blake2b(f"{uid}|{task_id}|{key}".encode(), digest_size=16).hexdigest()
