"""Longhouse's tests that need only the graph: a supervisor delegates, waits, and goes on exactly once."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Annotated, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Send, StateGraph, Store, interrupt, step
from bide.errors import ConflictError, InterruptError, NotWaitingError, ResumeError, ThreadBusyError, UnknownThreadError
from tests.drivers import Driver
from tests.requirements.graphs import answer, in_line, thread


class Job(TypedDict, total=False):
    tasks: list[str]
    results: Annotated[list[str], operator.add]
    told: str


class Office:
    """Jobs are submitted once, each gets a number; a supervisor waits for the result of each."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.runs = 0

    def submit(self, task: str) -> int:
        self.jobs.append(task)
        return len(self.jobs)

    def spawn(self, task: str) -> str:
        """The tool: submit, then wait for the worker."""
        job = step(self.submit, task)
        payload = {"type": "worker_pending", "job_id": job, "task": task, "message": f"Working on {task}"}
        return str(interrupt(payload))

    def one_by_one(self, state: Job) -> Job:
        self.runs += 1
        return {"results": [self.spawn(task) for task in state["tasks"]]}

    def one_by_one_graph(self, store: Store) -> CompiledGraph:
        return in_line(Job, self.one_by_one, self.tell).compile(store)

    def worker(self, given: dict[str, str]) -> Job:
        return {"results": [f"{given['task']}: {self.spawn(given['task'])}"]}

    def tell(self, state: Job) -> Job:
        return {"told": ", ".join(state["results"])}

    def side_by_side_graph(self, store: Store) -> CompiledGraph:
        builder = StateGraph(Job).add_node("worker", self.worker).add_node("tell", self.tell)
        builder.add_conditional_edges(
            START, lambda state: [Send("worker", {"task": task}) for task in state["tasks"]], ["worker"]
        )
        return builder.add_edge("worker", "tell").compile(store)


def kinds(store: Store, name: str = "chat") -> list[str]:
    """What the log of a thread tells, in order."""
    return [event.kind for event in store.events(name)]


# ── Delegate, wait, go on ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_langgraph_free_resume.py::test_spawn_worker_triggers_interrupt")
@pytest.mark.seed("test_master_worker_flow_integration.py::test_interrupt_triggers_waiting_status")
@pytest.mark.seed("test_supervisor_worker_invariants.py::test_run_not_success_while_worker_active")
@pytest.mark.seed("test_supervisor_worker_invariants.py::test_waiting_run_cannot_transition_to_success_directly")
@pytest.mark.requirement("Z1-20", "Z1-24")
def test_run_that_delegated_waits_with_the_job_as_its_payload_and_is_not_done(driver: Driver, store: Store):
    office = Office()
    graph = office.one_by_one_graph(store)

    paused = driver.invoke(graph, {"tasks": ["count logs"]}, thread("chat"))
    still = driver.invoke(graph, None, thread("chat"))

    payload = {"type": "worker_pending", "job_id": 1, "task": "count logs", "message": "Working on count logs"}
    assert (paused.status, paused.interrupt_value) == ("waiting", payload)
    assert (still.status, still.interrupts) == ("waiting", paused.interrupts)
    assert [row.status for row in store.threads()] == ["waiting"]
    assert office.runs == 1


@pytest.mark.seed("test_master_worker_flow_integration.py::test_supervisor_worker_interrupt_resume_flow")
@pytest.mark.seed("test_master_worker_flow_integration.py::test_resume_completes_interrupted_run")
@pytest.mark.seed("test_langgraph_free_resume.py::test_resume_success_with_worker_job")
@pytest.mark.seed("continuation_smoke.spec.ts::same run completes with the worker's text")
@pytest.mark.requirement("Z1-20", "Z1-24", "Z1-25")
def test_result_of_the_worker_completes_the_same_run(driver: Driver, open_file: Callable[[], Store]):
    """Longhouse tests this with a mocked resume; here another process resumes for real."""
    office = Office()
    told = driver.stream(office.one_by_one_graph(open_file()), {"tasks": ["count logs"]}, thread("chat"))
    store = open_file()

    done = driver.invoke(office.one_by_one_graph(store), Command(resume="42 logs"), thread("chat"))

    assert told[-1]["__interrupt__"][0].value["job_id"] == 1
    assert (done.status, done["told"]) == ("done", "42 logs")
    assert kinds(store) == ["run.started", "run.waiting", "run.resumed", "run.done"]
    assert len({event.run_id for event in store.events("chat")}) == 1


@pytest.mark.seed("test_barrier_race_conditions.py::test_barrier_reused_on_reinterrupt")
@pytest.mark.seed("test_master_worker_flow_integration.py::test_different_tasks_create_separate_workers")
@pytest.mark.requirement("Z1-32")
def test_supervisor_waits_again_for_its_next_worker(driver: Driver, store: Store):
    office = Office()
    graph = office.one_by_one_graph(store)
    first = driver.invoke(graph, {"tasks": ["count", "sum up"]}, thread("chat"))

    second = driver.invoke(graph, Command(resume="42"), thread("chat"))
    done = driver.invoke(graph, Command(resume="not many"), thread("chat"))

    assert [stop.interrupt_value["job_id"] for stop in (first, second)] == [1, 2]
    assert second.status == "waiting"
    assert done["told"] == "42, not many"
    assert office.jobs == ["count", "sum up"]
    assert kinds(store) == ["run.started", "run.waiting", "run.resumed", "run.waiting", "run.resumed", "run.done"]


@pytest.mark.seed("parallel-workers.spec.ts::three spawned, three complete, one waiting and one resumed")
@pytest.mark.requirement("Z1-30")
def test_three_workers_are_one_wait_and_one_resume_when_they_report_together(driver: Driver, store: Store):
    office = Office()
    graph = office.side_by_side_graph(store)
    paused = driver.invoke(graph, {"tasks": ["a", "b", "c"]}, thread("chat"))

    reports = {question.id: f"result of {question.value['task']}" for question in paused.interrupts}
    done = driver.invoke(graph, Command(resume=reports), thread("chat"))

    assert [question.value["task"] for question in paused.interrupts] == ["a", "b", "c"]
    assert sorted(office.jobs) == ["a", "b", "c"]
    assert done["results"] == ["a: result of a", "b: result of b", "c: result of c"]
    assert kinds(store) == ["run.started", "run.waiting", "run.resumed", "run.done"]


@pytest.mark.seed("parallel-workers.spec.ts::three spawned, three complete, one waiting and one resumed")
@pytest.mark.requirement("Z1-30")
def test_workers_that_report_one_after_the_other_are_each_taken_once_and_the_rest_is_waited_for(
    driver: Driver, store: Store
):
    office = Office()
    graph = office.side_by_side_graph(store)
    waits = driver.invoke(graph, {"tasks": ["a", "b", "c"]}, thread("chat")).interrupts

    left = []
    for question in (waits[2], waits[0], waits[1]):
        result = driver.invoke(graph, answer(question, "done"), thread("chat"))
        left.append([asked.value["task"] for asked in result.interrupts])

    assert left == [["a", "b"], ["b"], []]
    assert result["told"] == "a: done, b: done, c: done"
    assert sorted(office.jobs) == ["a", "b", "c"]


@pytest.mark.seed("test_async_inbox_model.py::test_wait_for_worker_interrupt_propagates_through_gather")
@pytest.mark.requirement("Z1-30")
async def test_questions_of_tools_that_are_gathered_in_one_node_all_reach_the_caller(store: Store):
    async def tool(name: str) -> str:
        return str(interrupt(f"{name}?", key=name))

    async def tools(state: Job) -> Job:
        return {"results": list(await asyncio.gather(*(tool(task) for task in state["tasks"])))}

    graph = in_line(Job, tools).compile(store)
    paused = await graph.ainvoke({"tasks": ["a", "b"]}, thread("chat"))

    done = await graph.ainvoke(
        Command(resume={each.id: each.value.upper() for each in paused.interrupts}), thread("chat")
    )

    assert [question.value for question in paused.interrupts] == ["a?", "b?"]
    assert done["results"] == ["A?", "B?"]


# ── Once, and only where it is waited for ──────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_continuation_idempotency.py::test_concurrent_resume_only_runs_once")
@pytest.mark.seed("test_langgraph_free_resume.py::test_concurrent_resume_only_runs_once")
@pytest.mark.seed("test_supervisor_worker_invariants.py::test_atomic_state_transition_prevents_double_resume")
@pytest.mark.seed("test_barrier_race_conditions.py::test_atomic_barrier_check")
@pytest.mark.seed("test_barrier_race_conditions.py::test_barrier_already_resuming_returns_skipped")
@pytest.mark.requirement("Z1-24")
def test_results_that_race_are_taken_once_and_the_losers_are_told(store: Store):
    office, start = Office(), Barrier(6)
    graph = office.one_by_one_graph(store)
    graph.invoke({"tasks": ["count"]}, thread("chat"))

    def report(number: int) -> str:
        start.wait(60)
        try:
            return str(graph.invoke(Command(resume=f"from {number}"), thread("chat"))["told"])
        except (ConflictError, ResumeError):
            return "refused"

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(report, range(6)))

    [taken] = [outcome for outcome in outcomes if outcome != "refused"]
    assert graph.get_state(thread("chat")).values["told"] == taken
    assert office.runs == 2, "once to ask, once with the answer"
    assert kinds(store).count("run.resumed") == 1


@pytest.mark.seed("test_langgraph_free_resume.py::test_resume_skipped_when_not_waiting")
@pytest.mark.seed("test_langgraph_free_resume.py::test_run_continuation_idempotent_tool_message")
@pytest.mark.seed("test_supervisor_worker_invariants.py::test_resume_only_works_on_waiting_runs")
@pytest.mark.seed("test_supervisor_worker_invariants.py::test_resume_skips_nonexistent_run")
@pytest.mark.requirement("Z1-24")
def test_result_for_a_thread_that_does_not_wait_or_does_not_exist_is_refused_and_writes_nothing(
    driver: Driver, store: Store
):
    graph = Office().one_by_one_graph(store)
    driver.invoke(graph, {"tasks": ["count"]}, thread("chat"))
    done = driver.invoke(graph, Command(resume="42"), thread("chat"))
    log = kinds(store)

    with pytest.raises(NotWaitingError):
        driver.invoke(graph, Command(resume="43"), thread("chat"))
    with pytest.raises(UnknownThreadError):
        driver.invoke(graph, Command(resume="42"), thread("nobody"))

    assert graph.get_state(thread("chat")).values == done
    assert kinds(store) == log
    assert [row.thread_id for row in store.threads()] == ["chat"]


@pytest.mark.seed("test_master_worker_flow_integration.py::test_spawn_worker_fallback_when_outside_runnable_context")
@pytest.mark.requirement("Z1-24")
def test_tool_called_outside_of_a_graph_is_refused_before_anything_is_submitted():
    """Longhouse queues the job and nobody waits for it."""
    office = Office()

    with pytest.raises(InterruptError):
        interrupt("Working …")
    with pytest.raises(Exception, match="outside"):
        office.spawn("count")

    assert office.jobs == []


# ── A job is submitted once ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_spawn_worker_idempotency.py::test_exact_task_reuse_while_in_progress")
@pytest.mark.seed("test_spawn_worker_idempotency.py::test_completed_job_returns_cached_result")
@pytest.mark.requirement("Z1-24")
def test_replayed_node_finds_its_job_and_its_result_and_submits_neither_again(
    driver: Driver, open_file: Callable[[], Store]
):
    office = Office()
    driver.invoke(office.one_by_one_graph(open_file()), {"tasks": ["count", "sum up"]}, thread("chat"))
    for result in ("42", "not many"):
        done = driver.invoke(office.one_by_one_graph(open_file()), Command(resume=result), thread("chat"))

    assert office.runs == 3
    assert office.jobs == ["count", "sum up"]
    assert done["results"] == ["42", "not many"]


@pytest.mark.seed("test_spawn_worker_idempotency.py::test_different_tasks_create_separate_workers")
@pytest.mark.seed("test_spawn_worker_idempotency.py::test_no_fuzzy_matching_for_similar_tasks")
@pytest.mark.requirement("Z1-24")
@pytest.mark.parametrize("tasks", [["check disk", "check disks"], ["check disk", "check disk"]], ids=["alike", "equal"])
def test_each_call_is_a_job_of_its_own_however_alike_their_words_are(driver: Driver, store: Store, tasks: list[str]):
    """Longhouse takes two calls with the same words for one; here each call counts."""
    office = Office()
    graph = office.side_by_side_graph(store)

    paused = driver.invoke(graph, {"tasks": tasks}, thread("chat"))

    assert sorted(office.jobs) == tasks
    assert len({question.id for question in paused.interrupts}) == 2


@pytest.mark.seed("test_spawn_worker_idempotency.py::test_cross_run_isolation")
@pytest.mark.requirement("Z1-24", "Z1-28")
def test_same_task_on_two_threads_is_two_jobs(driver: Driver, store: Store):
    office = Office()
    graph = office.one_by_one_graph(store)

    for chat in (7, "8"):
        driver.invoke(graph, {"tasks": ["count"]}, thread(chat))
    done = driver.invoke(graph, Command(resume="42"), thread("7"))

    assert office.jobs == ["count", "count"]
    assert done["told"] == "42", "a thread is the same by number and by text"
    assert graph.get_state(thread(8)).next == ("one_by_one",)


# ── One run at a time, and a log of it ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_single_run_guard.py::test_api_returns_409_for_concurrent_runs")
@pytest.mark.seed("test_single_run_guard.py::lock released on success")
@pytest.mark.requirement("Z1-24")
def test_second_run_on_a_thread_that_runs_is_refused_and_the_next_one_is_let_in(store: Store):
    inside, release = Event(), Event()

    def work(state: Job) -> Job:
        inside.set()
        assert release.wait(60)
        return {"results": ["done"]}

    graph = in_line(Job, work).compile(store)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(graph.invoke, {"tasks": []}, thread("chat"))
        assert inside.wait(60)

        with pytest.raises(ThreadBusyError, match="chat"):
            graph.invoke({"tasks": []}, thread("chat"))
        release.set()
        first.result(60)

    assert graph.invoke({"tasks": []}, thread("chat"))["results"] == ["done", "done"]


@pytest.mark.seed("test_event_store.py::persists", "test_event_store.py::ids monotonic")
@pytest.mark.seed("test_event_store.py::events after an id, with a filter of tokens")
@pytest.mark.seed("test_event_store.py::latest id", "test_event_store.py::isolation per run")
@pytest.mark.seed("test_event_store.py::cascade delete")
@pytest.mark.requirement("Z1-25")
def test_log_of_a_thread_is_kept_in_order_read_from_any_point_and_deleted_with_it(
    driver: Driver, open_file: Callable[[], Store]
):
    office = Office()
    graph = office.one_by_one_graph(open_file())
    driver.invoke(graph, {"tasks": ["count"]}, thread("chat"))
    driver.invoke(graph, {"tasks": ["another"]}, thread("other"))
    driver.invoke(graph, Command(resume="42"), thread("chat"))

    store = open_file()
    told = store.events("chat")
    numbers = [event.number for event in told]
    missed = store.events("chat", after=numbers[1])
    store.delete_thread("chat")

    assert [event.kind for event in told] == ["run.started", "run.waiting", "run.resumed", "run.done"]
    assert numbers == sorted(set(numbers))
    assert missed == told[2:]
    assert store.events("chat") == []
    assert kinds(store, "other") == ["run.started", "run.waiting"]
