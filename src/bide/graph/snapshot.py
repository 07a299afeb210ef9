"""`StateSnapshot`s: a thread as it stands now, or as it stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import iso
from bide.engine.apply import merge
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Loaded, Task, Wait
from bide.graph.door import shown_config
from bide.graph.pages import in_task_order
from bide.graph.streaming import state_of, update_of
from bide.types import UNSET, Interrupt, StateSnapshot, TaskSnapshot


def empty_snapshot(thread_id: str | None) -> StateSnapshot:
    """Show a thread that does not exist."""
    return StateSnapshot({}, (), {"configurable": {"thread_id": thread_id}}, None, None, None, (), ())


def live_snapshot(spec: GraphSpec, thread_id: str, loaded: Loaded) -> StateSnapshot:
    """Show the head: finished siblings count as done, answered questions as answered."""
    checkpoint = loaded.checkpoint
    assert checkpoint is not None
    finished = [loaded.results[task.id] for task in checkpoint.tasks if task.id in loaded.results]
    seen = checkpoint
    if finished:
        writes: dict[str, list[Any]] = {}
        for outcome in finished:
            for key, value in outcome.writes:
                writes.setdefault(key, []).append(value)
        values, _ = merge(spec, checkpoint, writes, finished, keep_fleeting=True)
        seen = checkpoint._replace(values=values)
    tasks = tuple(_task(task, loaded) for task in checkpoint.tasks)
    open_asks = tuple(wait.question.shown() for wait in loaded.open_waits if not wait.question.is_static)
    return _snapshot(spec, thread_id, loaded.uid or "", seen, tasks)._replace(
        next=tuple(task.node for task in checkpoint.tasks if task.id not in loaded.results), interrupts=open_asks
    )


def past_snapshot(
    spec: GraphSpec, thread_id: str, uid: str, checkpoint: Checkpoint, asked: Sequence[Wait]
) -> StateSnapshot:
    """Show a checkpoint as it was written, with all that was asked there, answered by now or not."""
    waits = in_task_order(checkpoint, asked)
    tasks = tuple(
        TaskSnapshot(task.id, task.node, _path(task), None, _shown(task.id, waits)) for task in checkpoint.tasks
    )
    after = tuple(
        interrupt for origin in checkpoint.origins for interrupt in _shown(origin.task_id, waits, kind="return")
    )
    snapshot = _snapshot(spec, thread_id, uid, checkpoint, tasks)
    return snapshot._replace(interrupts=(*after, *snapshot.interrupts))


def _shown(task_id: str, waits: Sequence[Wait], kind: str = "call") -> tuple[Interrupt, ...]:
    asked = (wait.question for wait in waits if wait.question.task_id == task_id)
    return tuple(question.shown() for question in asked if question.kind == kind)


def _snapshot(
    spec: GraphSpec, thread_id: str, uid: str, checkpoint: Checkpoint, tasks: tuple[TaskSnapshot, ...]
) -> StateSnapshot:
    return StateSnapshot(
        values=state_of(spec, checkpoint),
        next=checkpoint.next,
        config=shown_config(thread_id, uid, checkpoint.seq),
        metadata={
            **(checkpoint.metadata or {}),
            "source": checkpoint.source,
            "step": checkpoint.step,
            "parents": {},
            "run_id": checkpoint.run_id,
        },
        created_at=None if checkpoint.created_at is None else iso(checkpoint.created_at),
        parent_config=None if checkpoint.parent is None else shown_config(thread_id, uid, checkpoint.parent),
        tasks=tasks,
        interrupts=tuple(interrupt for task in tasks for interrupt in task.interrupts),
    )


def _task(task: Task, loaded: Loaded) -> TaskSnapshot:
    asks = _shown(task.id, loaded.open_waits)
    result = loaded.results.get(task.id)
    return TaskSnapshot(
        task.id,
        task.node,
        _path(task),
        loaded.errors.get(task.id),
        asks,
        None,
        None if result is None else update_of(result),
    )


def _path(task: Task) -> tuple[Any, ...]:
    return ("pull", task.node) if task.arg is UNSET else ("push", int(task.id.partition(".")[0].partition("/")[2]))
