"""`migrate`: bringing threads that were stored with an older version of a graph up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bide.engine.spec import GraphSpec
from bide.engine.values import Loaded, Origin, Outcome, Question, Task, Wait
from bide.errors import GraphChanged

Named = TypeVar("Named", Task, Origin, Question)


class StoredThread:
    """A thread as an older graph left it, to be changed by a `migrate` hook.

    `values` is its state, with keys that the graph no longer has; `next` names the nodes that it stands before;
    `fingerprint` tells which shape of the graph wrote it.
    """

    def __init__(self, loaded: Loaded) -> None:
        assert loaded.checkpoint is not None
        self._loaded = loaded
        self._nodes: dict[str, str] = {}
        self._keys: dict[str, str | None] = {}
        """State key → its new name; None for one that was dropped."""
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
        self._keys[old] = new
        if old in self.values:
            self.values[new] = self.values.pop(old)

    def drop_key(self, key: str) -> None:
        """Forget a state key."""
        self._keys[key] = None
        self.values.pop(key, None)

    # ── What follows from it ───────────────────────────────────────────────────────────────────────────────────────

    def renamed(self, part: Named) -> Named:
        """Return a task, an origin or a question under the new name of its node."""
        return part._replace(node=self._nodes.get(part.node, part.node))

    def result(self, outcome: Outcome) -> Outcome:
        """Return what a task of the step under way has written, under the new names."""
        written = ((self._keys.get(key, key), value) for key, value in outcome.writes)
        kept = tuple((key, value) for key, value in written if key is not None)
        returns = tuple(self.renamed(question) for question in outcome.returns)
        return outcome._replace(task=self.renamed(outcome.task), writes=kept, returns=returns)

    def wait(self, wait: Wait) -> Wait:
        """Return a wait under the new name of its node, unless it belongs to a graph inside this one."""
        question = wait.question
        return wait if "|" in question.task_id else wait._replace(question=self.renamed(question))


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
    return loaded._replace(
        checkpoint=checkpoint._replace(
            values={**spec.initial(), **thread.values},
            tasks=tuple(thread.renamed(task) for task in checkpoint.tasks),
            origins=tuple(thread.renamed(origin) for origin in checkpoint.origins),
            extras=frozenset(key for key in thread.values if key in checkpoint.extras and key not in spec.state_keys),
            is_migrated=True,
        ),
        results={id_: thread.result(outcome) for id_, outcome in loaded.results.items()},
        waits=tuple(thread.wait(wait) for wait in loaded.waits),
    )
