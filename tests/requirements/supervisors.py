"""A supervisor and its workers, for the tests of requirements."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from bide import CompiledGraph, all_of, ask, spawn, wait_for
from bide.waits import child
from tests.requirements.graphs import in_line
from tests.runtime.world import World


class Task(TypedDict, total=False):
    task: str
    model: str
    fail: bool
    report: Any
    summary: str


class Talk(TypedDict, total=False):
    tasks: list[str]
    jobs: list[Any]
    reports: Annotated[list[Any], operator.add]


def works(state: Task) -> Task:
    """A worker that needs somebody outside to finish: so a test decides when it is done."""
    found = ask(f"What about {state['task']}?")
    if found == "break":
        raise RuntimeError("the logs are gone")
    return {"report": found, "summary": f"{state['task']}: {found}"}


def worker() -> CompiledGraph:
    return in_line(Task, works).compile(name="worker")


def supervisor(*nodes: Any) -> CompiledGraph:
    return in_line(Talk, *nodes).compile(name="supervisor")


def delegates(state: Talk) -> Talk:
    """One worker after the other."""
    return {"reports": [wait_for(child(spawn("worker", {"task": task}))).value for task in state["tasks"]]}


def delegates_together(state: Talk) -> Talk:
    """All workers at once, and one wait for all of them."""
    jobs = {task: spawn("worker", {"task": task}, key=task) for task in state["tasks"]}
    ended = wait_for(all_of(**{task: child(job) for task, job in jobs.items()}))
    return {"reports": [wake.value.summary for wake in ended.value.values()]}


def question_of(here: World, task: str) -> str:
    """The id of the question that the worker with this task asks."""
    (wait,) = [each for each in here.app.waits(graph="worker") if each.question == f"What about {task}?"]
    return wait.id
