"""A fork that begins inside: a branch of the thread on which a graph inside a task stands at an older checkpoint.

The tasks of a fork have ids of their own, so every graph on the way down is written anew under the new path, each as it
stood; what ran beside them starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bide.engine.apply import edited_checkpoint
from bide.engine.edit import check_idle
from bide.engine.opening import fork_checkpoint
from bide.engine.plan import moved_id, replant
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Edit, Load, Loaded, Prepare
from bide.errors import GraphError, UnknownCheckpointError
from bide.graph.recorder import Recorder


class _Level(NamedTuple):
    """A graph on the way down, as it stood, and its task that leads further down."""

    spec: GraphSpec
    checkpoint: Checkpoint
    task_id: str


def fork_inside(root: Recorder, ns: str, seq: int, writes: Sequence[tuple[str, Any]]) -> Recorder:
    """Write the fork; return the recorder of the graph that it is about, at its new place."""
    if ns.startswith("@"):
        raise GraphError(
            "A graph that keeps its state between calls is forked with the graph around it: fork at a checkpoint of "
            "the thread's own graph."
        )
    loaded: Loaded = root.perform(Load(None))
    check_idle(loaded)
    levels = _levels(root, ns)
    top = levels[0]
    forked, _ = fork_checkpoint(top.spec, loaded, top.checkpoint, [])
    path = moved_id(top.checkpoint.tasks, forked.tasks, top.task_id)
    rows = []
    recorder = root
    for level in levels[1:]:
        recorder = recorder.inside(level.spec, path, f"{path}|")
        rows.append(_copied(recorder, level.checkpoint, []))
        path = moved_id(level.checkpoint.tasks, rows[-1][0].tasks, level.task_id)
    last_spec = _inner(levels[-1])
    old = root.inside(last_spec, ns, f"{ns}|").look_inside(seq).checkpoint
    assert old is not None
    recorder = recorder.inside(last_spec, path, f"{path}|")
    rows.append(_copied(recorder, old, writes))
    root.perform(Edit(loaded, forked, frozenset(), True, inner=tuple(row for _, row in rows)))
    recorder.head = 1
    return recorder


def _levels(root: Recorder, ns: str) -> list[_Level]:
    """Find each graph on the way down as it stood when the next one ran inside it."""
    elements = ns.split("|")
    levels: list[_Level] = []
    recorder, spec = root, root.spec
    for depth in range(len(elements)):
        task_id = "|".join(elements[: depth + 1])
        checkpoint = next((found for found in recorder.all() if any(t.id == task_id for t in found.tasks)), None)
        if checkpoint is None:
            raise UnknownCheckpointError(f"There is no task {task_id!r} in thread {root.thread_id!r}.")
        levels.append(_Level(spec, checkpoint, task_id))
        spec = _inner(levels[-1])
        recorder = recorder.inside(spec, task_id, f"{task_id}|")
    return levels


def _inner(level: _Level) -> GraphSpec:
    node = next(task.node for task in level.checkpoint.tasks if task.id == level.task_id)
    subgraph = level.spec.nodes[node].subgraph
    if subgraph is None:
        raise GraphError(f"Node {node!r} calls its graph in its code, so it can be forked only as a whole.")
    return subgraph.spec


def _copied(recorder: Recorder, old: Checkpoint, writes: Sequence[tuple[str, Any]]) -> tuple[Checkpoint, Any]:
    """Write an older checkpoint down as the first one of a new place."""
    edited, _ = edited_checkpoint(recorder.spec, old, writes, source="fork")
    fresh = edited._replace(
        seq=1,
        parent=None,
        source="fork",
        tasks=replant(recorder.prefix, 1, edited.tasks),
        created_at=None,
        ns=recorder.ns,
        prefix=recorder.prefix,
    )
    return fresh, recorder.perform(Prepare(fresh, frozenset(fresh.values)))
