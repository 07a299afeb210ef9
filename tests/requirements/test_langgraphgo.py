"""Requirements L4-01 … L4-16: a pause saves itself, an error does not, and the next request finds what was left."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, GraphInterrupt, MemorySaver, StateGraph, Store, interrupt
from bide.errors import NotWaitingError, StoreError, UnknownThreadError
from tests.drivers import Driver


class Order(TypedDict, total=False):
    status: str
    amount: int
    answer: str
    shipped: bool


@dataclass
class OrderCard:
    status: str
    amount: int | None = None
    answer: str | None = None


class Text(TypedDict):
    text: Annotated[str, operator.add]


class Total(TypedDict):
    total: Annotated[int, operator.add]


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def receive(state: Order) -> Order:
    return {"status": "received"}


def payment(state: Order) -> Order:
    return {"status": "paid", "answer": interrupt("Pay 100?", update={"status": "pending_payment", "amount": 100})}


def ship(state: Order) -> Order:
    return {"shipped": True}


def order_graph(store: Store, **options: Any) -> CompiledGraph:
    builder = StateGraph(Order).add_sequence([receive, payment, ship]).add_edge(START, "receive")
    return builder.compile(store, **options)


def letters(store: Store | None, **options: Any) -> CompiledGraph:
    """Three nodes, each of which writes its letter."""
    builder = StateGraph(Text)
    builder.add_sequence([(name, lambda state, name=name: {"text": name}) for name in "ABC"])
    return builder.add_edge(START, "A").compile(store, **options)


def checkpoints(graph: CompiledGraph) -> list[dict[str, Any]]:
    return [seen.values for seen in graph.get_state_history(thread(), order="asc")]


# ── The pause is an error only for those who ask for one ───────────────────────────────────────────────────────────


@pytest.mark.seed("state_graph_interrupt_test.go::TestStateGraph_Interrupt")
@pytest.mark.requirement("L4-01")
def test_pause_as_an_exception_names_the_node_the_state_the_value_and_what_comes_next(driver: Driver, store: Store):
    graph = order_graph(store)

    with pytest.raises(GraphInterrupt, match="Pay 100") as caught:
        driver.invoke(graph, {"status": "new"}, thread(), raise_on_interrupt=True)

    assert caught.value.node == "payment"
    assert caught.value.value == "Pay 100?"
    assert caught.value.next == ("payment",)
    assert caught.value.state == {"status": "pending_payment", "amount": 100}
    assert caught.value.interrupts == graph.get_state(thread()).interrupts


@pytest.mark.requirement("L4-01", "L4-08")
def test_thread_whose_pause_was_raised_is_resumed_like_any_other(driver: Driver, store: Store):
    graph = order_graph(store)
    with pytest.raises(GraphInterrupt):
        driver.invoke(graph, {}, thread(), raise_on_interrupt=True)

    done = driver.invoke(graph, Command(resume="yes"), thread(), raise_on_interrupt=True)

    assert done.value == {"status": "paid", "amount": 100, "answer": "yes", "shipped": True}


@pytest.mark.seed("state_graph_interrupt_test.go::TestStateGraph_InterruptWithStateUpdate")
@pytest.mark.seed("state_graph_interrupt_test.go::TestStateGraph_InterruptWithValueTypeState")
@pytest.mark.requirement("L4-02")
@pytest.mark.parametrize("schema", [Order, OrderCard, {"status": str, "amount": int, "answer": str, "shipped": bool}])
def test_state_given_with_the_question_is_kept_in_the_pause_and_in_the_result(
    driver: Driver, store: Store, schema: Any
):
    builder = StateGraph(schema).add_node("payment", payment).add_edge(START, "payment")
    graph = builder.compile(store)

    paused = driver.invoke(graph, {"status": "new"}, thread())

    assert paused.value == {"status": "pending_payment", "amount": 100}
    assert graph.get_state(thread()).values == {"status": "pending_payment", "amount": 100}
    assert driver.invoke(graph, Command(resume="yes"), thread()).value == {
        "status": "paid",
        "amount": 100,
        "answer": "yes",
    }


@pytest.mark.requirement("L4-02")
def test_state_given_with_the_question_is_merged_once_however_often_the_node_runs(driver: Driver, store: Store):
    def ask_twice(state: Total) -> None:
        interrupt("first", update={"total": 10})
        interrupt("second", update={"total": 5})

    graph = StateGraph(Total).add_node(ask_twice).add_edge(START, "ask_twice").compile(store)

    totals = [driver.invoke(graph, {"total": 1}, thread())["total"]]
    totals += [driver.invoke(graph, Command(resume=answer), thread())["total"] for answer in "ab"]

    assert totals == [11, 16, 16]


# ── What is saved, and when ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("main_test.go::TestCheckpointSavedOnInterrupt")
@pytest.mark.requirement("L4-03", "L4-13")
def test_checkpoint_is_saved_at_a_pause_without_anybody_saving_it(driver: Driver, open_file: Callable[[], Store]):
    driver.invoke(order_graph(open_file()), {"status": "new"}, thread())

    saved = order_graph(open_file()).get_state(thread())

    assert saved.values == {"status": "pending_payment", "amount": 100}
    assert saved.next == ("payment",)
    assert [question.value for question in saved.interrupts] == ["Pay 100?"]


@pytest.mark.requirement("L4-03", "L4-04")
def test_pause_is_in_the_file_before_the_caller_hears_of_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    seen_by_another = []

    with Store.open(url) as store, Store.open(url) as other:
        for part in order_graph(store).stream({}, thread()):
            if "__interrupt__" in part:
                seen_by_another += [row.node for row in other.open_waits()]

    assert seen_by_another == ["payment"]


@pytest.mark.seed("store/*_test.go::database errors")
@pytest.mark.requirement("L4-04")
def test_pause_that_cannot_be_saved_is_an_error_and_no_pause(driver: Driver):
    class Full(MemorySaver):
        def commit(self, lease, transition):
            if transition.waits:
                raise StoreError("no space left")
            super().commit(lease, transition)

    with Full() as store:
        graph = order_graph(store)

        with pytest.raises(StoreError, match="no space left"):
            driver.invoke(graph, {"status": "new"}, thread())

        assert graph.get_state(thread()).interrupts == ()
        assert graph.get_state(thread()).values == {"status": "received"}


@pytest.mark.seed("main_test.go::TestCheckpointNotSavedOnRegularError")
@pytest.mark.requirement("L4-05", "L4-13")
def test_ordinary_error_saves_no_checkpoint_and_reaches_the_caller(driver: Driver, store: Store):
    def broken(state: Order) -> Order:
        raise KeyError("no such article")

    builder = StateGraph(Order).add_sequence([receive, broken]).add_edge(START, "receive")
    graph = builder.compile(store)

    with pytest.raises(KeyError, match="no such article"):
        driver.invoke(graph, {"status": "new"}, thread())

    assert checkpoints(graph) == [{"status": "new"}, {"status": "received"}]
    assert "no such article" in (graph.get_state(thread()).tasks[0].error or "")


@pytest.mark.requirement("L4-06")
def test_every_ordinary_step_saves_exactly_one_checkpoint(driver: Driver, store: Store):
    graph = letters(store)

    driver.invoke(graph, {"text": "Start"}, thread())

    assert [values["text"] for values in checkpoints(graph)] == ["Start", "StartA", "StartAB", "StartABC"]


@pytest.mark.requirement("L4-07")
def test_error_beside_a_question_is_raised_and_the_question_is_kept(driver: Driver, store: Store):
    is_mended = False
    ran: list[str] = []

    def ask(state: Order) -> Order:
        ran.append("ask")
        return {"answer": interrupt("Pay?")}

    def book(state: Order) -> Order:
        ran.append("book")
        if not is_mended:
            raise OSError("no connection")
        return {"status": "booked"}

    builder = StateGraph(Order).add_node(ask).add_node(book).add_edge(START, "ask").add_edge(START, "book")
    graph = builder.compile(store)

    with pytest.raises(OSError, match="no connection"):
        driver.invoke(graph, {}, {**thread(), "max_concurrency": 1})
    seen = graph.get_state(thread())
    is_mended = True
    done = driver.invoke(graph, Command(resume="yes"), thread())

    assert [question.value for question in seen.interrupts] == ["Pay?"]
    assert ["no connection" in (task.error or "") for task in seen.tasks] == [False, True]
    assert done.value == {"answer": "yes", "status": "booked"}
    assert sorted(ran) == ["ask", "ask", "book", "book"]


# ── Going on ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("main_test.go::TestResumeFromInterrupt")
@pytest.mark.requirement("L4-08", "L4-13")
def test_resume_goes_on_at_the_node_that_asked_and_completes(driver: Driver, store: Store):
    ran: list[str] = []

    def counted(node: Callable[[Order], Order]) -> Callable[[Order], Order]:
        def run(state: Order) -> Order:
            ran.append(node.__name__)
            return node(state)

        return run

    nodes = [(node.__name__, counted(node)) for node in (receive, payment, ship)]
    graph = StateGraph(Order).add_sequence(nodes).add_edge(START, "receive").compile(store)
    driver.invoke(graph, {}, thread())

    done = driver.invoke(graph, Command(resume="card"), thread())

    assert done.is_complete
    assert done["answer"] == "card"
    assert ran == ["receive", "payment", "payment", "ship"]


@pytest.mark.requirement("L4-08")
def test_answer_may_name_the_question_it_is_for(driver: Driver, store: Store):
    graph = order_graph(store)
    paused = driver.invoke(graph, {}, thread())

    done = driver.invoke(graph, Command(resume={paused.interrupts[0].id: None}), thread())

    assert done.value == {"status": "paid", "amount": 100, "answer": None, "shipped": True}


@pytest.mark.requirement("L4-08")
def test_each_question_gets_an_answer_of_its_own(driver: Driver, store: Store):
    def ask(state: Total) -> Total:
        return {"total": interrupt("first") + 10 * interrupt("second")}

    graph = StateGraph(Total).add_node(ask).add_edge(START, "ask").compile(store)
    driver.invoke(graph, {"total": 0}, thread())

    halfway = driver.invoke(graph, Command(resume=1), thread())
    done = driver.invoke(graph, Command(resume=2), thread())

    assert halfway.interrupt_value == "second"
    assert done["total"] == 21


@pytest.mark.requirement("L4-08")
def test_answer_to_a_finished_or_unknown_thread_is_refused_and_runs_nothing(driver: Driver, store: Store):
    graph = letters(store)
    driver.invoke(graph, {"text": "Start"}, thread())

    with pytest.raises(NotWaitingError, match="finished"):
        driver.invoke(graph, Command(resume="yes"), thread())
    with pytest.raises(UnknownThreadError, match="no thread"):
        driver.invoke(graph, Command(resume="yes"), thread("other"))

    assert graph.get_state(thread()).values == {"text": "StartABC"}
    assert graph.get_state(thread("other")).created_at is None


@pytest.mark.requirement("L4-09")
def test_stateless_request_can_tell_a_thread_that_waits_from_one_that_does_not(
    driver: Driver, open_file: Callable[[], Store]
):
    graph = order_graph(open_file())
    driver.invoke(graph, {}, thread("waiting"))
    driver.invoke(graph, {}, thread("finished"))
    driver.invoke(graph, Command(resume="yes"), thread("finished"))

    store = open_file()
    graph = order_graph(store)

    assert {row.thread_id for row in store.threads() if row.status == "waiting"} == {"waiting"}
    assert [(row.thread_id, row.node) for row in store.open_waits()] == [("waiting", "payment")]
    assert bool(graph.get_state(thread("waiting")).interrupts)
    assert not graph.get_state(thread("finished")).interrupts


@pytest.mark.requirement("L4-10")
def test_checkpoints_can_be_listed_oldest_first_with_their_state_and_place(driver: Driver, store: Store):
    graph = order_graph(store)
    driver.invoke(graph, {"status": "new"}, thread())

    listed = list(graph.get_state_history(thread(), order="asc"))

    assert [(seen.values["status"], seen.next) for seen in listed] == [
        ("new", ("receive",)),
        ("received", ("payment",)),
        ("pending_payment", ("payment",)),
    ]
    assert listed[-1].config == graph.get_state(thread()).config
    assert [task.name for task in listed[-1].tasks] == ["payment"]


@pytest.mark.requirement("L4-08", "L4-09")
def test_new_input_on_the_same_thread_begins_anew_over_the_state_that_is_there(driver: Driver, store: Store):
    graph = letters(store)
    driver.invoke(graph, {"text": "1"}, thread())

    again = driver.invoke(graph, {"text": "2"}, thread())

    assert again["text"] == "1ABC2ABC"


# ── Pauses declared per call ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("interrupt_test.go::TestGraphInterrupt/InterruptBefore")
@pytest.mark.seed("resume_test.go::TestGraphResume/ResumeBefore")
@pytest.mark.requirement("L4-08")
def test_pause_before_a_node_may_be_asked_for_in_one_call(driver: Driver, store: Store):
    graph = letters(store)

    paused = driver.invoke(graph, {"text": "Start"}, thread(), interrupt_before=["B"])
    done = driver.invoke(graph, None, thread())

    assert (paused["text"], paused.next) == ("StartA", ("B",))
    assert done["text"] == "StartABC"


@pytest.mark.seed("interrupt_test.go::TestGraphInterrupt/InterruptAfter")
@pytest.mark.seed("resume_test.go::TestGraphResume/ResumeAfter")
@pytest.mark.requirement("L4-08")
def test_state_edited_at_a_pause_after_a_node_is_what_the_next_node_sees(driver: Driver, store: Store):
    graph = letters(store)

    paused = driver.invoke(graph, {"text": "Start"}, thread(), interrupt_after=["B"])
    graph.update_state(thread(), {"text": "-Modified"})
    done = driver.invoke(graph, None, thread())

    assert (paused["text"], paused.next) == ("StartAB", ("C",))
    assert done["text"] == "StartAB-ModifiedC"


@pytest.mark.seed("update_state_test.go::TestUpdateState")
@pytest.mark.requirement("L4-08")
def test_edit_is_merged_by_the_reducer_like_any_update(driver: Driver, store: Store):
    builder = StateGraph(Total).add_node("one", lambda state: {"total": 1}).add_edge(START, "one")
    graph = builder.compile(store)
    done = driver.invoke(graph, {"total": 10}, thread())

    driver.call(graph, "update_state", thread(), {"total": 5})

    assert done["total"] == 11
    assert graph.get_state(thread()).values == {"total": 16}


# ── Saving by hand, and listening ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("checkpointing_test.go::TestCheckpointableRunnable_ManualCheckpoint")
@pytest.mark.requirement("L4-14")
def test_checkpoint_can_still_be_written_by_hand(driver: Driver, store: Store):
    graph = letters(store)
    driver.invoke(graph, {"text": "Start"}, thread(), interrupt_before=["B"])

    config = graph.update_state(thread(), None)

    assert checkpoints(graph)[-2:] == [{"text": "StartA"}, {"text": "StartA"}]
    assert graph.get_state(thread()).config == config
    assert driver.invoke(graph, None, thread())["text"] == "StartABC"


@pytest.mark.requirement("L4-15")
def test_anybody_may_listen_to_the_checkpoints_of_a_run(driver: Driver, store: Store):
    graph = order_graph(store)

    heard = driver.stream(graph, {"status": "new"}, thread(), stream_mode="checkpoints")

    assert [(part["values"]["status"], part["next"]) for part in heard] == [
        ("new", ["receive"]),
        ("received", ["payment"]),
        ("pending_payment", ["payment"]),
    ]
    assert [task["interrupts"][0]["value"] for task in heard[-1]["tasks"]] == ["Pay 100?"]
    assert heard[-1]["config"] == graph.get_state(thread()).config


@pytest.mark.requirement("L4-15")
def test_log_of_a_thread_tells_each_turn_of_a_run_to_whoever_follows(driver: Driver, store: Store):
    graph = order_graph(store)
    driver.invoke(graph, {}, thread())
    driver.invoke(graph, Command(resume="yes"), thread())

    told = store.events("t")
    missed = store.events("t", after=told[1].number)

    assert [event.kind for event in told] == ["run.started", "run.waiting", "run.resumed", "run.done"]
    assert missed == told[2:], "who comes back asks for what came since"


@pytest.mark.requirement("L4-16")
def test_graph_that_never_pauses_gives_the_same_with_a_store_and_without(driver: Driver, store: Store):
    assert (
        driver.invoke(letters(store), {"text": "Start"}, thread()).value
        == driver.invoke(letters(None), {"text": "Start"}).value
    )


@pytest.mark.requirement("L4-16")
def test_step_and_pause_cost_one_transaction_each(driver: Driver):
    class Counting(MemorySaver):
        commits = 0

        def commit(self, lease, transition):
            self.commits += 1
            super().commit(lease, transition)

    with Counting() as plain, Counting() as pausing:
        driver.invoke(letters(plain), {"text": "Start"}, thread())
        driver.invoke(letters(pausing), {"text": "Start"}, thread(), interrupt_before=["C"])

    assert plain.commits == 3, "one per step; the last one also ends the run"
    assert pausing.commits == 3, "two steps and one pause"
