"""What comes next: from finished tasks to the tasks of the following step. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Origin, Outcome, Question, Task, Wait
from bide.errors import InvalidUpdateError
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


def plan(prefix: str, seq: int, places: Sequence[Place]) -> tuple[Task, ...]:
    """Make the tasks of the step after checkpoint `seq`: nodes by name, then `Send`s in the order they were sent.

    The order is the order in which writes are applied, so it depends on nothing but names. A graph inside a task has
    that task's path as `prefix`: `12.team|3.ask` is the task `ask`, planned at checkpoint 3 of the graph that runs in
    `12.team`. So the tasks of a thread are one tree, and their ids say where they stand in it.
    """
    if len(places) == 1 and places[0].__class__ is str:
        return () if places[0] == END else (Task(f"{prefix}{seq}.{places[0]}", places[0]),)
    names = sorted({place for place in places if isinstance(place, str)} - {END})
    sends = [place for place in places if isinstance(place, Send)]
    return (
        *(Task(f"{prefix}{seq}.{name}", name) for name in names),
        *(
            Task(f"{prefix}{seq}/{index}.{send.node}", send.node, send.arg, send.timeout)
            for index, send in enumerate(sends)
        ),
    )


def checked_places(spec: GraphSpec, places: Sequence[Any], where: str) -> list[Place]:
    """Refuse destinations that are no nodes: a typo must not end a run in silence."""
    for place in places:
        name = place.node if isinstance(place, Send) else place
        if not isinstance(name, str):
            raise InvalidUpdateError(
                f"{where} leads to {place!r} ({type(place).__name__}). Give a node's name, a Send, or a list of them."
            )
        if name not in spec.nodes and (name != END or isinstance(place, Send)):
            known = ", ".join(repr(known) for known in spec.nodes)
            raise InvalidUpdateError(f"{where} leads to {name!r}, which is no node. Known nodes: {known}, and END.")
    return list(places)


def origins_of(outcomes: Sequence[Outcome]) -> tuple[Origin, ...]:
    """Remember what the next tasks came from, so that an edit can route again."""
    return tuple([Origin(outcome.task.id, outcome.task.node, outcome.goto) for outcome in outcomes])


def planned_at(task_id: str) -> int:
    """Return the checkpoint at which a task was planned: its id is `12.node`, or `12/3.node` for the fourth `Send`."""
    return int(task_id.rpartition("|")[2].partition(".")[0].partition("/")[0])


def replant(prefix: str, seq: int, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Plan the same tasks anew under another checkpoint: a fork asks its own questions."""
    return plan(
        prefix,
        seq,
        [task.node if task.arg is UNSET else Send(task.node, task.arg, timeout=task.timeout) for task in tasks],
    )


def branch_of(prefix: str, task_id: str) -> str:
    """Return the task of the graph with this prefix under which another task stands: itself, or the one around it."""
    inner = task_id[len(prefix) :]
    for index, letter in enumerate(inner):
        if letter in "|:":
            return prefix + inner[:index]
    return task_id


def shown_element(element: str) -> tuple[str, ...]:
    """Write one element of a task's path as readers of streams know it: `team:12`, and a number for a further call."""
    task, _, call = element.partition(":")
    number, _, node = task.partition(".")
    return (f"{node}:{number}", call) if call else (f"{node}:{number}",)


def moved_id(old: Sequence[Task], new: Sequence[Task], task_id: str) -> str:
    """Return the id that a task, or one inside it, has after the step was planned anew: a fork has its own ids."""
    for was, now in zip(old, new, strict=True):
        if task_id == was.id or task_id.startswith((f"{was.id}|", f"{was.id}:")):
            return now.id + task_id[len(was.id) :]
    raise LookupError(f"{task_id!r} is no task of this step")


def place_in_tree(question: Question) -> tuple[Any, ...]:
    """Say where a question stands among all of a thread, as something to sort by.

    That is the place of its task at each level: nodes by name, then `Send`s in the order they were sent; tasks that
    code has started in the order of the calls. What a task asks itself comes after what it had called, in the order in
    which it was asked; questions with keys come last, by key.
    """
    calls = iter(question.place)
    levels = [_place_of(element, calls) for element in question.task_id.replace(":", "|").split("|")]
    number = question.key.removeprefix("#")
    is_counted = number != question.key and number.isdecimal()
    return *levels, (2, int(number), "") if is_counted else (3, 0, question.key)


def _place_of(element: str, calls: Iterator[int]) -> tuple[int, int, str]:
    planned, _, name = element.partition(".")
    if name:
        send = planned.partition("/")[2]
        return (1, int(send), name) if send else (0, 0, name)
    started, hash_, number = element.rpartition("#")
    return (0, next(calls, int(number)), started) if hash_ else (0, int(element), "")


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
