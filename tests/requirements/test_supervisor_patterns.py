"""A supervisor that delegates: pause inside a tool, resume with the worker's result (Z1-12 … Z1-17)."""

from __future__ import annotations

import operator
from threading import Event, Thread
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    END,
    AIMessage,
    Command,
    HumanMessage,
    MessagesState,
    StateGraph,
    ToolMessage,
    interrupt,
    step,
)
from bide.errors import (
    AlreadyAnsweredError,
    ConflictError,
    NotWaitingError,
    ReplayMismatchError,
    UnknownThreadError,
)
from tests.requirements.graphs import answer, checkpoint_ids, in_line, thread


class Job(TypedDict, total=False):
    task: str
    pending_job_id: int
    answers: list[Any]
    result: Any
    log: Annotated[list[str], operator.add]


def spawn_worker(task: str) -> str:
    """A tool, not a node: it knows nothing of graphs, and pauses the one that it is called in."""
    payload = {"type": "worker_pending", "job_id": 123, "task": task, "message": f"Job 123 started: {task}"}
    return str(interrupt(payload))


class Supervisor:
    """A small loop of model and tools: it delegates once, then says what the worker found."""

    def __init__(self) -> None:
        self.model_calls = 0

    def model(self, state: MessagesState) -> dict[str, Any]:
        self.model_calls += 1
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage(f"The worker says: {last.content}", id="said")]}
        call = {"name": "spawn_worker", "args": {"task": "count the logs"}, "id": "call-1"}
        return {"messages": [AIMessage("Delegating.", id="delegating", tool_calls=[call])]}

    def tools(self, state: MessagesState) -> dict[str, Any]:
        [call] = state["messages"][-1].tool_calls
        result = spawn_worker(**call["args"])
        return {"messages": [ToolMessage(result, id="result", tool_call_id=call["id"])]}

    def graph(self) -> StateGraph:
        graph = StateGraph(MessagesState).add_node("model", self.model).add_node("tools", self.tools)
        graph.set_entry_point("model").add_edge("tools", "model")
        return graph.add_conditional_edges(
            "model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
        )


ASKED = {"messages": [HumanMessage("How many logs?", id="asked")]}


# ── The payload goes out, the result comes back ────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-12")
def test_interrupt_deep_inside_a_tool_reaches_the_caller_under_its_key(store):
    graph = Supervisor().graph().compile(store)

    result = graph.invoke(ASKED, thread("chat"))

    [question] = result["__interrupt__"]
    assert question.value == {
        "type": "worker_pending",
        "job_id": 123,
        "task": "count the logs",
        "message": "Job 123 started: count the logs",
    }
    assert result.next == ("tools",)
    assert [message.id for message in result["messages"]] == ["asked", "delegating"]


@pytest.mark.requirement("Z1-12")
async def test_stream_ends_with_the_payload_and_no_error(store):
    graph = Supervisor().graph().compile(store)

    parts = [part async for part in graph.astream(ASKED, thread("chat"), stream_mode="updates")]

    assert [list(part) for part in parts] == [["model"], ["__interrupt__"]]
    assert parts[-1]["__interrupt__"][0].value["job_id"] == 123


@pytest.mark.seed("test_langgraph_free_resume.py::test_run_continuation_creates_tool_message")
@pytest.mark.requirement("Z1-13", "Z1-25")
def test_result_is_what_the_tool_returns_and_no_message_is_made_of_it(store):
    supervisor = Supervisor()
    graph = supervisor.graph().compile(store)
    graph.invoke(ASKED, thread("chat"))

    done = graph.invoke(Command(resume="42 logs"), thread("chat"))

    assert done["messages"] == [
        HumanMessage("How many logs?", id="asked"),
        AIMessage(
            "Delegating.",
            id="delegating",
            tool_calls=[{"name": "spawn_worker", "args": {"task": "count the logs"}, "id": "call-1"}],
        ),
        ToolMessage("42 logs", id="result", tool_call_id="call-1"),
        AIMessage("The worker says: 42 logs", id="said"),
    ]
    assert supervisor.model_calls == 2


@pytest.mark.requirement("Z1-13")
def test_answer_that_looks_like_a_message_is_still_only_a_return_value(store):
    def ask(state: MessagesState) -> dict[str, Any]:
        given = interrupt("What now?")
        return {"messages": [AIMessage(given.content.upper(), id="said")]}

    graph = in_line(MessagesState, ask).compile(store)
    graph.invoke(ASKED, thread("chat"))

    done = graph.invoke(Command(resume=HumanMessage("hello", id="not in the list")), thread("chat"))

    assert [message.id for message in done["messages"]] == ["asked", "said"]
    assert done["messages"][-1].content == "HELLO"


# ── A checkpoint at every step, under the thread's id ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-14")
def test_every_step_leaves_a_checkpoint_that_says_what_comes_next(store):
    graph = Supervisor().graph().compile(store)
    graph.invoke(ASKED, thread("chat"))
    graph.invoke(Command(resume="42 logs"), thread("chat"))

    history = list(graph.get_state_history(thread("chat"), order="asc"))

    assert [snapshot.next for snapshot in history] == [("model",), ("tools",), ("model",), ()]
    assert [len(snapshot.values["messages"]) for snapshot in history] == [1, 2, 3, 4]
    parents = [snapshot.parent_config for snapshot in history]
    assert parents == [None, *(snapshot.config for snapshot in history[:-1])]


@pytest.mark.requirement("Z1-14")
def test_result_sent_to_another_thread_id_changes_nothing(store):
    graph = Supervisor().graph().compile(store)
    paused = graph.invoke(ASKED, thread("chat"))

    with pytest.raises(UnknownThreadError):
        graph.invoke(Command(resume="42 logs"), thread("chat-2"))

    assert [row.thread_id for row in store.threads()] == ["chat"]
    assert graph.get_state(thread("chat")).interrupts == paused.interrupts


@pytest.mark.requirement("Z1-14")
def test_result_that_comes_twice_is_taken_once(store):
    supervisor = Supervisor()
    graph = supervisor.graph().compile(store)
    graph.invoke(ASKED, thread("chat"))
    done = graph.invoke(Command(resume="42 logs"), thread("chat"))

    with pytest.raises(NotWaitingError):
        graph.invoke(Command(resume="43 logs"), thread("chat"))

    assert graph.get_state(thread("chat")).values == done
    assert supervisor.model_calls == 2


@pytest.mark.seed("store/*_test.go::save conflict")
@pytest.mark.requirement("Z1-14")
def test_result_that_comes_while_the_first_one_is_worked_on_is_refused(store):
    asking, release = Event(), Event()
    got: list[Any] = []

    def delegate(state: Job) -> dict[str, Any]:
        result = interrupt("Working …")
        got.append(result)
        asking.set()
        assert release.wait(60)
        return {"result": result}

    graph = in_line(Job, delegate).compile(store)
    graph.invoke({"task": "count"}, thread("job"))
    first = Thread(target=graph.invoke, args=(Command(resume="first"), thread("job")))
    first.start()
    assert asking.wait(60)

    with pytest.raises(ConflictError):
        graph.invoke(Command(resume="second"), thread("job"))
    release.set()
    first.join(60)

    assert got == ["first"]
    assert graph.get_state(thread("job")).values["result"] == "first"


# ── The node starts again; what it has done stays done ─────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-15")
def test_node_runs_again_from_its_top_and_recorded_steps_are_not_made_again(open_file):
    made: list[str] = []

    def submit(task: str) -> int:
        made.append(f"submit {task}")
        return 123

    def delegate(state: Job) -> dict[str, Any]:
        made.append("top")
        job = step(submit, state["task"])
        result = interrupt({"job_id": job})
        made.append("after")
        return {"result": [job, result]}

    in_line(Job, delegate).compile(open_file()).invoke({"task": "count"}, thread("job"))

    done = in_line(Job, delegate).compile(open_file()).invoke(Command(resume="42"), thread("job"))

    assert made == ["top", "submit count", "top", "after"]
    assert done["result"] == [123, "42"]


@pytest.mark.requirement("Z1-15")
async def test_steps_of_an_async_node_between_two_pauses_are_each_made_once(store):
    made: list[str] = []

    async def submit(task: str) -> str:
        made.append(task)
        return f"job of {task}"

    async def delegate(state: Job) -> dict[str, Any]:
        first = interrupt(await step(submit, "first"))
        second = interrupt(await step(submit, first))
        return {"answers": [first, second], "result": await step(submit, "third")}

    graph = in_line(Job, delegate).compile(store)
    paused = await graph.ainvoke({"task": "count"}, thread("job"))
    again = await graph.ainvoke(Command(resume="second"), thread("job"))

    done = await graph.ainvoke(Command(resume="enough"), thread("job"))

    assert [paused.interrupt_value, again.interrupt_value] == ["job of first", "job of second"]
    assert made == ["first", "second", "third"]
    assert done["answers"] == ["second", "enough"]


@pytest.mark.requirement("Z1-15")
def test_worker_result_is_kept_when_the_supervisor_then_fails(store):
    failures = ["the model is down"]

    def delegate(state: Job) -> dict[str, Any]:
        result = interrupt("Working …")
        if failures:
            raise ConnectionError(failures.pop())
        return {"result": result}

    graph = in_line(Job, delegate).compile(store)
    graph.invoke({"task": "count"}, thread("job"))
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="42"), thread("job"))
    with pytest.raises(AlreadyAnsweredError):
        graph.invoke(Command(resume="43"), thread("job"))

    done = graph.invoke(None, thread("job"))

    assert done["result"] == "42"


# ── A write in the middle of a node ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-16")
def test_job_id_written_with_the_pause_guards_the_replay(open_file):
    jobs: list[str] = []

    def delegate(state: Job) -> dict[str, Any]:
        job = state.get("pending_job_id")
        if job is None:
            jobs.append(state["task"])
            job = len(jobs)
        result = interrupt({"job_id": job}, update={"pending_job_id": job, "log": [f"job {job} submitted"]})
        return {"result": result, "log": ["done"]}

    paused = in_line(Job, delegate).compile(open_file()).invoke({"task": "count"}, thread("job"))

    done = in_line(Job, delegate).compile(open_file()).invoke(Command(resume="42"), thread("job"))

    assert paused.value == {"task": "count", "pending_job_id": 1, "log": ["job 1 submitted"]}
    assert jobs == ["count"]
    assert done == {"task": "count", "pending_job_id": 1, "result": "42", "log": ["job 1 submitted", "done"]}


@pytest.mark.requirement("Z1-16")
def test_each_pause_of_a_node_writes_its_own_update_once(store):
    def delegate(state: Job) -> dict[str, Any]:
        first = interrupt("first?", update={"log": ["asked first"]})
        second = interrupt("second?", update={"log": ["asked second"]})
        return {"answers": [first, second], "log": ["done"]}

    graph = in_line(Job, delegate).compile(store)
    logs = [graph.invoke({"task": "count"}, thread("job"))["log"]]
    logs.append(graph.invoke(Command(resume=1), thread("job"))["log"])

    done = graph.invoke(Command(resume=2), thread("job"))

    assert logs == [["asked first"], ["asked first", "asked second"]]
    assert done["log"] == ["asked first", "asked second", "done"]


@pytest.mark.requirement("Z1-16")
def test_change_that_was_not_given_to_the_pause_is_dropped(store):
    def delegate(state: Job) -> dict[str, Any]:
        state["pending_job_id"] = 1
        state["log"].append("never saved")
        return {"result": interrupt("Working …")}

    graph = in_line(Job, delegate).compile(store)

    paused = graph.invoke({"task": "count", "log": ["begun"]}, thread("job"))

    assert paused.value == {"task": "count", "log": ["begun"]}
    assert graph.get_state(thread("job")).values == {"task": "count", "log": ["begun"]}


# ── Several questions in one node ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z1-17")
def test_answers_fit_the_questions_in_the_order_they_are_asked(store):
    def survey(state: Job) -> dict[str, Any]:
        return {"answers": [interrupt("name?"), interrupt("age?"), interrupt("city?")]}

    graph = in_line(Job, survey).compile(store)
    questions = [graph.invoke({"task": "survey"}, thread("job")).interrupts]
    for given in ("Ada", 36):
        questions.append(graph.invoke(Command(resume=given), thread("job")).interrupts)

    done = graph.invoke(Command(resume="London"), thread("job"))

    assert [[question.value for question in asked] for asked in questions] == [["name?"], ["age?"], ["city?"]]
    assert len({asked[0].id for asked in questions}) == 3
    assert done["answers"] == ["Ada", 36, "London"]


@pytest.mark.requirement("Z1-17")
def test_answer_is_never_given_to_a_question_that_was_not_asked(store):
    skips = []

    def survey(state: Job) -> dict[str, Any]:
        first = None if skips else interrupt("May we delete everything?")
        return {"answers": [first, interrupt("May we send a card?")]}

    graph = in_line(Job, survey).compile(store)
    graph.invoke({"task": "survey"}, thread("job"))
    skips.append("the first question is skipped on replay")

    with pytest.raises(ReplayMismatchError) as raised:
        graph.invoke(Command(resume=True), thread("job"))

    assert "answered: 'May we delete everything?'" in str(raised.value)
    assert "asked now: 'May we send a card?'" in str(raised.value)
    assert "answers" not in graph.get_state(thread("job")).values


@pytest.mark.requirement("Z1-17")
def test_questions_with_keys_may_come_in_another_order(store):
    order = ["name", "age"]

    def survey(state: Job) -> dict[str, Any]:
        found = {what: interrupt(f"{what}?", key=what) for what in list(order)}
        return {"answers": [found["name"], found["age"]]}

    graph = in_line(Job, survey).compile(store)
    [name] = graph.invoke({"task": "survey"}, thread("job")).interrupts
    order.reverse()

    [age] = graph.invoke(answer(name, "Ada"), thread("job")).interrupts
    done = graph.invoke(answer(age, 36), thread("job"))

    assert (name.key, age.key) == ("name", "age")
    assert done["answers"] == ["Ada", 36]


@pytest.mark.requirement("Z1-17")
def test_question_keeps_its_id_when_the_node_asks_it_again(store):
    failures = ["once"]

    def survey(state: Job) -> dict[str, Any]:
        first = interrupt("name?")
        if failures:
            raise ConnectionError(failures.pop())
        return {"answers": [first, interrupt("age?")]}

    graph = in_line(Job, survey).compile(store)
    [name] = graph.invoke({"task": "survey"}, thread("job")).interrupts
    with pytest.raises(ConnectionError):
        graph.invoke(answer(name, "Ada"), thread("job"))

    [age] = graph.invoke(None, thread("job")).interrupts
    done = graph.invoke(answer(age, 36), thread("job"))

    assert name.id != age.id
    assert done["answers"] == ["Ada", 36]
    assert len(checkpoint_ids(graph, thread("job"))) == 2
