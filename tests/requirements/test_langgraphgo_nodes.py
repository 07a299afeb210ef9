"""langgraphgo's tests of nodes: commands, branches, graphs inside graphs, retries and timeouts; and its examples."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    END,
    START,
    Command,
    CompiledGraph,
    MemorySaver,
    NodeTimeoutError,
    RetryPolicy,
    StateGraph,
    Store,
    interrupt,
    step,
)
from tests.drivers import Driver
from tests.requirements.graphs import answer, in_line, thread
from tests.robustness.clocks import SleepyClock
from tests.threads import let_tasks_end, one_node


class Count(TypedDict, total=False):
    count: Annotated[int, operator.add]


# ── Commands, branches, subgraphs ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("command_test.go::TestCommandGoto")
@pytest.mark.parametrize(("edge", "count"), [(False, 101), (True, 211)])
def test_goto_goes_to_its_target_and_an_edge_beside_it_holds(driver: Driver, edge: bool, count: int):
    """In langgraphgo a goto replaces the edge of its node; here, as in LangGraph, both are gone, and C comes twice."""
    builder = StateGraph(Count).add_node("A", lambda state: Command(update={"count": 1}, goto="C"))
    builder.add_node("B", lambda state: {"count": 10}).add_node("C", lambda state: {"count": 100})
    builder.add_edge(START, "A").add_edge("B", "C")
    if edge:
        builder.add_edge("A", "B")

    assert driver.invoke(builder.compile(), {"count": 0})["count"] == count


class Parts(TypedDict, total=False):
    a: int
    b: int
    c: int
    visited: Annotated[list[str], operator.add]


def forked(*, joins: bool) -> StateGraph:
    """A, then B and C in one step; and D, when both are done."""

    def node(name: str) -> Callable[[Parts], Parts]:
        return lambda state: {name.lower(): 1, "visited": [name]}  # type: ignore[misc]

    builder = StateGraph(Parts)
    for name in "ABC":
        builder.add_node(name, node(name))
    builder.add_edge(START, "A").add_edge("A", "B").add_edge("A", "C")
    if joins:
        builder.add_node("D", lambda state: {"visited": ["D"]}).add_edge("B", "D").add_edge("C", "D")
    return builder


@pytest.mark.seed("parallel_execution_test.go::TestParallelExecution_FanOut")
def test_both_branches_run_and_their_join_runs_once(driver: Driver, store: Store):
    graph = forked(joins=True).compile(store)

    for attempt in range(5):
        done = driver.invoke(graph, {}, thread(attempt))

        assert done["visited"] == ["A", "B", "C", "D"], "the same order at every run"


@pytest.mark.seed("parallel_execution_test.go::TestStateGraph_ParallelExecution")
def test_updates_of_parallel_branches_are_merged_into_one_checkpoint(driver: Driver, store: Store):
    graph = forked(joins=False).compile(store)

    done = driver.invoke(graph, {}, thread("t"))

    assert done.value == {"a": 1, "b": 1, "c": 1, "visited": ["A", "B", "C"]}
    steps = driver.call(graph, "get_state_history", thread("t"), order="asc")
    assert [seen.next for seen in steps] == [("A",), ("B", "C"), ()]


@pytest.mark.seed("parallel_execution_test.go::TestStateGraph_ParallelExecution")
def test_pause_between_and_inside_parallel_branches_is_resumed_and_loses_no_successor(driver: Driver, store: Store):
    """In langgraphgo such a step cannot be resumed, and of several questions all but the first are lost."""

    def ask(name: str) -> Callable[[Parts], Parts]:
        return lambda state: {"visited": [f"{name} {interrupt(name + '?')}"]}

    builder = StateGraph(Parts).add_node("A", lambda state: {"visited": ["A"]}).add_edge(START, "A")
    for name in "BC":
        builder.add_node(name, ask(name)).add_edge("A", name)
        builder.add_node(f"after {name}", lambda state, name=name: {"visited": [f"after {name}"]})
        builder.add_edge(name, f"after {name}")
    graph = builder.compile(store)

    before = driver.invoke(graph, {}, thread("t"), interrupt_after=["A"])
    of_b, of_c = driver.invoke(graph, None, thread("t")).interrupts
    partly = driver.invoke(graph, answer(of_c, "no"), thread("t"))
    done = driver.invoke(graph, answer(of_b, "yes"), thread("t"))

    assert before.next == ("B", "C")
    assert partly.interrupts == (of_b,)
    assert done["visited"] == ["A", "B yes", "C no", "after B", "after C"]


class Visited(TypedDict, total=False):
    parent_visited: bool
    child_visited: bool
    approved: str


@pytest.mark.seed("subgraph_test.go::TestSubgraph")
def test_graph_inside_a_graph_shares_its_state_and_may_ask(driver: Driver, store: Store):
    def child_a(state: Visited) -> Visited:
        return {"child_visited": state["parent_visited"]}

    def child_b(state: Visited) -> Visited:
        return {"approved": interrupt("May I?")}

    child = in_line(Visited, child_a, child_b).compile()
    builder = StateGraph(Visited).add_node("parent_a", lambda state: {"parent_visited": True})
    builder.add_node("child", child).add_edge(START, "parent_a").add_edge("parent_a", "child")
    graph = builder.compile(store)

    paused = driver.invoke(graph, {}, thread("t"))
    inside = driver.call(graph, "get_state", thread("t"), subgraphs=True).tasks[0].state
    done = driver.invoke(graph, Command(resume="yes"), thread("t"))

    assert (paused.interrupt_value, paused.next) == ("May I?", ("child",))
    assert (inside.values["child_visited"], inside.next) == (True, ("child_b",))
    assert done.value == {"parent_visited": True, "child_visited": True, "approved": "yes"}


# ── Retries and timeouts ───────────────────────────────────────────────────────────────────────────────────────────


class Trouble(Exception):
    """An error that may pass."""


class Tried:
    """A node that fails with these errors, one at each call, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, state: Any) -> dict[str, str]:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return {"result": "success"}


def tried(node: Tried, policy: RetryPolicy, store: Store | None = None) -> CompiledGraph:
    builder = StateGraph({"result": str}).add_node("node", node, retry_policy=policy).add_edge(START, "node")
    return builder.compile(store)


@pytest.fixture
def sleepy() -> Iterator[tuple[SleepyClock, Store]]:
    """A clock that jumps to the end of every sleep, and a store that goes by it."""
    clock = SleepyClock()
    with MemorySaver(clock=clock) as store:
        yield clock, store


@pytest.mark.seed("retry_test.go::TestRetryNode/SuccessOnFirstAttempt")
@pytest.mark.seed("retry_test.go::TestRetryNode/RetryOnTransientFailure")
@pytest.mark.seed("retry_test.go::TestExponentialBackoffRetry/SuccessAfterRetries")
@pytest.mark.parametrize(("failures", "naps"), [(0, []), (2, [2.0, 6.0])])
def test_node_is_tried_until_it_succeeds_and_rests_longer_each_time(
    driver: Driver, sleepy: tuple[SleepyClock, Store], failures: int, naps: list[float]
):
    clock, store = sleepy
    node = Tried(*(Trouble("transient") for _ in range(failures)))
    policy = RetryPolicy(max_attempts=4, initial_interval=2.0, backoff_factor=3.0, jitter=False)

    done = driver.invoke(tried(node, policy, store), {"result": ""}, thread("t"))

    assert done["result"] == "success"
    assert (node.calls, clock.naps) == (failures + 1, naps)


@pytest.mark.seed("retry_test.go::TestRetryNode/MaxAttemptsExceeded")
@pytest.mark.seed("retry_test.go::TestExponentialBackoffRetry/MaxAttemptsReached")
def test_last_error_is_raised_after_so_many_attempts_and_the_thread_can_go_on_later(
    driver: Driver, sleepy: tuple[SleepyClock, Store]
):
    clock, store = sleepy
    node = Tried(*(Trouble(f"number {number}") for number in (1, 2, 3)))
    graph = tried(node, RetryPolicy(max_attempts=3, initial_interval=1.0, jitter=False), store)

    with pytest.raises(Trouble, match="number 3"):
        driver.invoke(graph, {"result": ""}, thread("t"))
    calls = node.calls

    assert (calls, clock.naps) == (3, [1.0, 2.0])
    assert driver.invoke(graph, None, thread("t"))["result"] == "success"


@pytest.mark.seed("retry_test.go::TestRetryNode/NonRetryableError")
def test_error_that_the_policy_does_not_name_is_raised_at_once(driver: Driver, store: Store):
    node = Tried(Trouble("critical"))
    policy = RetryPolicy(retry_on=lambda error: str(error) == "transient")

    with pytest.raises(Trouble, match="critical"):
        driver.invoke(tried(node, policy, store), {"result": ""}, thread("t"))

    assert node.calls == 1


@pytest.mark.seed("retry_test.go::TestTimeoutNode/SuccessWithinTimeout")
def test_node_that_is_quick_enough_is_not_disturbed(driver: Driver, store: Store):
    builder = StateGraph({"result": str}).add_node("node", driver.node(Tried()), timeout=60).add_edge(START, "node")

    assert driver.invoke(builder.compile(store), {"result": ""}, thread("t"))["result"] == "success"


@pytest.mark.seed("retry_test.go::TestTimeoutNode/TimeoutExceeded")
def test_node_that_takes_too_long_is_given_up_and_its_late_result_is_not_taken(driver: Driver, store: Store):
    release = Event()

    def hang(state: Any) -> dict[str, str]:
        assert release.wait(30)
        return {"result": "too late"}

    async def hang_on_the_loop(state: Any) -> dict[str, str]:
        await asyncio.Event().wait()
        return {"result": "too late"}

    node = hang if driver.name == "sync" else hang_on_the_loop
    builder = StateGraph({"result": str}).add_node("node", node, timeout=0.02).add_edge(START, "node")
    graph = builder.compile(store)

    with pytest.raises(NodeTimeoutError, match="node"):
        driver.invoke(graph, {"result": "none"}, thread("t"))
    release.set()
    let_tasks_end()

    assert graph.get_state(thread("t")).values == {"result": "none"}


@pytest.mark.seed("retry_test.go::TestTimeoutNode/RespectContextCancellation")
@pytest.mark.seed("retry_test.go::TestExponentialBackoffRetry/ContextCancellation")
async def test_caller_who_gives_up_cancels_the_node_and_it_is_not_tried_again(store: Store):
    attempts, began = [], asyncio.Event()

    async def hang(state: Any) -> None:
        attempts.append("begun")
        began.set()
        await asyncio.Event().wait()

    builder = StateGraph({"result": str}).add_edge(START, "node")
    builder.add_node("node", hang, timeout=60, retry_policy=RetryPolicy(max_attempts=10))
    graph = builder.compile(store)
    call = asyncio.create_task(graph.ainvoke({"result": ""}, thread("t")))
    await began.wait()

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert attempts == ["begun"]
    assert graph.get_state(thread("t")).next == ("node",)


# ── Examples ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Order(TypedDict, total=False):
    item: str
    status: str
    price: int
    log: Annotated[list[str], operator.add]


class Shop:
    """receive → inventory → price → payment → warehouse; payment asks, and everything that is done is noted."""

    def __init__(self) -> None:
        self.catalogue = {"tea": 40}
        self.charged: list[int] = []

    def receive(self, state: Order) -> Order:
        return {"status": "received", "log": ["received"]}

    def inventory(self, state: Order) -> Command[str]:
        if state["item"] not in self.catalogue:
            return Command(update={"status": "not in our catalogue"}, goto=END)
        return Command(update={"log": ["in stock"]}, goto="price")

    def price(self, state: Order) -> Order:
        return {"price": self.catalogue[state["item"]], "log": ["priced"]}

    def payment(self, state: Order) -> Command[str]:
        question = f"Pay {state['price']}?"
        said = interrupt(question, update={"status": "pending_payment", "log": ["payment asked for"]})
        if said != "pay":
            return Command(update={"status": "cancelled"}, goto=END)
        step(self.charge, state["price"])
        return Command(update={"status": "paid", "log": ["paid"]}, goto="warehouse")

    def charge(self, amount: int) -> None:
        self.charged.append(amount)

    def warehouse(self, state: Order) -> Order:
        return {"status": "shipped", "log": ["shipped"]}

    def graph(self, store: Store) -> CompiledGraph:
        builder = StateGraph(Order).add_edge(START, "receive").add_edge("receive", "inventory")
        for node in (self.receive, self.inventory, self.price, self.payment, self.warehouse):
            builder.add_node(node.__name__, node)
        return builder.add_edge("price", "payment").compile(store)


@pytest.mark.seed("examples::payment_interrupt")
@pytest.mark.requirement("L4-12", "L4-02")
@pytest.mark.parametrize(
    ("said", "status", "charged", "last"),
    [("pay", "shipped", [40], "shipped"), ("cancel", "cancelled", [], "payment asked for")],
)
def test_order_waits_for_its_payment_across_requests_and_is_charged_once_or_never(
    driver: Driver, open_file: Callable[[], Store], said: str, status: str, charged: list[int], last: str
):
    shop = Shop()
    paused = driver.invoke(shop.graph(open_file()), {"item": "tea"}, thread("order"))
    kept = shop.graph(open_file()).get_state(thread("order"))

    done = driver.invoke(shop.graph(open_file()), Command(resume=said), thread("order"))

    assert (paused.interrupt_value, paused["status"]) == ("Pay 40?", "pending_payment")
    assert kept.values == paused.value
    assert kept.next == ("payment",)
    assert (done["status"], done["log"][-1], shop.charged) == (status, last, charged)
    assert done["log"].count("payment asked for") == 1


@pytest.mark.seed("examples::payment_interrupt")
@pytest.mark.requirement("L4-12")
def test_order_of_something_that_is_not_sold_ends_before_anybody_is_asked(driver: Driver, store: Store):
    done = driver.invoke(Shop().graph(store), {"item": "the moon"}, thread("order"))

    assert (done.is_complete, done["status"], done["log"]) == (True, "not in our catalogue", ["received"])
    assert store.open_waits() == []


@pytest.mark.seed("examples::time_travel")
@pytest.mark.requirement("L4-10")
def test_question_of_the_past_is_answered_differently_on_a_branch_of_its_own(driver: Driver, store: Store):
    graph = one_node(Order, lambda state: {"status": interrupt("Which?")}, checkpointer=store)
    paused = driver.invoke(graph, {"item": "tea"}, thread("t"))
    first = driver.invoke(graph, Command(resume="black"), thread("t"))
    at_the_question = thread("t", checkpoint_id=paused.checkpoint_id)

    branch = driver.call(graph, "fork", at_the_question, answers={paused.interrupts[0].id: "green"})
    second = driver.invoke(graph, None, branch)

    assert (first["status"], second["status"]) == ("black", "green")
    past = driver.call(graph, "get_state", thread("t", checkpoint_id=first.checkpoint_id))
    assert past.values["status"] == "black"
