"""What Longhouse's plan for supervisors left open: large results, state in tools, ids, followers, a roll-out."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Bide, CompiledGraph, Store, ask, get_stream_writer, spawn, wait_for
from bide.waits import child
from tests.requirements.conftest import MakeWorld
from tests.requirements.graphs import in_line
from tests.requirements.supervisors import Talk, Task, delegates, question_of, supervisor, worker
from tests.runtime.world import StillClock


@pytest.mark.requirement("Z1-18")
def test_job_tells_its_progress_pauses_goes_step_by_step_and_gives_its_large_result_by_reference(
    world: MakeWorld,
) -> None:
    rows = [f"line {number}" for number in range(5_000)]

    def collects(state: Task) -> Task:
        get_stream_writer()({"progress": "half"})
        return {"report": rows}

    def sums_up(state: Task) -> Task:
        ask("Good enough?")
        return {"summary": f"{len(state['report'])} lines"}

    jobs = in_line(Task, collects, sums_up).compile(name="worker")
    here = world(supervisor(delegates), jobs)
    progress = list(jobs.stream({"task": "try"}, {"configurable": {"thread_id": "try"}}, stream_mode="custom"))
    run = here.app.start("supervisor", {"tasks": ["count"]})
    here.settle()
    (job,) = here.app.children(run.thread_id)

    here.app.resume(job, "yes")
    here.settle()

    (report,) = here.app.get(run.thread_id).values["reports"]
    assert progress == [{"progress": "half"}]
    assert report.summary == "5000 lines"
    assert here.app.output(report)["report"] == rows
    steps = [each.data["nodes"] for each in here.app.follow(job) if each.kind == "step"]
    assert steps == [["__start__"], ["collects"], ["sums_up"]]


@pytest.mark.requirement("Z1-27", "Z1-24")
def test_tool_deep_in_a_node_submits_once_without_looking_into_the_state(world: MakeWorld) -> None:
    """There, a tool must read the graph's state to know whether its job was submitted. Here the journal knows."""
    calls: list[str] = []

    def spawn_worker(task: str) -> Any:
        calls.append(task)
        return wait_for(child(spawn("worker", {"task": task}))).value.summary

    def agent(state: Talk) -> Talk:
        return {"reports": [tool(task) for tool in [spawn_worker] for task in state["tasks"]]}

    here = world(supervisor(agent), worker())
    run = here.app.start("supervisor", {"tasks": ["count"]})
    here.settle()
    here.app.wake(question_of(here, "count"), "42")
    here.settle()

    assert calls == ["count", "count"]
    assert len(here.app.children(run.thread_id)) == 1
    assert here.app.get(run.thread_id).values["reports"] == ["count: 42"]


@pytest.mark.requirement("Z1-28")
def test_thread_is_the_same_by_number_and_by_text_at_every_door(world: MakeWorld) -> None:
    here = world(worker())
    here.app.start("worker", {"task": "count"}, thread_id=42)
    here.settle()

    assert here.app.get("42").thread_id == here.app.get(42).thread_id == "42"
    assert here.app.waits(thread_id=42) == here.app.waits(thread_id="42")
    here.app.resume(42, "fine")
    here.settle()

    assert here.app.output(42) == here.app.output("42")
    assert [each.kind for each in here.app.follow(42)][-1] == "run.done"


@pytest.mark.requirement("Z1-29")
def test_follower_stays_while_a_thread_waits_and_hears_that_it_goes_on(any_store: Store) -> None:
    app = Bide(any_store, [supervisor(delegates), worker()])
    with app.worker():
        run = app.start("supervisor", {"tasks": ["count"]})
        kinds: list[str] = []
        for line in app.follow(run.thread_id):
            kinds.append(line.kind)
            if line.kind == "run.waiting":
                (job,) = app.children(run.thread_id)
                assert [each.kind for each in app.follow(job, until="rest")][-1] == "run.waiting"
                app.resume(job, "42")

    assert kinds == ["run.ready", "step", "run.started", "run.waiting", "wait.answered", "step", "run.done"]


@pytest.mark.requirement("Z1-34")
def test_new_code_runs_beside_the_old_until_the_last_old_thread_has_ended(any_store: Store, noon: StillClock) -> None:
    def said(word: str) -> CompiledGraph:
        def speaks(state: Talk) -> Talk:
            ask("Ready?")
            return {"reports": [word]}

        return supervisor(speaks)

    old = Bide(any_store, [said("old")], versions={"supervisor": "1"})
    new = Bide(any_store, [said("new")], versions={"supervisor": "2"})
    begun = [old.start("supervisor", {}, thread_id="a"), new.start("supervisor", {}, thread_id="b")]
    outcomes = [[driven.claim.lease.thread_id for driven in app.run_ready(most=5)] for app in (new, old)]

    for run in begun:
        new.resume(run.thread_id, "yes")
    outcomes += [[driven.claim.lease.thread_id for driven in app.run_ready(most=5)] for app in (new, old)]

    assert outcomes == [["b"], ["a"], ["b"], ["a"]]
    assert [new.get(name).values["reports"] for name in ("a", "b")] == [["old"], ["new"]]
