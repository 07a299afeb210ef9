"""`spawn()`: a child thread, started once however often the node replays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from bide.codec import Codec, checkpointable
from bide.engine.context import TaskContext, task_context
from bide.engine.given import write_given
from bide.engine.values import JournalEntry
from bide.errors import InterruptError, ReplayMismatchError, StepError

OnParentClose = Literal["cancel", "end", "abandon"]
"""When a child is cancelled: when its parent is, also when that ends, never."""


@checkpointable("bide.ChildThread")
@dataclass(frozen=True, slots=True)
class ChildThread:
    """A child thread: wait for it with `wait_for(child(it))`, or keep it in the state and wait later."""

    thread_id: str
    graph: str


class Spawned(NamedTuple):
    """A child that is to be started."""

    child: ChildThread
    parent: str
    input: bytes
    queue: str
    priority: int
    limit: tuple[str, int] | None
    on_close: OnParentClose


def spawn(
    graph: Any,
    input: Any = None,
    *,
    key: str | None = None,
    queue: str = "default",
    priority: int = 0,
    limit: tuple[str, int] | None = None,
    on_parent_close: OnParentClose = "cancel",
) -> ChildThread:
    """Start a thread of another graph, and return at once; workers run it beside this one.

    `graph` is a compiled graph or its name. However often this node replays, the child is started once: it is in the
    same transaction as the journal. `on_parent_close` says when it is cancelled: `"cancel"` when this thread is
    cancelled, `"end"` also when this thread ends, `"abandon"` never.
    """
    context = task_context("spawn()")
    name, codec = _graph_of(context, graph)
    if on_parent_close not in ("cancel", "end", "abandon"):
        raise StepError(f"spawn(on_parent_close={on_parent_close!r}): choose 'cancel', 'end' or 'abandon'.")
    _check_place(queue, priority, limit)
    journal = context.run.journal
    if journal is None or context.run.thread_id is None:
        raise InterruptError(
            f"Node {context.task.node!r} called spawn(), but its graph has no store, so nobody could run the child. "
            f'Compile it with one: checkpointer="sqlite:///bide.db".'
        )
    given = {} if input is None else input
    step_key = _key(context, name, key)
    digest = codec.digest([name, given])
    before = context.steps.get(step_key)
    if before is not None:
        _check_same(context, step_key, before, name, digest)
        found = before.value
        assert isinstance(found, ChildThread), "the journal of a spawn holds a child"
        return found
    identity = f"{context.run.uid}|{context.task.id}|{step_key}"
    child = ChildThread(_name_of_child(context.run.thread_id, name, identity), name)
    journal.check_held()
    entry = JournalEntry(f"spawn {name}", digest, True, child)
    start = Spawned(child, context.run.thread_id, write_given(codec, given), queue, priority, limit, on_parent_close)
    journal.spawn(context.task, step_key, entry, start)
    context.remember(step_key, entry)
    return child


def _check_place(queue: Any, priority: Any, limit: Any) -> None:
    """Refuse what no worker would ever claim."""
    if not isinstance(queue, str) or not queue or "/" in queue:
        raise StepError(f"spawn(queue={queue!r}): give a word without '/'.")
    if type(priority) is not int:
        raise StepError(f"spawn(priority={priority!r}): give a whole number; higher ones come first.")
    is_pair = limit is None or (isinstance(limit, tuple) and len(limit) == 2)
    if not is_pair or (
        limit is not None and (not isinstance(limit[0], str) or type(limit[1]) is not int or limit[1] < 1)
    ):
        raise StepError(f"spawn(limit={limit!r}): give a name and how many may run at once, as ('customer-7', 2).")


def _name_of_child(parent: str, graph: str, identity: str) -> str:
    """Name a child so that one sees whose it is, however deep it stands; the name fits into an address as it is."""
    own = f"{_ODD.sub('_', graph)[:60]}-{blake2b(identity.encode(), digest_size=6).hexdigest()}"
    if len(parent) + len(own) < LONGEST_NAME and _ODD.search(parent.replace(":", "")) is None:
        return f"{parent}:{own}"
    return f"{blake2b(parent.encode(), digest_size=12).hexdigest()}:{own}"


LONGEST_NAME = 128
_ODD = re.compile(r"[^A-Za-z0-9_.@-]")


def _graph_of(context: TaskContext, graph: Any) -> tuple[str, Codec]:
    if isinstance(graph, str):
        return graph, context.run.spec.codec
    spec = getattr(graph, "spec", None)
    if spec is None:
        raise StepError(f"spawn({graph!r}): give a compiled graph, or the name under which workers know it.")
    return spec.name, spec.codec


def _key(context: TaskContext, name: str, key: str | None) -> str:
    if key is None:
        counted = f"spawn {name}"
        count = context.step_counts[counted] = context.step_counts.get(counted, 0) + 1
        key = f"{name}#{count}"
    key = f"{context.space}:spawn:{key}" if context.space else f"spawn:{key}"
    if key in context.visited:
        raise StepError(f"Node {context.task.node!r} spawns two children with the key {key!r}. Give each its own.")
    context.visited.add(key)
    return key


def _check_same(context: TaskContext, key: str, before: JournalEntry, name: str, digest: str) -> None:
    if before.name != f"spawn {name}" or before.digest != digest:
        raise ReplayMismatchError(
            f"Node {context.task.node!r} spawns another child on replay than it did ({key!r}): the graph or its input "
            f"is not what was recorded. Make the input repeatable (put it into step(), or into an earlier node), or "
            f"give each child its own key: spawn(…, key='…')."
        )
