"""`StateSnapshot`s: a thread as it stands now, or as it stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import iso
from bide.engine.apply import seen_now
from bide.engine.nested import lasting_path
from bide.engine.plan import branch_of
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Loaded, Task, Wait
from bide.graph.door import shown_config, shown_ns
from bide.graph.pages import in_task_order
from bide.graph.recorder import Recorder
from bide.graph.streaming import state_of, update_of
from bide.types import UNSET, Interrupt, StateSnapshot, TaskSnapshot


def with_inner_states(
    snapshot: StateSnapshot, recorder: Recorder, spec: GraphSpec, loaded: Loaded | None, *, subgraphs: bool
) -> StateSnapshot:
    """Add to each task that is a graph where that graph stands: its snapshot, or the config that leads to it."""
    if not any(spec.nodes[task.name].subgraph for task in snapshot.tasks if task.name in spec.nodes):
        return snapshot
    tasks = tuple(_with_inner_state(task, recorder, spec, subgraphs=subgraphs) for task in snapshot.tasks)
    return snapshot._replace(tasks=tasks)


def _with_inner_state(task: TaskSnapshot, recorder: Recorder, spec: GraphSpec, *, subgraphs: bool) -> TaskSnapshot:
    node = spec.nodes.get(task.name)
    if node is None or node.subgraph is None or node.subgraph.keeps is False:
        return task
    sub = node.subgraph
    ns = f"@{lasting_path(task.id)}" if sub.keeps is True else task.id
    if not subgraphs:
        config = {"thread_id": recorder.thread_id, "checkpoint_ns": shown_ns(ns)}
        return task._replace(state={"configurable": config})
    inner = recorder.inside_task(sub, task.id)
    loaded = inner.look_inside(None)
    if loaded.checkpoint is None:
        return task
    shown = live_snapshot(sub.spec, recorder.thread_id, loaded)
    return task._replace(state=with_inner_states(shown, inner, sub.spec, loaded, subgraphs=True))


def empty_snapshot(thread_id: str | None) -> StateSnapshot:
    """Show a thread that does not exist."""
    return StateSnapshot({}, (), {"configurable": {"thread_id": thread_id}}, None, None, None, (), ())


def live_snapshot(spec: GraphSpec, thread_id: str, loaded: Loaded) -> StateSnapshot:
    """Show the head: finished siblings count as done, answered questions as answered."""
    checkpoint = loaded.checkpoint
    assert checkpoint is not None
    finished = [loaded.results[task.id] for task in checkpoint.tasks if task.id in loaded.results]
    seen = seen_now(spec, checkpoint, finished)
    tasks = tuple(_task(task, loaded, spec) for task in checkpoint.tasks)
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
        TaskSnapshot(task.id, task.node, _path(task), None, _shown(task.id, waits, checkpoint.prefix))
        for task in checkpoint.tasks
    )
    after = tuple(
        interrupt
        for origin in checkpoint.origins
        for interrupt in _shown(origin.task_id, waits, checkpoint.prefix, kind="return")
    )
    snapshot = _snapshot(spec, thread_id, uid, checkpoint, tasks)
    return snapshot._replace(interrupts=(*after, *snapshot.interrupts))


def _shown(task_id: str, waits: Sequence[Wait], prefix: str, kind: str = "call") -> tuple[Interrupt, ...]:
    """Show what a task asks, and, among its calls, what graphs and tasks inside it ask."""
    asked = (wait.question for wait in waits if branch_of(prefix, wait.question.task_id) == task_id)
    return tuple(
        question.shown()
        for question in asked
        if question.kind == kind or (kind == "call" and question.task_id != task_id and not question.is_static)
    )


def _snapshot(
    spec: GraphSpec, thread_id: str, uid: str, checkpoint: Checkpoint, tasks: tuple[TaskSnapshot, ...]
) -> StateSnapshot:
    return StateSnapshot(
        values=state_of(spec, checkpoint),
        next=checkpoint.next,
        config=shown_config(thread_id, uid, checkpoint.seq, checkpoint.ns),
        metadata={
            **(checkpoint.metadata or {}),
            "source": checkpoint.source,
            "step": checkpoint.step,
            "parents": {},
            "run_id": checkpoint.run_id,
        },
        created_at=None if checkpoint.created_at is None else iso(checkpoint.created_at),
        parent_config=None
        if checkpoint.parent is None
        else shown_config(thread_id, uid, checkpoint.parent, checkpoint.ns),
        tasks=tasks,
        interrupts=tuple(interrupt for task in tasks for interrupt in task.interrupts),
    )


def _task(task: Task, loaded: Loaded, spec: GraphSpec) -> TaskSnapshot:
    prefix = "" if loaded.checkpoint is None else loaded.checkpoint.prefix
    asks = _shown(task.id, loaded.open_waits, prefix)
    result = loaded.results.get(task.id)
    return TaskSnapshot(
        task.id,
        task.node,
        _path(task),
        loaded.errors.get(task.id),
        asks,
        None,
        None if result is None else update_of(result, spec),
    )


def _path(task: Task) -> tuple[Any, ...]:
    own = task.id.rpartition("|")[2]
    return ("pull", task.node) if task.arg is UNSET else ("push", int(own.partition(".")[0].partition("/")[2]))
