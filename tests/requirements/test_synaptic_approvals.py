"""Synaptic's human in the loop: some tools need a person's word, given here as the answer to a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from bide import Command, MessagesState, StateGraph, Store, interrupt, step
from bide.errors import InvalidAnswerError
from tests.drivers import Driver
from tests.requirements.agents import Script, Tools, asked, calls, react_agent, result_of, said, says
from tests.requirements.graphs import answer, thread

Check = Callable[[dict[str, Any]], None]


class Decision(TypedDict):
    approve: bool
    reason: str


YES: Decision = {"approve": True, "reason": ""}
NO: Decision = {"approve": False, "reason": "not on a Friday"}


class Desk:
    """Two tools, a list of those that need a person's word, and a note of what was really done."""

    def __init__(self, *guarded: str, check: Check = lambda decision: None) -> None:
        self.done: list[str] = []
        self.guarded = guarded or ("delete", "read")
        self.check = check

    @property
    def tools(self) -> Tools:
        return {"delete": self.delete, "read": self.read}

    def delete(self, what: str) -> str:
        self.done.append(f"deleted {what}")
        return "deleted"

    def read(self, what: str) -> str:
        self.done.append(f"read {what}")
        return f"contents of {what}"

    def run(self, state: MessagesState) -> dict[str, Any]:
        return {"messages": [self.run_one(call) for call in state["messages"][-1].tool_calls]}

    def run_one(self, call: dict[str, Any]) -> Any:
        if call["name"] in self.guarded:
            question = {"tool": call["name"], "args": call["args"]}
            decision = interrupt(question, key=call["id"], response_schema=Decision)
            self.check(decision)
            if not decision["approve"]:
                return result_of(call, f"Rejected: {decision['reason']}", status="error")
        return result_of(call, step(self.tools[call["name"]], key=f"do {call['id']}", **call["args"]))

    def graph(self, model: Script) -> StateGraph:
        return react_agent(model, self.tools, run=self.run)


@pytest.mark.seed("human_in_the_loop.rs::approved_call_passes_through")
@pytest.mark.requirement("S3-04", "S3-12")
def test_approved_call_is_made_once_after_the_approval(driver: Driver, open_file: Callable[[], Store]):
    desk, model = Desk(), Script(calls("delete", what="logs"), says("Gone."))
    driver.invoke(desk.graph(model).compile(open_file()), asked("delete the logs"), thread("t"))
    done_before = list(desk.done)

    done = driver.invoke(desk.graph(model).compile(open_file()), Command(resume=YES), thread("t"))

    assert (done_before, desk.done) == ([], ["deleted logs"])
    assert said(done["messages"])[-2:] == [("tool", "deleted"), ("ai", "Gone.")]


@pytest.mark.seed("human_in_the_loop.rs::rejected_call_returns_rejection_message")
@pytest.mark.requirement("S3-04", "S3-15")
def test_rejected_call_is_not_made_and_the_model_is_told_why(driver: Driver, store: Store):
    desk, model = Desk(), Script(calls("delete", what="logs"), says("Then I leave them."))
    graph = desk.graph(model).compile(store)
    driver.invoke(graph, asked("delete the logs"), thread("t"))

    done = driver.invoke(graph, Command(resume=NO), thread("t"))

    rejection = model.heard[1][-1]
    assert desk.done == []
    assert (rejection.status, rejection.content) == ("error", "Rejected: not on a Friday")
    assert rejection.tool_call_id == "call-delete"
    assert said(done["messages"])[-1] == ("ai", "Then I leave them.")


@pytest.mark.seed("human_in_the_loop.rs::for_tools_guards_only_listed_tools")
@pytest.mark.seed("human_in_the_loop.rs::for_tools_allows_unlisted_tools_without_approval")
@pytest.mark.requirement("S3-04")
@pytest.mark.parametrize(("tool", "pauses"), [("delete", True), ("read", False)])
def test_only_listed_tools_need_approval(driver: Driver, store: Store, tool: str, pauses: bool):
    desk, model = Desk("delete"), Script(calls(tool, what="logs"), says("Done."))

    result = driver.invoke(desk.graph(model).compile(store), asked("go"), thread("t"))

    assert result.is_interrupted is pauses
    assert desk.done == ([] if pauses else ["read logs"])


@pytest.mark.seed("human_in_the_loop.rs::for_tools_allows_unlisted_tools_without_approval")
@pytest.mark.requirement("S3-04")
def test_unlisted_tool_beside_a_guarded_one_is_run_once_though_the_node_runs_again(driver: Driver, store: Store):
    desk, model = Desk("delete"), Script(calls("read", "delete", what="logs"), says("Done."))
    graph = desk.graph(model).compile(store)
    driver.invoke(graph, asked("read, then delete"), thread("t"))
    read_at_the_pause = list(desk.done)

    driver.invoke(graph, Command(resume=YES), thread("t"))

    assert read_at_the_pause == ["read logs"]
    assert desk.done == ["read logs", "deleted logs"]


@pytest.mark.seed("human_in_the_loop.rs::approval_callback_receives_correct_tool_name_and_args")
@pytest.mark.requirement("S3-01", "S3-04")
def test_person_is_shown_the_tool_and_its_arguments_for_each_call(driver: Driver, store: Store):
    desk, model = Desk(), Script(calls("read", "delete", what="logs"), says("Done."))
    graph = desk.graph(model).compile(store)

    [read] = driver.invoke(graph, asked("go"), thread("t")).interrupts
    [delete] = driver.invoke(graph, answer(read, YES), thread("t")).interrupts
    driver.invoke(graph, answer(delete, NO), thread("t"))

    assert (read.value, read.key) == ({"tool": "read", "args": {"what": "logs"}}, "call-read")
    assert (delete.value, delete.key) == ({"tool": "delete", "args": {"what": "logs"}}, "call-delete")
    assert desk.done == ["read logs"]


@pytest.mark.seed("human_in_the_loop.rs::callback_error_propagates_to_caller")
@pytest.mark.requirement("S3-12")
def test_error_while_the_approval_is_checked_reaches_the_caller_and_the_answer_is_kept(driver: Driver, store: Store):
    failures = [ConnectionError("the approval service is down")]

    def check(decision: dict[str, Any]) -> None:
        if failures:
            raise failures.pop()

    desk, model = Desk(check=check), Script(calls("delete", what="logs"), says("Gone."))
    graph = desk.graph(model).compile(store)
    driver.invoke(graph, asked("delete the logs"), thread("t"))

    with pytest.raises(ConnectionError, match="approval service"):
        driver.invoke(graph, Command(resume=YES), thread("t"))
    done_by_then = list(desk.done)
    done = driver.invoke(graph, None, thread("t"))

    assert (done_by_then, desk.done) == ([], ["deleted logs"])
    assert done.is_complete


@pytest.mark.seed("human_in_the_loop.rs::callback_error_propagates_to_caller")
@pytest.mark.requirement("S3-12")
@pytest.mark.parametrize("given", ["yes", {"approve": "perhaps", "reason": ""}, {}, None])
def test_answer_that_decides_nothing_is_refused_and_the_question_stays_open(driver: Driver, store: Store, given: Any):
    desk, model = Desk(), Script(calls("delete", what="logs"), says("Gone."))
    graph = desk.graph(model).compile(store)
    paused = driver.invoke(graph, asked("delete the logs"), thread("t"))

    with pytest.raises(InvalidAnswerError):
        driver.invoke(graph, Command(resume={paused.interrupts[0].id: given}), thread("t"))

    assert desk.done == []
    assert graph.get_state(thread("t")).interrupts == paused.interrupts
