"""What tasks tell while they run: the tokens of models, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bide.engine.context import TaskContext
from bide.engine.values import MESSAGES, Checkpoint, Emit, Task
from bide.graph.door import shown_ns
from bide.graph.tokens import langchain_scope, task_metadata, token_handler
from bide.types import UNSET


@contextmanager
def token_scope(context: TaskContext) -> Iterator[None]:
    """Surround the code of a node: LangChain's runnables find its config, and models tell their tokens if asked to."""
    run, handler = context.run, None
    tell, ns = run.tell, run.ns
    if tell is not None and MESSAGES in run.request.live:
        context.streamed = set()
        metadata = message_metadata(run.config, context.assignment.checkpoint, context.task)
        handler = token_handler(lambda told: tell(Emit(MESSAGES, told, ns)), metadata, context.streamed)
    with langchain_scope(run.config, handler) as context.config:
        yield


def message_metadata(config: Mapping[str, Any], checkpoint: Checkpoint, task: Task) -> dict[str, Any]:
    """Say where the messages of a task come from."""
    is_sent = task.arg is not UNSET
    return task_metadata(
        config,
        node=task.node,
        step=checkpoint.step + 1,
        path=("__pregel_push" if is_sent else "__pregel_pull", task.node),
        triggers=["__pregel_push" if is_sent else f"branch:to:{task.node}"],
        namespace=shown_ns(task.id),
    )
