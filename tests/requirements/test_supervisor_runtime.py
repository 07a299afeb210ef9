"""A supervisor and its workers over the runtime (Longhouse): children are threads, and their ends are values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from bide import (
    AIMessage,
    AlreadyAnsweredError,
    Bide,
    HumanMessage,
    MessagesState,
    Store,
    any_of,
    ask,
    interrupt,
    spawn,
    step,
    wait_for,
)
from bide.waits import approval, child, event
from tests.requirements.conftest import MakeWorld
from tests.requirements.graphs import in_line
from tests.requirements.supervisors import Talk, Task, delegates, delegates_together, question_of, supervisor, worker

# ── Waiting, and going on once ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-02")
def test_many_who_resume_a_waiting_run_at_once_make_it_run_once(world: MakeWorld) -> None:
    went_on: list[Any] = []

    def waits(state: Talk) -> Talk:
        answer = ask("How is it?")
        went_on.append(answer)
        return {"reports": [answer]}

    here = world(supervisor(waits))
    run = here.app.start("supervisor", {})
    here.settle()
    (wait,) = here.app.waits()
    together = Barrier(6)

    def resume(number: int) -> str:
        together.wait(60)
        try:
            return here.app.wake(wait.id, number, by=f"worker-{number}").status
        except AlreadyAnsweredError as late:
            return f"too late, {late.outcome.by} was first"

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(resume, range(6)))
    assert here.settle() == ["done"]

    (winner,) = [number for number, status in enumerate(told) if status == "resumed"]
    assert told.count(f"too late, worker-{winner} was first") == 5
    assert went_on == [winner]
    assert here.app.get(run.thread_id).values["reports"] == [winner]


@pytest.mark.requirement("Z1-03")
def test_paused_run_is_waiting_which_is_neither_running_nor_done(world: MakeWorld) -> None:
    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {"tasks": ["count logs"]})
    before = here.app.get(run.thread_id).status
    here.settle()

    paused = here.app.get(run.thread_id)

    assert (before, paused.status) == ("ready", "waiting")
    assert paused.run is not None
    assert paused.run.run_id == run.run_id
    assert here.settle() == []


@pytest.mark.requirement("Z1-04", "Z1-20")
def test_log_tells_that_a_run_waits_for_which_job_and_that_it_goes_on(world: MakeWorld) -> None:
    def waits(state: Talk) -> Talk:
        job = spawn("worker", {"task": "count logs"})
        payload = {"type": "worker_pending", "job_id": job.thread_id, "task": "count logs", "message": "Counting …"}
        return {"reports": [interrupt(payload, wake=child(job)).value.summary]}

    here = world(supervisor(waits), worker())
    run = here.app.start("supervisor", {})
    here.settle()

    (job,) = here.app.children(run.thread_id)
    *_, waiting = here.app.follow(run.thread_id, until="rest")
    (asked,) = here.app.get(run.thread_id).waits
    here.app.resume(job, "42")
    here.settle()
    after = list(here.app.follow(run.thread_id, after=waiting.id))

    assert (waiting.kind, waiting.data["asks"][0]["id"]) == ("run.waiting", asked.id)
    assert asked.question == {
        "type": "worker_pending",
        "job_id": job,
        "task": "count logs",
        "message": "Counting …",
    }
    assert [each.kind for each in after] == ["wait.answered", "step", "run.done"]
    assert after[0].data["wait"] == asked.id


@pytest.mark.requirement("Z1-05", "Z1-24")
def test_jobs_are_told_apart_by_their_calls_and_not_by_their_texts(world: MakeWorld) -> None:
    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {"tasks": ["count", "count"]})
    here.settle()

    for found in ("41", "42"):
        here.app.wake(question_of(here, "count"), found)
        here.settle()

    reports = here.app.get(run.thread_id).values["reports"]
    assert [report.summary for report in reports] == ["count: 41", "count: 42"]
    assert len(set(here.app.children(run.thread_id))) == 2


@pytest.mark.requirement("Z1-06")
def test_follower_that_breaks_does_not_break_the_resume(world: MakeWorld) -> None:
    """There, an event that cannot be sent breaks the resume. Here it is a row of the same commit, which others read."""
    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {"tasks": ["count"]})
    here.settle()
    follower = here.app.follow(run.thread_id, until=None)
    next(follower)

    with pytest.raises(ConnectionError):
        follower.throw(ConnectionError("the reader has left"))  # type: ignore[attr-defined]
    here.app.wake(question_of(here, "count"), "42")
    here.settle()

    kinds = [each.kind for each in here.app.follow(run.thread_id)]
    assert kinds[-3:] == ["wait.answered", "step", "run.done"]


@pytest.mark.requirement("Z1-07", "Z1-21")
def test_workers_carry_a_request_from_its_message_to_its_answer_with_nobody_in_between(any_store: Store) -> None:
    def delegates_chat(state: MessagesState) -> Any:
        done = wait_for(child(spawn("counter", {"task": state["messages"][-1].content}))).value
        return {"messages": [AIMessage(f"There are {done.summary}.")]}

    def counts(state: Task) -> Task:
        return {"summary": f"{len(state['task'])} letters"}

    app = Bide(
        any_store,
        [in_line(MessagesState, delegates_chat).compile(name="chat"), in_line(Task, counts).compile(name="counter")],
    )
    with app.worker():
        run = app.start("chat", {"messages": [HumanMessage("How many?")]})
        kinds = [each.kind for each in app.follow(run.thread_id)]

    said = [(message.type, message.content) for message in app.get(run.thread_id).values["messages"]]
    assert said == [("human", "How many?"), ("ai", "There are 9 letters.")]
    assert kinds[-1] == "run.done"
    assert [each.run_id for each in app.runs(run.thread_id)] == [run.run_id]


@pytest.mark.requirement("Z1-08")
def test_whoever_resumes_is_told_what_truly_came_of_it(world: MakeWorld) -> None:
    def waits(state: Talk) -> Talk:
        return {"reports": [ask("How is it?")]}

    here = world(supervisor(waits))
    here.app.start("supervisor", {})
    here.settle()
    (wait,) = here.app.waits()

    first = here.app.wake(wait.id, "fine", by="worker-1", key="job-1")
    again = here.app.wake(wait.id, "fine", by="worker-1", key="job-1")
    with pytest.raises(AlreadyAnsweredError):
        here.app.wake(wait.id, "not so fine", by="worker-2", key="job-2")
    here.settle()

    assert (first.status, first.is_new) == ("resumed", True)
    assert (again.status, again.is_new, again.by) == ("already_answered", False, "worker-1")


# ── Jobs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_supervisor_worker_invariants.py::test_worker_job_linked_to_supervisor_run")
@pytest.mark.seed("test_barrier_race_conditions.py::test_worker_job_starts_with_created_status")
@pytest.mark.requirement("Z1-19")
def test_job_is_a_row_that_knows_its_supervisor_its_task_and_that_nobody_has_begun_it(world: MakeWorld) -> None:
    def submits(state: Talk) -> Talk:
        job = spawn("worker", {"task": "count logs", "model": "small"}, queue="workers", priority=3)
        return {"reports": [wait_for(child(job)).value.summary]}

    here = world(supervisor(submits), worker())
    run = here.app.start("supervisor", {})
    here.settle()

    (job,) = here.app.children(run.thread_id)
    row = here.app.get(job)
    assert (row.status, row.parent, row.graph) == ("ready", run.thread_id, "worker")
    assert row.run is not None
    assert (row.run.queue, row.run.priority) == ("workers", 3)
    assert [each.kind for each in here.store.events(job)] == ["run.ready"]
    here.app.run_ready(queues=["workers"])
    assert here.app.get(job).values == {"task": "count logs", "model": "small"}


@pytest.mark.seed("test_durable_runs.py::test_worker_completion_triggers_resume")
@pytest.mark.requirement("Z1-21", "Z1-24")
def test_end_of_a_worker_resumes_its_supervisor_and_the_job_is_not_submitted_again(world: MakeWorld) -> None:
    submitted: list[str] = []

    def submits(state: Talk) -> Talk:
        step(submitted.append, "count logs")
        job = spawn("worker", {"task": "count logs"})
        return {"reports": [wait_for(child(job)).value]}

    here = world(supervisor(submits), worker())
    run = here.app.start("supervisor", {})
    here.settle()

    here.app.wake(question_of(here, "count logs"), "42")
    assert here.settle() == ["done", "done"]

    (report,) = here.app.get(run.thread_id).values["reports"]
    assert (report.status, report.summary) == ("done", "count logs: 42")
    assert submitted == ["count logs"]
    assert len(here.app.children(run.thread_id)) == 1


@pytest.mark.requirement("Z1-22")
@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_worker_that_fails_or_is_cancelled_is_a_value_that_its_supervisor_sees(world: MakeWorld, how: str) -> None:
    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {"tasks": ["count"]})
    here.settle()
    (job,) = here.app.children(run.thread_id)

    if how == "failed":
        here.app.resume(job, "break")
    else:
        here.app.cancel(job, reason="too dear")
    here.settle()

    ended = here.app.get(run.thread_id)
    (report,) = ended.values["reports"]
    assert (ended.status, report.status, report.is_done) == ("done", how, False)
    if how == "failed":
        assert "the logs are gone" in report.error


@pytest.mark.requirement("Z1-23")
@pytest.mark.parametrize("outside", ["event", "person", "worker"])
def test_anything_outside_may_resume_and_not_only_a_person(world: MakeWorld, outside: str) -> None:
    def waits(state: Talk) -> Talk:
        job = spawn("worker", {"task": "count"})
        came = wait_for(any_of(event("counted"), person=approval("by hand"), worker=child(job)))
        return {"reports": [came.winner]}

    here = world(supervisor(waits), worker())
    run = here.app.start("supervisor", {})
    here.settle()

    if outside == "event":
        here.app.deliver("counted", 42)
    elif outside == "person":
        here.app.resume(run.thread_id, "approve")
    else:
        here.app.wake(question_of(here, "count"), 42)
    here.settle()

    assert here.app.get(run.thread_id).values["reports"] == [outside]


@pytest.mark.requirement("Z1-30")
def test_several_workers_are_one_wait_that_is_satisfied_when_all_have_ended(world: MakeWorld) -> None:
    here = world(supervisor(delegates_together), worker())
    run = here.app.start("supervisor", {"tasks": ["a", "b", "c"]})
    here.settle()

    for task in ("c", "a"):
        here.app.wake(question_of(here, task), "fine")
        assert here.settle() == ["done"]
        assert len(here.app.get(run.thread_id).waits) == 1
    here.app.wake(question_of(here, "b"), "fine")
    assert here.settle() == ["done", "done"]

    assert here.app.get(run.thread_id).values["reports"] == ["a: fine", "b: fine", "c: fine"]


@pytest.mark.requirement("Z1-31")
def test_worker_that_never_ends_is_given_up_and_cleaned_away(world: MakeWorld) -> None:
    def waits(state: Talk) -> Talk:
        job = spawn("worker", {"task": "count"}, on_parent_close="end")
        report = wait_for(child(job), timeout="1h", default=None)
        return {"reports": ["nobody came" if report is None else report.value.summary]}

    here = world(supervisor(waits), worker())
    run = here.app.start("supervisor", {})
    here.settle()
    (job,) = here.app.children(run.thread_id)

    here.clock.pass_by(hours=1)
    here.settle()

    assert here.app.get(run.thread_id).values["reports"] == ["nobody came"]
    assert here.app.get(job).status == "cancelled"
    assert here.app.waits() == []


@pytest.mark.requirement("Z1-32")
def test_supervisor_waits_again_for_its_next_worker_in_the_same_run(world: MakeWorld) -> None:
    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {"tasks": ["count", "sum up"]})
    here.settle()

    here.app.wake(question_of(here, "count"), "42")
    here.settle()
    between = here.app.get(run.thread_id).status
    here.app.wake(question_of(here, "sum up"), "not many")
    here.settle()

    assert between == "waiting"
    assert [report.summary for report in here.app.get(run.thread_id).values["reports"]] == [
        "count: 42",
        "sum up: not many",
    ]
    assert [each.run_id for each in here.app.runs(run.thread_id)] == [run.run_id]


@pytest.mark.requirement("Z1-33")
def test_long_job_outlives_the_run_that_submitted_it_and_a_later_run_takes_its_result(world: MakeWorld) -> None:
    def submits_or_takes(state: Talk) -> Talk:
        if not state.get("jobs"):
            return {"jobs": [spawn("worker", {"task": "count"}, on_parent_close="abandon")]}
        return {"reports": [wait_for(child(job)).value.summary for job in state["jobs"]]}

    here = world(supervisor(submits_or_takes), worker())
    here.app.start("supervisor", {"tasks": ["count"]}, thread_id="talk")
    assert sorted(here.settle()) == ["done", "waiting"]
    here.clock.pass_by(hours=24)
    here.app.wake(question_of(here, "count"), "42")
    here.settle()

    here.app.start("supervisor", {"tasks": []}, thread_id="talk")
    here.settle()

    assert here.app.get("talk").values["reports"] == ["count: 42"]
    assert len(here.app.runs("talk")) == 2
