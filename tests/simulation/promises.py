"""What must hold of a thread after every write, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bide.engine.plan import branch_of
from bide.engine.values import Checkpoint, Wait
from bide.types import UNSET, RunStatus, WaitStatus
from tests.engine.notebook import LIVE, Notebook


class Promises:
    """Looks at a notebook after each write, and remembers what it must not see changed."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.checkpoints: dict[tuple[str, int], Checkpoint] = {}
        self.answers: dict[str, Any] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.steps: dict[tuple[str, str], Any] = {}
        self.finished: set[str] = set()
        """Tasks that had come to their end when a caller was told how far the thread is."""

    def broken(self) -> Iterator[str]:
        """Name every promise that does not hold."""
        yield from self._runs()
        yield from self._checkpoints()
        yield from self._answers()
        yield from self._journal()
        if self.notebook.places:
            yield from self._waits()

    def broken_by_start(self, task_id: str) -> str | None:
        """Say why a task must not begin. Tasks of graphs that are not saved are begun again at every replay."""
        place = self.notebook.places.get(task_id.rpartition("|")[0], {})
        if not any(task.id == task_id for checkpoint in [*place.values()][-1:] for task in checkpoint.tasks):
            return None
        if task_id in self.notebook.results or task_id in self.finished:
            return f"{task_id} begins again, though it had finished"
        if any(wait.question.task_id == task_id and wait.question.kind == "call" for wait in self.notebook.open_waits):
            return f"{task_id} begins again, though nobody has answered it"
        return None

    def _runs(self) -> Iterator[str]:
        runs = self.notebook.runs.values()
        if sum(run.status in LIVE for run in runs) > 1:
            yield "a thread has more than one live run"
        for run in runs:
            if (run.status is RunStatus.RUNNING) != (run.worker is not None):
                yield f"{run.id} is {run.status} and leased to {run.worker}"

    def _checkpoints(self) -> Iterator[str]:
        for ns, found in self.notebook.places.items():
            newest = len(found)
            if newest not in found:
                yield f"the checkpoints of {ns!r} have a gap"
            elif self.checkpoints.setdefault((ns, newest), found[newest]) is not found[newest]:
                yield f"checkpoint {newest} of {ns!r} was written over"

    def _answers(self) -> Iterator[str]:
        for id_, wait in self.notebook.waits.items():
            if self.names.setdefault((wait.question.task_id, wait.question.key), id_) != id_:
                yield f"question {wait.question.value!r} is asked under two names"
            if wait.status is WaitStatus.ANSWERED and self.answers.setdefault(id_, wait.answer) != wait.answer:
                yield f"question {wait.question.value!r} has a second answer"
            if wait.status is WaitStatus.OPEN and self.answers.get(id_, UNSET) is not UNSET:
                yield f"question {wait.question.value!r} is open again, though it has an answer"
            if id_ in self.notebook.past:
                yield f"question {wait.question.value!r} is asked again after its step was over"

    def _journal(self) -> Iterator[str]:
        for task_id, lines in self.notebook.steps.items():
            for key, line in lines.items():
                if line.is_done and self.steps.setdefault((task_id, key), line.value) != line.value:
                    yield f"step {key!r} of {task_id} has a second result"

    def _waits(self) -> Iterator[str]:
        book = self.notebook
        head = book.checkpoints[book.head]
        planned = {task.id for task in head.tasks}
        led_here = {origin.task_id for origin in head.origins}
        for task_id in (*book.results, *book.errors, *book.steps):
            if branch_of("", task_id) not in planned:
                yield f"the journal holds a line of {task_id}, which is not planned any more"
        for wait in book.waits.values():
            if branch_of("", wait.question.task_id) not in (led_here if _is_after(wait) else planned):
                yield f"{wait.question.task_id} still asks {wait.question.value!r}, and is not planned any more"
        is_waiting, has_open = book.status is RunStatus.WAITING, bool(book.open_waits)
        if is_waiting and not has_open:
            yield "the run waits for nothing"
        if book.status is RunStatus.DONE and (has_open or head.tasks):
            yield "the run is done, and something is left to do"


def _is_after(wait: Wait) -> bool:
    """Whether a finished node of the thread's own graph asks."""
    question = wait.question
    return question.kind in ("return", "after") and branch_of("", question.task_id) == question.task_id
