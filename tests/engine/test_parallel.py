"""Several tasks in one step: the result depends on names, never on who was faster; and what has finished stays so."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from contextvars import ContextVar
from itertools import permutations
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, Send, StateGraph, Store, interrupt
from bide.errors import AmbiguousResumeError
from tests.threads import let_tasks_end, one_node, side_by_side, thread

PATIENCE = 20
"""Seconds after which a test that waits for another thread gives up."""

ORDERS = ["".join(order) for order in permutations("abc")]


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Relay:
    """Lets nodes finish in a given order: each waits for the one before it."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.finished = {name: threading.Event() for name in order}
        self.afinished = {name: asyncio.Event() for name in order}

    def node(self, name: str) -> Callable[[Log], Log]:
        def run(state: Log) -> Log:
            place = self.order.index(name)
            if place:
                assert self.finished[self.order[place - 1]].wait(PATIENCE)
            self.finished[name].set()
            return {"log": [name]}

        return run

    def anode(self, name: str) -> Callable[[Log], Any]:
        async def run(state: Log) -> Log:
            place = self.order.index(name)
            if place:
                await asyncio.wait_for(self.afinished[self.order[place - 1]].wait(), PATIENCE)
            self.afinished[name].set()
            return {"log": [name]}

        return run


class Crowd:
    """Counts how many nodes run at once, and holds each until the crowd is complete."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.abarrier = asyncio.Barrier(size)
        self.lock = threading.Lock()
        self.present = self.peak = 0

    def node(self, state: Log) -> Log:
        self._enter()
        self.barrier.wait(PATIENCE)
        self._leave()
        return {"log": ["x"]}

    async def anode(self, state: Log) -> Log:
        self._enter()
        await asyncio.wait_for(self.abarrier.wait(), PATIENCE)
        self._leave()
        return {"log": ["x"]}

    def _enter(self) -> None:
        with self.lock:
            self.present += 1
            self.peak = max(self.peak, self.present)

    def _leave(self) -> None:
        with self.lock:
            self.present -= 1


class Counter:
    """A node that counts its runs, and does what it is told after that."""

    def __init__(self, name: str, then: Callable[[], Any] = lambda: None) -> None:
        self.name = name
        self.then = then
        self.runs = 0

    def __call__(self, state: Log) -> Log:
        self.runs += 1
        said = self.then()
        return {"log": [said or self.name]}


def failing() -> None:
    raise OSError("no connection")


def asking() -> Any:
    return interrupt("go on?")


# ── Order ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("order", ORDERS)
def test_writes_are_applied_in_task_order_whichever_thread_finishes_first(order: str):
    relay = Relay(order)
    graph = side_by_side(Log, {name: relay.node(name) for name in "cab"})

    assert graph.invoke({"log": []})["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("order", ORDERS)
async def test_writes_are_applied_in_task_order_whichever_coroutine_finishes_first(order: str):
    relay = Relay(order)
    graph = side_by_side(Log, {name: relay.anode(name) for name in "cab"})

    assert (await graph.ainvoke({"log": []}))["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("order", ORDERS)
def test_stream_of_updates_tells_who_finished_first(order: str):
    relay = Relay(order)
    graph = side_by_side(Log, {name: relay.node(name) for name in "abc"})

    told = [name for part in graph.stream({"log": []}) for name in part]

    assert sorted(told) == ["a", "b", "c"]
    assert told[0] == order[0]


def test_nodes_come_before_sends_and_sends_in_the_order_they_were_sent():
    def fan_out(state: Log) -> list[Any]:
        return [Send("z", {"log": ["2"]}), "y", Send("a", {"log": ["1"]}), "b"]

    builder = StateGraph(Log).add_conditional_edges(START, fan_out)
    for name in "abyz":
        builder.add_node(name, lambda state, name=name: {"log": [name + "".join(state["log"])]})

    assert builder.compile().invoke({"log": []})["log"] == ["b", "y", "z2", "a1"]


def test_tasks_whose_names_look_alike_are_told_apart(store: Store):
    builder = StateGraph(Log).add_node("a", lambda state: {"log": ["sent"]})
    builder.add_node("a.0", lambda state: {"log": ["pulled"]})
    builder.add_conditional_edges(START, lambda state: ["a.0", Send("a", {})])

    assert builder.compile(store).invoke({"log": []}, thread())["log"] == ["pulled", "sent"]


# ── How many at once, and where ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_more_sync_tasks_run_at_once_than_allowed_and_no_fewer(limit: int):
    crowd = Crowd(limit)
    graph = side_by_side(Log, {f"n{index}": crowd.node for index in range(6)})

    done = graph.invoke({"log": []}, {"max_concurrency": limit})

    assert crowd.peak == limit
    assert len(done["log"]) == 6


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("kind", ["node", "anode"])
async def test_no_more_tasks_run_at_once_with_asyncio_than_allowed_and_no_fewer(limit: int, kind: str):
    crowd = Crowd(limit)
    graph = side_by_side(Log, {f"n{index}": getattr(crowd, kind) for index in range(6)})

    done = await graph.ainvoke({"log": []}, {"max_concurrency": limit})

    assert crowd.peak == limit
    assert len(done["log"]) == 6


def test_hundred_sends_run_at_once_and_keep_their_order(store: Store):
    crowd = Crowd(100)

    def work(state: dict[str, int]) -> Log:
        crowd.node({})
        return {"log": [str(state["item"])]}

    builder = StateGraph(Log).add_node(work)
    builder.add_conditional_edges(START, lambda state: [Send("work", {"item": n}) for n in range(100)])

    done = builder.compile(store).invoke({"log": []}, thread())

    assert done["log"] == [str(n) for n in range(100)]
    assert crowd.peak == 100


def test_lone_sync_task_runs_in_the_callers_thread():
    seen = []

    one_node(Log, lambda state: seen.append(threading.current_thread())).invoke({"log": []})

    assert seen == [threading.current_thread()]


def test_several_sync_tasks_leave_the_callers_thread_alone():
    seen = []
    nodes = {name: lambda state: seen.append(threading.current_thread()) for name in "ab"}

    side_by_side(Log, nodes).invoke({"log": []})

    assert threading.current_thread() not in seen
    assert len(seen) == 2


async def test_sync_task_does_not_block_the_event_loop():
    loop_runs = threading.Event()

    def wait_for_the_loop(state: Log) -> Log:
        return {"log": [str(loop_runs.wait(PATIENCE))]}

    asyncio.get_running_loop().call_soon(loop_runs.set)

    assert (await one_node(Log, wait_for_the_loop).ainvoke({"log": []}))["log"] == ["True"]


@pytest.mark.parametrize("names", ["a", "ab"])
async def test_context_of_the_caller_reaches_the_nodes(names: str):
    request: ContextVar[str] = ContextVar("request", default="none")

    def node(state: Log) -> Log:
        return {"log": [request.get()]}

    async def anode(state: Log) -> Log:
        return {"log": [request.get()]}

    request.set("r1")

    assert side_by_side(Log, dict.fromkeys(names, node)).invoke({"log": []})["log"] == ["r1"] * len(names)
    for kind in (node, anode):
        done = await side_by_side(Log, dict.fromkeys(names, kind)).ainvoke({"log": []})
        assert done["log"] == ["r1"] * len(names)


# ── What has finished stays finished ───────────────────────────────────────────────────────────────────────────────


def test_finished_sibling_is_not_run_again_after_a_failure(store: Store):
    good_is_there = threading.Event()

    def fail_later() -> None:
        assert good_is_there.wait(PATIENCE)
        failing()

    good, bad = Counter("good", good_is_there.set), Counter("bad", fail_later)
    graph = side_by_side(Log, {"good": good, "bad": bad}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread())

    bad.then = lambda: None
    done = graph.invoke(None, thread())

    assert done["log"] == ["bad", "good"]
    assert (good.runs, bad.runs) == (1, 2)


def test_finished_sibling_is_not_run_again_after_a_pause(store: Store):
    done_first, asks = Counter("a"), Counter("b", asking)
    graph = side_by_side(Log, {"a": done_first, "b": asks}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    done = graph.invoke(Command(resume="yes"), thread())

    assert done["log"] == ["a", "yes"]
    assert (done_first.runs, asks.runs) == (1, 2)


def test_sibling_that_still_runs_when_another_fails_is_heard_to_the_end(store: Store):
    has_begun, has_failed = threading.Event(), threading.Event()

    def bad(state: Log) -> None:
        assert has_begun.wait(PATIENCE)
        has_failed.set()
        failing()

    def slow(state: Log) -> Log:
        has_begun.set()
        assert has_failed.wait(PATIENCE)
        return {"log": ["slow"]}

    graph = side_by_side(Log, {"bad": bad, "slow": slow}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread())

    assert graph.get_state(thread()).values == {"log": ["slow"]}
    assert graph.get_state(thread()).next == ("bad",)


def test_task_that_was_not_begun_when_another_failed_is_left_for_later(store: Store):
    bad, later = Counter("bad", failing), Counter("later")
    graph = side_by_side(Log, {"bad": bad, "later": later}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread(max_concurrency=1))
    runs_at_failure = later.runs

    bad.then = lambda: None
    done = graph.invoke(None, thread())

    assert runs_at_failure == 0
    assert (done["log"], later.runs) == (["bad", "later"], 1)


async def test_async_task_that_was_not_begun_when_another_failed_is_left_for_later(store: Store):
    began = []

    async def bad(state: Log) -> None:
        failing()

    async def later(state: Log) -> None:
        began.append("later")

    graph = side_by_side(Log, {"bad": bad, "later": later}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        await graph.ainvoke({"log": []}, thread(max_concurrency=1))

    assert began == []
    assert graph.get_state(thread()).next == ("bad", "later")


async def test_node_that_raises_stop_iteration_has_failed_like_any_other(store: Store):
    def node(state: Log) -> Log:
        return {"log": [next(iter([]))]}

    graph = one_node(Log, node, checkpointer=store)
    with pytest.raises(RuntimeError, match="StopIteration"):
        graph.invoke({"log": []}, thread("sync"))
    with pytest.raises(RuntimeError, match="StopIteration"):
        await graph.ainvoke({"log": []}, thread("async"))

    assert [graph.get_state(thread(name)).next for name in ("sync", "async")] == [("node",), ("node",)]


def test_two_failures_are_both_recorded_and_the_first_in_task_order_is_raised(store: Store):
    both = threading.Barrier(2)

    def fail_with(error: Exception) -> Callable[[Log], None]:
        def fail(state: Log) -> None:
            both.wait(PATIENCE)
            raise error

        return fail

    nodes = {"b": fail_with(OSError("b is broken")), "a": fail_with(KeyError("a is broken"))}
    graph = side_by_side(Log, nodes, checkpointer=store)

    with pytest.raises(KeyError, match="a is broken") as caught:
        graph.invoke({"log": []}, thread())

    assert [task.error for task in graph.get_state(thread()).tasks] == [
        "KeyError: 'a is broken'",
        "OSError: b is broken",
    ]
    assert "'a'" in caught.value.__notes__[0]


# ── Questions beside errors, and beside each other ─────────────────────────────────────────────────────────────────


def test_error_beside_a_question_is_raised_and_a_retry_leaves_the_question_open(store: Store):
    asks, bad = Counter("asks", asking), Counter("bad", failing)
    graph = side_by_side(Log, {"asks": asks, "bad": bad}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread(max_concurrency=1))

    bad.then = lambda: None
    retried = graph.invoke(None, thread())
    done = graph.invoke(Command(resume="yes"), thread())

    assert [question.value for question in retried.interrupts] == ["go on?"]
    assert done["log"] == ["yes", "bad"]
    assert (asks.runs, bad.runs) == (2, 2)


def test_answer_is_kept_when_the_sibling_fails_again(store: Store):
    asks, bad = Counter("asks", asking), Counter("bad", failing)
    graph = side_by_side(Log, {"asks": asks, "bad": bad}, checkpointer=store)
    for given in ({"log": []}, Command(resume="yes")):
        with pytest.raises(OSError, match="no connection"):
            graph.invoke(given, thread(max_concurrency=1))

    bad.then = lambda: None
    done = graph.invoke(None, thread())

    assert done["log"] == ["yes", "bad"]
    assert asks.runs == 2, "once to ask, once with the answer"


def test_all_questions_of_a_step_are_reported_in_task_order(store: Store):
    graph = side_by_side(Log, {name: lambda s, n=name: {"log": [interrupt(n)]} for name in "cab"}, checkpointer=store)

    paused = graph.invoke({"log": []}, thread())

    assert [question.value for question in paused.interrupts] == ["a", "b", "c"]
    assert [question.value for question in graph.get_state(thread()).interrupts] == ["a", "b", "c"]
    with pytest.raises(AmbiguousResumeError, match="3 questions"):
        graph.invoke(Command(resume="x"), thread())


def test_question_in_each_of_several_sends_has_its_own_answer(store: Store):
    def ask(state: dict[str, int]) -> Log:
        return {"log": [f"{state['item']}:{interrupt(state['item'])}"]}

    builder = StateGraph(Log).add_node(ask)
    builder.add_conditional_edges(START, lambda state: [Send("ask", {"item": n}) for n in range(12)])
    graph = builder.compile(store)
    paused = graph.invoke({"log": []}, thread())

    answers = {question.id: f"answer {question.value}" for question in paused.interrupts}
    done = graph.invoke(Command(resume=answers), thread())

    assert [question.value for question in paused.interrupts] == list(range(12))
    assert done["log"] == [f"{n}:answer {n}" for n in range(12)]


def test_signal_from_outside_reaches_the_caller_and_frees_the_thread(store: Store):
    def stop() -> None:
        raise KeyboardInterrupt

    stopped = Counter("stopped", stop)
    graph = side_by_side(Log, {"a": stopped, "b": Counter("b")}, checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"log": []}, thread())

    stopped.then = lambda: None
    let_tasks_end()

    assert graph.invoke(None, thread())["log"] == ["stopped", "b"]
