"""Which tasks of a step can run: no result yet, and nothing to wait for, at whatever depth it is asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from bide.engine.plan import branch_of
from bide.engine.values import Checkpoint, Outcome, Task, Wait
from bide.types import WaitStatus


def ready_tasks(
    checkpoint: Checkpoint,
    results: Mapping[str, Outcome],
    waits: Sequence[Wait],
    ended: tuple[Set[str], Set[str]],
) -> list[Task]:
    """Return the tasks that can run: no result yet, and no question open, or else something inside that can go on.

    That is a task with all its questions settled, or one that failed, unless it has ended since, or one around it has.
    """
    if not waits:
        return [task for task in checkpoint.tasks if task.id not in results]
    done, failed = ended
    asking: dict[str, dict[str, bool]] = {}
    for wait in waits:
        inner = wait.question.task_id
        known = asking.setdefault(branch_of(checkpoint.prefix, inner), {})
        known[inner] = known.get(inner, False) or wait.status is WaitStatus.OPEN
    ready = []
    for task in checkpoint.tasks:
        known = asking.get(task.id, {})
        if task.id not in results and (
            not any(known.values())
            or any(not is_open and not _has_ended(inner, done) for inner, is_open in known.items())
            or any(branch_of(checkpoint.prefix, inner) == task.id for inner in _to_retry(failed, done, known))
        ):
            ready.append(task)
    return ready


def _has_ended(task_id: str, done: Set[str]) -> bool:
    """Whether a task, or one around it, has a result."""
    while task_id not in done:
        end = max(task_id.rfind("|"), task_id.rfind(":"))
        if end < 0:
            return False
        task_id = task_id[:end]
    return True


def _to_retry(failed: Set[str], done: Set[str], asking: Mapping[str, bool]) -> list[str]:
    """Return the innermost tasks that failed, and have neither ended nor asked since."""
    return [
        task_id
        for task_id in failed
        if not _has_ended(task_id, done)
        and not asking.get(task_id, False)
        and not any(other.startswith((f"{task_id}|", f"{task_id}:")) for other in failed)
    ]
