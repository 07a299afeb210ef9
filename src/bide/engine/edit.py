"""`update_state`: change a thread from outside, without running it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from bide.engine.answers import answers_at
from bide.engine.apply import edited_checkpoint, next_checkpoint, rerouted
from bide.engine.opening import before_all, check_not_accepted, choose, fork_checkpoint, has_begun, reroute
from bide.engine.plan import Place, moved_id, question_id
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Edit, Load, Loaded, Outcome, Question, Task, Wait
from bide.errors import InvalidUpdateError, ThreadBusyError, UnknownThreadError
from bide.types import END, START, RunStatus

Editing = Generator[Any, Any, Checkpoint]
Write = tuple[str, Any]


class Change(NamedTuple):
    """One update from outside, and the node that is taken to have returned it."""

    values: Any
    as_node: str | None = None


def edit(spec: GraphSpec, changes: Sequence[Change], seq: int | None) -> Editing:
    """Merge updates into the thread as if their nodes had returned them; without a node, the plan stays as it is.

    Without `as_node`, open questions stay open and keep their ids, and conditional edges that led here choose again on
    the new state. With it, the thread stands after that node, and questions of other tasks are cancelled.
    """
    loaded: Loaded = yield Load(seq)
    check_idle(loaded)
    if len(changes) > 1 and any(change.as_node is None for change in changes):
        raise InvalidUpdateError("Several updates in one step must each say as_node=….")
    as_node = changes[0].as_node
    if as_node is None and loaded.checkpoint is not None:
        checkpoint, changed = yield from _beside(spec, loaded, loaded.checkpoint, read_writes(spec, changes[0].values))
        forget = loaded.checkpoint.seq != loaded.head
    else:
        checkpoint, changed = yield from _as_nodes(spec, loaded, changes)
        forget = not _keeps_plan(loaded, checkpoint)
        if not forget and loaded.checkpoint is not None:
            checkpoint = checkpoint._replace(tasks=loaded.checkpoint.tasks, origins=loaded.checkpoint.origins)
    yield Edit(loaded, checkpoint, changed, forget)
    return checkpoint


def fork(
    spec: GraphSpec, values: Any, answers: Any, seq: int | None, read_asked: Callable[[], Sequence[Wait]]
) -> Editing:
    """Begin a branch at a checkpoint, with what was asked there answered as is said now."""
    loaded: Loaded = yield Load(seq)
    check_idle(loaded)
    old = before_all(spec) if seq == 0 and loaded.head else loaded.checkpoint
    if old is None:
        raise UnknownThreadError(f"There is no thread {loaded.thread_id!r} to fork.")
    writes = read_writes(spec, values)
    checkpoint, changed = fork_checkpoint(spec, loaded, old, writes)
    asked = [wait.question for wait in read_asked()] if answers is not None else []
    given = answers_at(old, asked, answers) if answers is not None else []
    if writes and not given:
        checkpoint = yield from reroute(spec, checkpoint)
    moved = tuple((moved_question(question, old, checkpoint, loaded.uid or ""), answer) for question, answer in given)
    yield Edit(loaded, checkpoint, changed, True, moved)
    return checkpoint


def check_idle(loaded: Loaded) -> None:
    """Refuse to change a thread that runs."""
    check_not_accepted(loaded)
    if loaded.run is not None and loaded.run.status is RunStatus.RUNNING and not loaded.run.is_orphan:
        raise ThreadBusyError(
            "The thread has a run under way, so it cannot be edited now. Wait until it pauses or ends, and try again."
        )


def moved_question(question: Question, old: Checkpoint, new: Checkpoint, uid: str) -> Question:
    """Return the question as the same task of a forked step asks it; a fork's tasks have ids of their own."""
    task_id = moved_id(old.tasks, new.tasks, question.task_id)
    return question._replace(id=question_id(uid, task_id, question.key), task_id=task_id)


def read_writes(spec: GraphSpec, values: Any) -> list[Write]:
    """Read an edit: the keys of the state, and nothing else."""
    if values is None:
        return []
    pairs = spec.read_update(values)
    if pairs is None:
        raise InvalidUpdateError(
            f"update_state got {values!r}. Give a dict of state keys, or None to change only the plan."
        )
    spec.check_keys(pairs, "update_state got")
    return list(pairs.items())


def _beside(
    spec: GraphSpec, loaded: Loaded, old: Checkpoint, writes: Sequence[Write]
) -> Generator[Any, Any, tuple[Checkpoint, frozenset[str]]]:
    """Edit without moving: at the head the tasks keep their ids; at an older checkpoint the edit is a fork."""
    if old.seq != loaded.head:
        checkpoint, changed = fork_checkpoint(spec, loaded, old, writes, source="update")
    else:
        checkpoint, changed = edited_checkpoint(spec, old, writes, source="update")
        checkpoint = checkpoint._replace(seq=old.seq + 1, parent=old.seq, source="update", created_at=None)
    if writes and not has_begun(loaded):
        checkpoint = yield from reroute(spec, checkpoint)
    return checkpoint, changed


def _as_nodes(
    spec: GraphSpec, loaded: Loaded, changes: Sequence[Change]
) -> Generator[Any, Any, tuple[Checkpoint, frozenset[str]]]:
    """Stand where the thread would stand if these nodes had just returned these updates."""
    nodes = [START if change.as_node in (None, "__input__") else change.as_node for change in changes]
    for name in nodes:
        if name not in spec.nodes and name not in (START, END):
            known = ", ".join(map(repr, spec.nodes))
            raise InvalidUpdateError(f"update_state(as_node={name!r}): there is no such node. Known nodes: {known}.")
    writes = [read_writes(spec, change.values) for change in changes]
    base = loaded.checkpoint or Checkpoint(0, None, -1, "", spec.initial(), (), ())
    before = base._replace(seq=loaded.head)
    if END in nodes:
        every = [write for own in writes for write in own]
        checkpoint, changed = edited_checkpoint(spec, before, every, source="update")
        checkpoint = checkpoint._replace(seq=loaded.head + 1, source="update", step=base.step + 1, tasks=(), origins=())
    else:
        tasks = [Task(f"{base.prefix}{loaded.head}.{name}", name) for name in nodes]
        outcomes = [Outcome(task, tuple(own)) for task, own in zip(tasks, writes, strict=True)]
        checkpoint, changed = next_checkpoint(spec, before, outcomes, source="update")
        checkpoint = yield from _routed(spec, checkpoint, tasks)
    parent = None if loaded.checkpoint is None else loaded.checkpoint.seq
    return checkpoint._replace(parent=parent, created_at=None), changed


def _routed(spec: GraphSpec, checkpoint: Checkpoint, tasks: Sequence[Task]) -> Editing:
    """Let the conditional edges of these nodes choose, if they have any."""
    nodes = {task.id: spec.start if task.node == START else spec.nodes[task.node] for task in tasks}
    choosing = [task for task in tasks if nodes[task.id].branches]
    if not choosing:
        return checkpoint
    places: list[Place] = [edge for task in tasks for edge in nodes[task.id].edges]
    places += yield from choose(checkpoint, choosing)
    places += [planned.node for planned in checkpoint.tasks if planned.node in spec.joins.values()]
    return rerouted(spec, checkpoint, places)


def _keeps_plan(loaded: Loaded, checkpoint: Checkpoint) -> bool:
    """Whether the thread stands before the same nodes, none of which has begun: then its pause is the same."""
    old = loaded.checkpoint
    if old is None or old.seq != loaded.head or loaded.results:
        return False
    return old.next == checkpoint.next and all(wait.question.is_static for wait in loaded.waits)


__all__ = ["Change", "Editing", "check_idle", "edit", "fork", "read_writes"]
