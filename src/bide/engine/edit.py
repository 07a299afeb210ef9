"""`update_state`: change a thread from outside, without running it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from bide.engine.apply import edited_checkpoint, next_checkpoint, rerouted
from bide.engine.opening import choose, fork_checkpoint, has_begun, reroute
from bide.engine.plan import Place
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint, Edit, Load, Loaded, Outcome, Task
from bide.errors import InvalidUpdateError, ThreadBusyError
from bide.types import END, START, RunStatus

Editing = Generator[Any, Any, Checkpoint]
Write = tuple[str, Any]


def edit(spec: GraphSpec, values: Any, as_node: str | None, seq: int | None) -> Editing:
    """Merge `values` into the thread as if `as_node` had returned them; without a node, the plan stays as it is.

    Without `as_node`, open questions stay open and keep their ids, and conditional edges that led here choose again on
    the new state. With it, the thread stands after that node, and questions of other tasks are cancelled.
    """
    loaded: Loaded = yield Load(seq)
    if loaded.run is not None and loaded.run.status is RunStatus.RUNNING and not loaded.run.is_orphan:
        raise ThreadBusyError(
            "The thread has a run under way, so it cannot be edited now. Wait until it pauses or ends, and try again."
        )
    writes = _writes(spec, values)
    if as_node is None and loaded.checkpoint is not None:
        checkpoint, changed = yield from _beside(spec, loaded, loaded.checkpoint, writes)
        forget = loaded.checkpoint.seq != loaded.head
    else:
        checkpoint, changed = yield from _as_node(spec, loaded, writes, as_node or START)
        forget = not _keeps_plan(loaded, checkpoint)
        if not forget and loaded.checkpoint is not None:
            checkpoint = checkpoint._replace(tasks=loaded.checkpoint.tasks, origins=loaded.checkpoint.origins)
    yield Edit(loaded, checkpoint, changed, forget)
    return checkpoint


def _writes(spec: GraphSpec, values: Any) -> list[Write]:
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


def _as_node(
    spec: GraphSpec, loaded: Loaded, writes: Sequence[Write], as_node: str
) -> Generator[Any, Any, tuple[Checkpoint, frozenset[str]]]:
    """Stand where the thread would stand if `as_node` had just returned these writes."""
    if as_node not in spec.nodes and as_node not in (START, END):
        known = ", ".join(map(repr, spec.nodes))
        raise InvalidUpdateError(f"update_state(as_node={as_node!r}): there is no such node. Known nodes: {known}.")
    base = loaded.checkpoint or Checkpoint(0, None, -1, "", spec.initial(), (), ())
    before = base._replace(seq=loaded.head)
    if as_node == END:
        checkpoint, changed = edited_checkpoint(spec, before, writes, source="update")
        checkpoint = checkpoint._replace(seq=loaded.head + 1, source="update", step=base.step + 1, tasks=(), origins=())
    else:
        task = Task(f"{loaded.head}.{as_node}", as_node)
        checkpoint, changed = next_checkpoint(spec, before, [Outcome(task, tuple(writes))], source="update")
        node = spec.start if as_node == START else spec.nodes[as_node]
        if node.branches:
            places: list[Place] = [*node.edges, *(yield from choose(checkpoint, [task]))]
            places += [planned.node for planned in checkpoint.tasks if planned.node in spec.joins.values()]
            checkpoint = rerouted(spec, checkpoint, places)
    parent = None if loaded.checkpoint is None else loaded.checkpoint.seq
    return checkpoint._replace(parent=parent, created_at=None), changed


def _keeps_plan(loaded: Loaded, checkpoint: Checkpoint) -> bool:
    """Whether the thread stands before the same nodes, none of which has begun: then its pause is the same."""
    old = loaded.checkpoint
    if old is None or old.seq != loaded.head or loaded.results:
        return False
    return old.next == checkpoint.next and all(wait.question.is_static for wait in loaded.waits)


__all__ = ["Editing", "edit"]
