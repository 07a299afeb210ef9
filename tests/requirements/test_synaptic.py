"""Requirements S3-01 … S3-15: a node pauses by its own decision, and a second call with the same thread goes on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    END,
    START,
    AIMessage,
    Command,
    CompiledGraph,
    HumanMessage,
    Interrupt,
    MemorySaver,
    MessagesState,
    Runtime,
    StateGraph,
    Store,
    interrupt,
)
from bide.errors import GraphError, GraphInterrupt, GraphRecursionError, InterruptError
from tests.drivers import Driver
from tests.requirements.graphs import thread
from tests.requirements.visits import Visits, counting, visit


def keep_words(old: str, new: str) -> str:
    return new or old


class Review(TypedDict, total=False):
    proposal: Annotated[str, keep_words]
    approved: Annotated[bool, operator.or_]
    done: Annotated[bool, operator.or_]


NOTHING_GIVEN = {"proposal": "", "approved": False, "done": False}


def propose(state: Review) -> Review:
    return {"proposal": "Delete all temporary files"}


def gate(state: Review) -> Interrupt:
    return Interrupt({"question": "Approve?", "proposal": state["proposal"]})


def execute(state: Review) -> Review:
    return {"done": True}


def review_graph(**options: Any) -> CompiledGraph:
    builder = StateGraph(Review)
    builder.add_node(propose).add_node(gate).add_node(execute)
    builder.set_entry_point("propose")
    builder.add_edge("propose", "gate").add_edge("gate", "execute").add_edge("execute", END)
    return builder.compile(**options)


# ── The pause ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("S3-01")
@pytest.mark.parametrize(("amount", "pauses"), [(10, False), (10_000, True)])
def test_node_decides_at_run_time_whether_to_pause(driver: Driver, store: Store, amount: int, pauses: bool):
    def pay(state):
        if state["amount"] > 100:
            interrupt({"question": "Pay?", "amount": state["amount"]})
        return {"paid": True}

    graph = StateGraph({"amount": int, "paid": bool}).add_node(pay).add_edge(START, "pay").compile(store)

    result = driver.invoke(graph, {"amount": amount}, thread("t"))

    assert result.is_interrupted is pauses
    assert result.interrupt_value == ({"question": "Pay?", "amount": amount} if pauses else None)
    assert result.get("paid", False) is not pauses


@pytest.mark.requirement("S3-02")
def test_node_returns_its_question_as_output_and_is_finished_by_it(driver: Driver, store: Store):
    runs: list[str] = []

    def ask(state: Review) -> Interrupt | Review:
        runs.append("ask")
        return Interrupt("Approve?") if not state.get("approved") else {"proposal": "pre-approved"}

    builder = StateGraph(Review).add_sequence([ask, execute]).add_edge(START, "ask")
    graph = builder.compile(store)

    paused = driver.invoke(graph, {"proposal": "x"}, thread("asked"))
    resumed = driver.invoke(graph, Command(resume="yes"), thread("asked"))
    unasked = driver.invoke(graph, {"approved": True}, thread("free"))

    assert (paused.is_interrupted, paused.next) == (True, ("execute",))
    assert (resumed.is_complete, resumed["done"]) == (True, True)
    assert (unasked.is_complete, unasked["proposal"]) == (True, "pre-approved")
    assert runs == ["ask", "ask"], "once per thread: the resume went on after the node"


@pytest.mark.requirement("S3-04")
@pytest.mark.parametrize(("tool", "pauses"), [("delete_database", True), ("read_database", False)])
def test_gate_pauses_when_the_last_message_calls_a_dangerous_tool(
    driver: Driver, store: Store, tool: str, pauses: bool
):
    def gate(state: MessagesState) -> Any:
        for call in state["messages"][-1].tool_calls:
            if call["name"] == "delete_database":
                return Interrupt({"question": "Approve database deletion?", "tool_call": call["name"]})
        return None

    graph = StateGraph(MessagesState).add_node(gate).add_edge(START, "gate").compile(store)
    said = AIMessage(content="", tool_calls=[{"name": tool, "args": {}, "id": "1", "type": "tool_call"}])

    result = driver.invoke(graph, {"messages": [HumanMessage("clean up"), said]}, thread("t"))

    assert result.is_interrupted is pauses
    if pauses:
        assert result.interrupt_value == {"question": "Approve database deletion?", "tool_call": "delete_database"}


@pytest.mark.seed("interrupt.rs::interrupt_pauses_graph")
@pytest.mark.requirement("S3-11", "S3-01")
def test_update_of_the_pausing_node_is_not_applied_and_earlier_ones_are_kept(driver: Driver, store: Store):
    def pausing(state: Visits) -> Visits:
        state["visited"].append("in place")
        interrupt("go on?")
        return {"counter": 1, "visited": ["b"]}

    builder = StateGraph(Visits).add_sequence([("a", counting("a")), ("b", pausing)]).add_edge(START, "a")
    graph = builder.compile(store)

    paused = driver.invoke(graph, {}, thread("t"))

    assert paused.interrupt_value == "go on?"
    assert paused.value == {"counter": 1, "visited": ["a"]}
    assert graph.get_state(thread("t")).values == {"counter": 1, "visited": ["a"]}


@pytest.mark.seed("interrupt.rs::graph_result_complete_api")
@pytest.mark.requirement("S3-05")
def test_result_of_a_finished_run_says_that_it_is_complete(driver: Driver):
    result = driver.invoke(visit("ab"), {})

    assert (result.is_complete, result.is_interrupted, result.status) == (True, False, "done")
    assert (result.interrupts, result.interrupt_value) == ((), None)
    assert result.value == {"counter": 2, "visited": ["a", "b"]}


@pytest.mark.seed("interrupt.rs::graph_result_interrupted_api")
@pytest.mark.requirement("S3-05")
def test_result_of_a_paused_run_carries_the_state_and_the_question(driver: Driver, store: Store):
    result = driver.invoke(review_graph(checkpointer=store), {}, thread("t"))

    asked = {"question": "Approve?", "proposal": "Delete all temporary files"}
    assert (result.is_complete, result.is_interrupted, result.status) == (False, True, "waiting")
    assert result.interrupt_value == asked
    assert [question.value for question in result["__interrupt__"]] == [asked]
    assert result.value["proposal"] == "Delete all temporary files"
    assert "__interrupt__" not in result.value


@pytest.mark.requirement("S3-06")
def test_compile_checks_the_graph_whether_or_not_a_store_is_attached(store: Store):
    builder = StateGraph(Visits).add_node("a", counting("a")).add_edge(START, "a").add_edge("a", "nowhere")

    for checkpointer in (None, store):
        with pytest.raises(GraphError, match="nowhere"):
            builder.compile(checkpointer)


@pytest.mark.requirement("S3-06")
def test_threads_are_told_apart_by_the_id_in_the_config(driver: Driver, store: Store):
    graph = review_graph(checkpointer=store)
    driver.invoke(graph, {}, thread("one"))
    driver.invoke(graph, {}, thread("two"))

    driver.invoke(graph, Command(resume=True), thread("one"))

    assert graph.get_state(thread("one")).next == ()
    assert graph.get_state(thread("two")).next == ("execute",)
    assert len(graph.get_state(thread("two")).interrupts) == 1


@pytest.mark.requirement("S3-14", "Z0-11")
def test_only_the_store_changes_between_a_try_out_and_production(driver: Driver, tmp_path: Path):
    results = []

    for checkpointer in (MemorySaver(), Store.open(f"sqlite:///{tmp_path / 'bide.db'}")):
        with checkpointer:
            graph = review_graph(checkpointer=checkpointer)
            paused = driver.invoke(graph, {}, thread("t"))
            results.append((paused.value, driver.invoke(graph, Command(resume="yes"), thread("t")).value))

    assert results[0] == results[1]
    assert results[0][1] == {"proposal": "Delete all temporary files", "approved": False, "done": True}


@pytest.mark.requirement("S3-14")
def test_user_may_bring_a_store_of_their_own(driver: Driver):
    class Watched(MemorySaver):
        """A store that tells somebody about each transition."""

        def commit(self, lease, transition):
            told.append(transition.status.value)
            super().commit(lease, transition)

    told: list[str] = []
    with Watched() as store:
        graph = review_graph(checkpointer=store)
        driver.invoke(graph, {}, thread("t"))
        driver.invoke(graph, Command(resume="yes"), thread("t"))

    assert ("waiting" in told, told[-1]) == (True, "done")


@pytest.mark.requirement("S3-14", "S3-10")
def test_pause_is_resumed_from_the_file_by_another_store_and_another_graph(
    driver: Driver, open_file: Callable[[], Store]
):
    driver.invoke(review_graph(checkpointer=open_file()), {}, thread("t"))

    done = driver.invoke(review_graph(checkpointer=open_file()), Command(resume="yes"), thread("t"))

    assert done["done"]


@pytest.mark.seed("interrupt.rs::interrupt_requires_checkpointer_for_resume")
@pytest.mark.requirement("S3-08", "S3-10")
def test_question_needs_a_store_which_then_holds_the_state_to_resume_from(driver: Driver, store: Store):
    """In Synaptic a graph without a saver pauses all the same, and can never go on."""
    with pytest.raises(InterruptError, match="no store"):
        driver.invoke(review_graph(), {})

    driver.invoke(review_graph(checkpointer=store), {}, thread("t"))

    saved = review_graph(checkpointer=store).get_state(thread("t"))
    assert saved.values == {"proposal": "Delete all temporary files", "approved": False, "done": False}
    assert driver.invoke(review_graph(checkpointer=store), Command(resume="yes"), thread("t"))["done"]


# ── State: merge, look, edit ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("S3-07")
def test_state_says_how_updates_are_merged(driver: Driver, store: Store):
    graph = review_graph(checkpointer=store)
    driver.invoke(graph, {"proposal": "mine", "approved": True}, thread("t"))

    graph.update_state(thread("t"), NOTHING_GIVEN)

    values = graph.get_state(thread("t")).values
    assert values == {"proposal": "Delete all temporary files", "approved": True, "done": False}


@pytest.mark.requirement("S3-08")
def test_state_can_be_looked_at_during_a_pause(driver: Driver, store: Store):
    graph = review_graph(checkpointer=store)
    driver.invoke(graph, {}, thread("t"))

    seen = graph.get_state(thread("t"))

    assert seen.values["proposal"] == "Delete all temporary files"
    assert seen.next == ("execute",)
    assert [question.value["question"] for question in seen.interrupts] == ["Approve?"]


@pytest.mark.seed("compiled.rs::update_state_modifies_checkpoint")
@pytest.mark.requirement("S3-09")
def test_edit_during_a_pause_goes_through_the_reducers(driver: Driver, store: Store):
    graph = visit("ab", store, interrupt_before=["b"])
    driver.invoke(graph, {}, thread("t"))

    graph.update_state(thread("t"), {"counter": 10})

    assert graph.get_state(thread("t")).values["counter"] == 11
    assert driver.invoke(graph, None, thread("t"))["counter"] == 12


# ── Going on ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("S3-10", "S3-07", "S3-09")
def test_invoking_again_with_nothing_new_ends_the_round_trip(driver: Driver, store: Store):
    graph = review_graph(checkpointer=store, on_paused="resume")
    paused = driver.invoke(graph, NOTHING_GIVEN, thread("review-thread"))
    graph.update_state(thread("review-thread"), {"proposal": "", "approved": True, "done": False})

    done = driver.invoke(graph, NOTHING_GIVEN, thread("review-thread"))

    assert paused.is_interrupted
    assert done.is_complete
    assert done.value == {"proposal": "Delete all temporary files", "approved": True, "done": True}


@pytest.mark.requirement("S3-12")
def test_answer_to_a_returned_question_reaches_the_next_node(driver: Driver, store: Store):
    def act(state: Review, runtime: Runtime[Any]) -> Review:
        return {"proposal": f"answered {runtime.resume_value}"}

    builder = StateGraph(Review).add_sequence([propose, gate, act]).add_edge(START, "propose")
    graph = builder.compile(store)
    driver.invoke(graph, {}, thread("t"))

    done = driver.invoke(graph, Command(resume="yes"), thread("t"))

    assert done["proposal"] == "answered yes"


@pytest.mark.requirement("S3-12")
def test_answer_to_a_call_is_what_the_call_returns(driver: Driver, store: Store):
    def ask(state: Review) -> Review:
        return {"proposal": interrupt("What?")}

    graph = StateGraph(Review).add_node(ask).add_edge(START, "ask").compile(store)
    driver.invoke(graph, {}, thread("t"))

    assert driver.invoke(graph, Command(resume="this"), thread("t"))["proposal"] == "this"


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize(("approved", "route"), [(True, "execute"), (False, "reject")])
def test_person_who_rejects_during_the_pause_changes_the_way(driver: Driver, store: Store, approved: bool, route: str):
    def by_approval(state: Review) -> str:
        return "execute" if state.get("approved") else "reject"

    builder = StateGraph(Review).add_sequence([propose, gate]).add_node(execute).add_edge(START, "propose")
    builder.add_node("reject", lambda state: {"proposal": "rejected"})
    builder.add_conditional_edges("gate", by_approval, ["execute", "reject"])
    graph = builder.compile(store)
    driver.invoke(graph, {}, thread("t"))

    graph.update_state(thread("t"), {"approved": approved})
    planned = graph.get_state(thread("t"))
    done = driver.invoke(graph, Command(resume=approved), thread("t"))

    assert planned.next == (route,)
    assert len(planned.interrupts) == 1, "the question stays open through the edit"
    assert done.get("done", False) is approved
    assert (done["proposal"] == "rejected") is not approved


# ── Declared pauses ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("compiled.rs::interrupt_before_stops_execution")
@pytest.mark.seed("compiled.rs::resume_from_checkpoint")
@pytest.mark.requirement("S3-03")
def test_pause_before_a_node_stops_there_once_and_resumes_in_the_same_graph(driver: Driver, store: Store):
    graph = visit("ab", store, interrupt_before=["b"])

    with pytest.raises(GraphInterrupt, match="stopped at node 'b'"):
        driver.invoke(graph, {}, thread("raised"), raise_on_interrupt=True)
    paused = driver.invoke(graph, {}, thread("t"))
    done = driver.invoke(graph, None, thread("t"))

    assert (paused.is_interrupted, paused.next) == (True, ("b",))
    assert paused.value == {"counter": 1, "visited": ["a"]}
    assert done.is_complete
    assert done.value == {"counter": 2, "visited": ["a", "b"]}


@pytest.mark.seed("compiled.rs::interrupt_after_stops_execution")
@pytest.mark.requirement("S3-03")
def test_pause_after_a_node_keeps_its_work_and_does_not_repeat_it(driver: Driver, store: Store):
    graph = visit("ab", store, interrupt_after=["a"])

    paused = driver.invoke(graph, {}, thread("t"))
    done = driver.invoke(graph, None, thread("t"))

    assert (paused.is_interrupted, paused.next) == (True, ("b",))
    assert paused.value == {"counter": 1, "visited": ["a"]}
    assert done.value == {"counter": 2, "visited": ["a", "b"]}


@pytest.mark.requirement("S3-03")
def test_pause_after_a_node_holds_when_that_node_says_where_to_go(driver: Driver, store: Store):
    builder = StateGraph(Visits).add_node("a", lambda state: Command(update={"counter": 1}, goto="b"))
    builder.add_node("b", counting("b")).add_edge(START, "a")
    graph = builder.compile(store, interrupt_after=["a"])

    paused = driver.invoke(graph, {}, thread("t"))

    assert (paused.is_interrupted, paused.next) == (True, ("b",))


@pytest.mark.seed("compiled.rs::max_iterations_guard")
@pytest.mark.requirement("S3-06")
def test_run_that_never_ends_is_stopped_and_keeps_its_state(driver: Driver, store: Store):
    builder = StateGraph(Visits).add_node("a", counting("a")).add_edge(START, "a").add_edge("a", "a")
    graph = builder.compile(store)

    with pytest.raises(GraphRecursionError, match="3 steps"):
        driver.invoke(graph, {}, {**thread("t"), "recursion_limit": 3})
    counted = graph.get_state(thread("t")).values["counter"]
    with pytest.raises(GraphRecursionError, match="5 steps"):
        driver.invoke(graph, None, {**thread("t"), "recursion_limit": 5})

    assert counted == 3
    assert graph.get_state(thread("t")).values["counter"] == 8, "it goes on from where it was stopped"
