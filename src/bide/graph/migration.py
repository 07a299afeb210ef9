"""`migrate`: bringing threads that were stored with an older version of a graph up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bide.engine.spec import GraphSpec
from bide.engine.values import Loaded
from bide.errors import GraphChanged


class StoredThread:
    """A thread as an older graph left it, to be changed by a `migrate` hook.

    `values` is its state, with keys that the graph no longer has; `next` names the nodes that it stands before;
    `fingerprint` tells which shape of the graph wrote it.
    """

    def __init__(self, loaded: Loaded) -> None:
        assert loaded.checkpoint is not None
        self._loaded = loaded
        self._nodes: dict[str, str] = {}
        self.values: dict[str, Any] = dict(loaded.checkpoint.values)
        self.fingerprint = loaded.checkpoint.fingerprint
        self.thread_id = loaded.thread_id

    @property
    def next(self) -> tuple[str, ...]:
        """The nodes that the thread stands before, renamed ones under their new names."""
        checkpoint = self._loaded.checkpoint
        assert checkpoint is not None
        return tuple(self._nodes.get(task.node, task.node) for task in checkpoint.tasks)

    def rename_node(self, old: str, new: str) -> None:
        """Let what stood before node `old` stand before `new`. Answers given to it count for the new one."""
        self._nodes[old] = new

    def rename_key(self, old: str, new: str) -> None:
        """Move the value of a state key, if there is one."""
        if old in self.values:
            self.values[new] = self.values.pop(old)

    def drop_key(self, key: str) -> None:
        """Forget a state key."""
        self.values.pop(key, None)


Migrate = Callable[[StoredThread], None]


def migrated(spec: GraphSpec, migrate: Migrate, loaded: Loaded) -> Loaded:
    """Return the thread after its hook, if the graph has changed since it was written."""
    checkpoint = loaded.checkpoint
    assert checkpoint is not None
    if checkpoint.fingerprint == spec.fingerprint:
        return loaded
    thread = StoredThread(loaded)
    try:
        migrate(thread)
    except Exception as problem:
        raise GraphChanged(
            f"The migrate hook of graph {spec.name!r} could not bring thread {loaded.thread_id!r} up to date: "
            f"{problem!r}. The thread is unchanged."
        ) from problem
    names = thread._nodes
    return loaded._replace(
        checkpoint=checkpoint._replace(
            values={**spec.initial(), **thread.values},
            tasks=tuple(task._replace(node=names.get(task.node, task.node)) for task in checkpoint.tasks),
            origins=tuple(origin._replace(node=names.get(origin.node, origin.node)) for origin in checkpoint.origins),
            is_migrated=True,
        )
    )
