"""Longhouse's tests that need workers, deadlines and a log that can be followed: jobs, barriers, streams."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from bide import (
    Bide,
    CompiledGraph,
    IdempotencyError,
    Store,
    UnknownInterruptError,
    UnknownThreadError,
    all_of,
    ask,
    spawn,
    wait_for,
)
from bide.waits import child, event
from tests.requirements.conftest import MakeWorld
from tests.requirements.graphs import in_line


class Task(TypedDict, total=False):
    task: str
    report: Any


class Talk(TypedDict, total=False):
    jobs: list[Any]
    report: Any


def works(state: Task) -> Task:
    found = ask(f"What about {state['task']}?")
    if found == "break":
        raise RuntimeError("the logs are gone")
    return {"report": found}


def worker() -> CompiledGraph:
    return in_line(Task, works).compile(name="worker")


def supervisor(node: Any) -> CompiledGraph:
    return in_line(Talk, node).compile(name="supervisor")


# ── Starting, and leaving ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_continuation_idempotency.py::test_continuation_allows_null_continuation_of_run_id")
@pytest.mark.requirement("Z1-05")
def test_starts_without_a_key_are_runs_of_their_own_and_those_with_one_are_one(world: MakeWorld) -> None:
    here = world(worker())

    loose = [here.app.start("worker", {"task": "count"}) for _ in range(3)]
    keyed = [here.app.start("worker", {"task": "count"}, key="count-1") for _ in range(3)]
    with pytest.raises(IdempotencyError):
        here.app.start("worker", {"task": "sum up"}, key="count-1")

    assert len({run.run_id for run in loose}) == 3
    assert [(run.run_id, run.is_new) for run in keyed] == [
        (keyed[0].run_id, True),
        (keyed[0].run_id, False),
        (keyed[0].run_id, False),
    ]


@pytest.mark.seed("test_durable_runs.py::test_timeout_produces_deferred_status")
@pytest.mark.seed("test_durable_runs.py::test_timeout_emits_deferred_event")
@pytest.mark.seed("test_durable_runs.py::test_normal_completion_still_works")
@pytest.mark.seed("test_durable_runs_return_on_deferred.py::true returns immediately")
@pytest.mark.seed("test_durable_runs_return_on_deferred.py::false continues to success")
@pytest.mark.seed("test_durable_runs_return_on_deferred.py::false continues to failure")
@pytest.mark.seed("test_durable_runs_return_on_deferred.py::test_no_timeout_completes_normally")
@pytest.mark.requirement("Z1-29")
@pytest.mark.parametrize(("found", "status"), [("42", "done"), ("break", "failed")])
def test_caller_may_leave_at_any_time_and_the_run_goes_on_to_its_end(any_store: Store, found: str, status: str) -> None:
    """There, a run whose caller has left is marked as deferred, and tells so. Here nobody holds a run but its worker:
    a start returns at once, whoever follows may stop, and come back to the same log."""
    app = Bide(any_store, [worker()])
    with app.worker():
        run = app.start("worker", {"task": "count"})
        impatient = app.follow(run.thread_id)
        first = next(impatient)
        impatient.close()  # type: ignore[attr-defined]
        list(app.follow(run.thread_id, until="rest"))
        app.resume(run.thread_id, found)
        rest = list(app.follow(run.thread_id, after=first.id))

    assert run.status == "ready"
    assert first.kind == "run.ready"
    assert rest[-1].kind == f"run.{status}"
    assert app.get(run.thread_id).status == status


# ── Whose result ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_langgraph_free_resume.py::test_resume_fails_when_no_tool_call_id")
@pytest.mark.seed("test_langgraph_free_resume.py::test_tool_call_id_fallback_lookup")
@pytest.mark.requirement("Z1-05", "Z1-14")
def test_result_without_its_call_is_refused_and_the_thread_itself_is_enough_when_it_asks_once(
    world: MakeWorld,
) -> None:
    """There, a result whose call cannot be found fails the run. Here it fails itself, and the run waits on."""
    here = world(worker())
    run = here.app.start("worker", {"task": "count"})
    here.settle()

    with pytest.raises(UnknownInterruptError):
        here.app.wake("call-that-nobody-made", "42")
    assert here.app.get(run.thread_id).status == "waiting"
    here.app.resume(run.thread_id, "42")
    here.settle()

    assert here.app.get(run.thread_id).values["report"] == "42"


@pytest.mark.seed("test_async_inbox_model.py::test_wait_for_worker_raises_interrupt_for_running_job")
@pytest.mark.seed("test_async_inbox_model.py::test_wait_for_worker_returns_result_for_completed_job")
@pytest.mark.seed("test_async_inbox_model.py::test_spawn_worker_non_blocking")
@pytest.mark.requirement("Z1-21", "Z1-33")
@pytest.mark.parametrize("is_early", [True, False])
def test_wait_for_a_job_pauses_while_it_runs_and_does_not_when_it_has_ended(world: MakeWorld, is_early: bool) -> None:
    def delegates(state: Talk) -> Talk:
        job = spawn("worker", {"task": "count"})
        ask("Shall I look?")
        return {"report": wait_for(child(job)).value.status}

    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {})
    assert here.settle() == ["waiting", "waiting"]
    (job,) = here.app.children(run.thread_id)

    if is_early:
        here.app.resume(job, "42")
        here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()
    looked = here.app.get(run.thread_id).status
    if not is_early:
        here.app.resume(job, "42")
        here.settle()

    assert looked == ("done" if is_early else "waiting")
    assert here.app.get(run.thread_id).values["report"] == "done"


@pytest.mark.seed("test_async_inbox_model.py::test_pending_tool_call_id_takes_priority_over_worker_job")
@pytest.mark.requirement("Z1-21")
def test_end_of_a_job_goes_to_the_wait_for_that_job_and_to_no_other(world: MakeWorld) -> None:
    def delegates(state: Talk) -> Talk:
        first, second = (spawn("worker", {"task": task}, key=task) for task in ("count", "sum up"))
        return {"report": [wait_for(child(job)).value.summary for job in (first, second)]}

    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {})
    here.settle()
    jobs = {here.app.get(job).values["task"]: job for job in here.app.children(run.thread_id)}

    here.app.resume(jobs["sum up"], "not many")
    here.settle()
    assert here.app.get(run.thread_id).status == "waiting"
    here.app.resume(jobs["count"], "42")
    here.settle()
    assert here.app.get(run.thread_id).status == "done"

    count, sum_up = here.app.get(run.thread_id).values["report"]
    assert ("42" in count, "not many" in sum_up) == (True, True)


@pytest.mark.seed("test_async_inbox_model.py::test_cancel_worker_sets_status_to_cancelled")
@pytest.mark.seed("test_async_inbox_model.py::test_cancel_already_completed_job_returns_error")
@pytest.mark.requirement("Z1-22")
def test_job_can_be_cancelled_while_it_runs_and_not_after_its_end(world: MakeWorld) -> None:
    def delegates(state: Talk) -> Talk:
        jobs = {task: spawn("worker", {"task": task}, key=task) for task in ("slow", "quick")}
        ended = wait_for(all_of(**{task: child(job) for task, job in jobs.items()}))
        return {"report": {task: wake.value.status for task, wake in ended.value.items()}}

    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {})
    here.settle()
    jobs = {here.app.get(job).values["task"]: job for job in here.app.children(run.thread_id)}
    here.app.resume(jobs["quick"], "42")
    here.settle()

    assert here.app.cancel(jobs["slow"], reason="too slow")
    assert not here.app.cancel(jobs["quick"])
    here.settle()

    assert here.app.get(jobs["slow"]).status == "cancelled"
    assert here.app.get(run.thread_id).values["report"] == {"slow": "cancelled", "quick": "done"}


@pytest.mark.seed("test_worker_inbox_continuation.py::failure carried")
@pytest.mark.requirement("Z1-22", "Z1-33")
def test_failure_of_a_job_is_known_to_whoever_asks_after_its_parent_has_ended(world: MakeWorld) -> None:
    def delegates(state: Talk) -> Talk:
        if not state.get("jobs"):
            return {"jobs": [spawn("worker", {"task": "count"}, on_parent_close="abandon")]}
        return {"report": wait_for(child(state["jobs"][0])).value}

    here = world(supervisor(delegates), worker())
    here.app.start("supervisor", {}, thread_id="talk")
    here.settle()
    (job,) = here.app.children("talk")
    here.app.resume(job, "break")
    assert here.settle() == ["failed"]

    here.app.start("supervisor", {}, thread_id="talk")
    here.settle()

    report = here.app.get("talk").values["report"]
    assert (report.status, "the logs are gone" in report.error) == ("failed", True)


# ── Deadlines ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_barrier_race_conditions.py::test_reaper_finds_expired_barriers")
@pytest.mark.seed("test_barrier_race_conditions.py::test_reaper_ignores_non_expired_barriers")
@pytest.mark.seed("test_barrier_race_conditions.py::test_reaper_ignores_completed_barriers")
@pytest.mark.requirement("Z1-31")
def test_only_waits_whose_time_is_over_expire(world: MakeWorld) -> None:
    def waits(state: Task) -> Task:
        return {"report": wait_for(event("go", {"task": state["task"]}), timeout="1h", default="too late")}

    here = world(in_line(Task, waits).compile(name="waits"))
    runs = {"completed": here.app.start("waits", {"task": "completed"})}
    runs["expired"] = here.app.start("waits", {"task": "expired"})
    here.settle()
    here.clock.pass_by(minutes=30)
    runs["not yet"] = here.app.start("waits", {"task": "not yet"})
    here.app.deliver("go", {"task": "completed"})
    here.settle()

    here.clock.pass_by(minutes=30)
    tended = here.app.tend()
    here.settle()

    assert tended.expired == 1
    statuses = {task: here.app.get(run.thread_id).status for task, run in runs.items()}
    assert statuses == {"completed": "done", "expired": "done", "not yet": "waiting"}
    assert here.app.get(runs["expired"].thread_id).values["report"] == "too late"
    assert here.app.get(runs["completed"].thread_id).values["report"].kind == "event"


@pytest.mark.seed("test_barrier_race_conditions.py::test_barrier_marked_failed_on_error")
@pytest.mark.requirement("Z1-22")
def test_supervisor_that_fails_after_its_workers_is_failed_and_can_be_tried_again(world: MakeWorld) -> None:
    broken = [True]

    def delegates(state: Talk) -> Talk:
        report = wait_for(child(spawn("worker", {"task": "count"}))).value.status
        if broken:
            raise RuntimeError("no paper left")
        return {"report": report}

    here = world(supervisor(delegates), worker())
    run = here.app.start("supervisor", {})
    here.settle()
    here.app.resume(here.app.children(run.thread_id)[0], "42")
    assert here.settle() == ["done", "failed"]
    broken.clear()

    here.app.retry(run.thread_id)
    assert here.settle() == ["done"]

    assert here.app.get(run.thread_id).values["report"] == "done"
    assert len(here.app.children(run.thread_id)) == 1


# ── Following ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_resumable_stream.py::test_stream_replay_from_start")
@pytest.mark.seed("test_resumable_stream.py::test_stream_replay_from_event_id")
@pytest.mark.seed("test_resumable_stream.py::test_stream_event_ids_are_monotonic")
@pytest.mark.seed("test_resumable_stream.py::test_stream_resumption_after_reconnect")
@pytest.mark.seed("test_resumable_stream.py::test_stream_completed_run_closes_immediately")
@pytest.mark.seed("test_jarvis_runs.py::attach to completed, failed and in-progress runs")
@pytest.mark.requirement("Z1-04", "Z1-29")
@pytest.mark.parametrize(("found", "status"), [("42", "done"), ("break", "failed"), (None, "waiting")])
def test_whoever_comes_back_hears_exactly_what_was_missed(world: MakeWorld, found: str | None, status: str) -> None:
    here = world(worker())
    run = here.app.start("worker", {"task": "count"})
    here.settle()
    if found is not None:
        here.app.resume(run.thread_id, found)
        here.settle()

    whole = list(here.app.follow(run.thread_id, until="rest"))
    again = [list(here.app.follow(run.thread_id, after=line.id, until="rest")) for line in whole]

    assert again == [whole[number + 1 :] for number in range(len(whole))]
    assert len({line.id for line in whole}) == len(whole)
    assert whole[-1].kind == f"run.{status}"


@pytest.mark.seed("test_resumable_stream.py::test_stream_run_not_found")
@pytest.mark.requirement("Z1-29")
def test_log_of_a_thread_that_is_not_there_is_an_error_and_no_silence(world: MakeWorld) -> None:
    here = world(worker())

    with pytest.raises(UnknownThreadError):
        here.app.follow("nobody")


@pytest.mark.seed("test_resumable_stream.py::test_stream_keeps_open_for_pending_workers_and_emits_worker_complete")
@pytest.mark.requirement("Z1-04", "Z1-29")
def test_follower_stays_while_workers_work_and_hears_of_each_that_ends(any_store: Store) -> None:
    def delegates(state: Talk) -> Talk:
        jobs = {task: spawn("worker", {"task": task}, key=task) for task in ("count", "sum up")}
        wait_for(all_of(**{task: child(job) for task, job in jobs.items()}))
        return {"report": "both"}

    app = Bide(any_store, [supervisor(delegates), worker()])
    kinds: list[str] = []
    with app.worker():
        run = app.start("supervisor", {})
        for line in app.follow(run.thread_id):
            kinds.append(line.kind)
            if line.kind in ("run.waiting", "wait.satisfied"):
                job = app.children(run.thread_id)[kinds.count("wait.satisfied")]
                list(app.follow(job, until="rest"))
                app.resume(job, "42")

    assert kinds[-5:] == ["run.waiting", "wait.satisfied", "wait.answered", "step", "run.done"]
