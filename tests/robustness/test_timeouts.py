"""`timeout=`: how long an attempt of a node may take, and what becomes of one that took longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Lock
from typing import Any

import pytest

import bide.engine.deadline
from bide import RetryPolicy, Send, StateGraph, TimeoutPolicy, get_runtime, get_stream_writer, interrupt, step
from bide.errors import GraphError, NodeTimeoutError
from bide.types import START
from tests.robustness.states import Flaky, State, beside, lone
from tests.threads import let_tasks_end, thread

SOON = 0.02
"""Seconds after which a node that waits for something is given up."""
AGAIN = RetryPolicy(initial_interval=0.0, jitter=False)


class Hang:
    """What a node waits for that takes too long: in a thread an event, on the loop something that never comes.

    `release()` lets the threads go on, and returns when they have ended.
    """

    def __init__(self) -> None:
        self.event = Event()

    def release(self) -> None:
        self.event.set()
        let_tasks_end()

    def node(self, driver: Any, after: Callable[[], Any], *, before: Callable[[], Any] = lambda: None) -> Any:
        """Return a node that hangs between these two."""

        def sync(state: State) -> Any:
            before()
            assert self.event.wait(30)
            return after()

        async def on_loop(state: State) -> Any:
            before()
            await asyncio.Event().wait()
            return after()

        return sync if driver.name == "sync" else on_loop


@pytest.fixture
def hang() -> Any:
    hang = Hang()
    yield hang
    hang.release()


class Watch:
    """The clock of deadlines, which stands still until it is put forward: no load can make a node late."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lock = Lock()
        self.told: list[Callable[[], None]] = []

    def __call__(self) -> float:
        with self.lock:
            told, self.told = self.told, []
            now = self.now
        for tell in told:
            tell()
        return now

    def put_forward(self, seconds: float, *told: Callable[[], None]) -> None:
        """Let time pass, and tell when somebody has looked."""
        with self.lock:
            self.now += seconds
            self.told.extend(told)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    monkeypatch.setattr(bide.engine.deadline, "monotonic", watch)
    return watch


@pytest.mark.parametrize(
    "timeout",
    [
        SOON,
        timedelta(seconds=SOON),
        TimeoutPolicy(run_timeout=SOON),
        TimeoutPolicy(run_timeout=timedelta(seconds=SOON)),
    ],
    ids=["seconds", "timedelta", "policy", "policy with timedelta"],
)
def test_node_that_takes_too_long_is_given_up(driver, store, hang, timeout):
    graph = lone(hang.node(driver, lambda: {"value": "late"}), {"checkpointer": store}, timeout=timeout)

    with pytest.raises(NodeTimeoutError, match="'node' took longer than") as raised:
        driver.invoke(graph, {"name": "x"}, thread())

    assert (raised.value.node, raised.value.kind) == ("node", "run")
    state = driver.call(graph, "get_state", thread())
    assert state.next == ("node",)
    assert state.values == {"name": "x", "log": []}


def test_plain_node_of_an_async_run_is_given_up_too(store, hang):
    def node(state):
        assert hang.event.wait(30)

    graph = lone(node, {"checkpointer": store}, timeout=SOON)

    with pytest.raises(NodeTimeoutError):
        asyncio.run(graph.ainvoke({"name": "x"}, thread()))


def test_node_that_is_quick_enough_is_not_disturbed(driver, store):
    graph = lone(driver.node(lambda state: {"value": "quick"}), {"checkpointer": store}, timeout=60)

    assert driver.invoke(graph, {"name": "x"}, thread())["value"] == "quick"


@pytest.mark.parametrize("wrong", [0, -1, True, "5", timedelta(0), float("nan")], ids=repr)
def test_timeout_that_makes_no_sense_is_refused_where_it_is_written(wrong):
    with pytest.raises(GraphError, match="positive number of seconds"):
        lone(lambda state: None, timeout=wrong)


def test_misspelt_refresh_on_is_refused_where_it_is_written():
    with pytest.raises(GraphError, match="'auto' or 'heartbeat'"):
        lone(lambda state: None, timeout=TimeoutPolicy(idle_timeout=1, refresh_on="heartbeats"))


# ── Trying again ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_timeout_is_tried_again_as_often_as_the_policy_says(driver, store, hang, watch):
    seen = []

    def begin():
        seen.append(get_runtime().attempt)
        watch.put_forward(SOON)

    node = hang.node(driver, lambda: None, before=begin)
    graph = lone(node, {"checkpointer": store}, timeout=SOON, retry_policy=AGAIN)

    with pytest.raises(NodeTimeoutError) as raised:
        driver.invoke(graph, {"name": "x"}, thread())

    assert seen == [1, 2, 3]
    assert "It was attempt 3 of 3." in raised.value.__notes__


def test_attempt_after_a_timeout_may_succeed_while_the_first_still_hangs(driver, store, hang, watch):
    slow = hang.node(driver, lambda: {"value": "slow"}, before=lambda: watch.put_forward(SOON))
    calls = []

    def sync(state):
        calls.append("call")
        return slow(state) if len(calls) == 1 else {"value": "quick"}

    async def on_loop(state):
        calls.append("call")
        return await slow(state) if len(calls) == 1 else {"value": "quick"}

    node = sync if driver.name == "sync" else on_loop
    graph = lone(node, {"checkpointer": store}, timeout=SOON, retry_policy=AGAIN)

    result = driver.invoke(graph, {"name": "x"}, thread())
    hang.release()

    assert result["value"] == "quick"
    assert driver.call(graph, "get_state", thread()).values["value"] == "quick"


# ── What a node that was given up does afterwards ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(lambda: step(print, "too late"), id="step"),
        pytest.param(lambda: interrupt("too late?"), id="interrupt"),
        pytest.param(lambda: get_stream_writer()("too late"), id="get_stream_writer"),
    ],
)
def test_node_that_was_given_up_may_do_no_more(store, hang, capsys, late):
    refused = []

    def node(state):
        assert hang.event.wait(30)
        try:
            late()
        except NodeTimeoutError as error:
            refused.append(error)
            raise

    graph = lone(node, {"checkpointer": store}, timeout=SOON)
    with pytest.raises(NodeTimeoutError):
        graph.invoke({"name": "x"}, thread())
    before = list(store.events("t")), graph.get_state(thread())

    hang.release()

    assert len(refused) == 1
    assert "after its time was over" in str(refused[0])
    assert (list(store.events("t")), graph.get_state(thread())) == before
    assert capsys.readouterr().out == ""


def test_writer_that_a_node_took_before_its_time_was_over_is_silent_after_it(store, watch):
    given_up, written = Event(), Event()
    problems = []

    def slow(state):
        writer = get_stream_writer()
        writer("in time")
        watch.put_forward(SOON)
        assert given_up.wait(30)
        try:
            writer("too late")
        except NodeTimeoutError as error:
            problems.append(error)
        finally:
            written.set()

    def rescue(state, error):
        given_up.set()
        assert written.wait(30)
        return {"value": "rescued"}

    graph = lone(slow, {"checkpointer": store}, timeout=SOON, error_handler=rescue)

    told = list(graph.stream({"name": "x"}, thread(), stream_mode="custom"))

    assert told == ["in time"]
    assert len(problems) == 1


def test_heartbeat_of_an_attempt_that_was_given_up_does_not_keep_the_next_one_alive(store):
    second, stop = Event(), Event()

    def node(state):
        runtime = get_runtime()
        if runtime.attempt == 2:
            second.set()
            assert stop.wait(30), "it should have been given up long ago"
        assert second.wait(30)
        while not stop.wait(SOON / 4):
            runtime.heartbeat()

    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2)
    graph = lone(node, {"checkpointer": store}, timeout=TimeoutPolicy(idle_timeout=SOON * 4), retry_policy=policy)

    try:
        with pytest.raises(NodeTimeoutError):
            graph.invoke({"name": "x"}, thread())
    finally:
        stop.set()
        let_tasks_end()


def test_result_of_a_node_that_was_given_up_is_not_taken(store, hang):
    def node(state):
        assert hang.event.wait(30)
        return {"value": "late"}

    graph = lone(node, {"checkpointer": store}, timeout=SOON)
    with pytest.raises(NodeTimeoutError):
        graph.invoke({"name": "x"}, thread())

    hang.release()

    assert "value" not in graph.get_state(thread()).values
    assert graph.get_state(thread()).next == ("node",)


def test_node_that_was_given_up_does_not_hold_its_thread(driver, store, hang):
    flaky = Flaky()
    slow = hang.node(driver, lambda: None)
    graph = lone(slow, {"checkpointer": store}, timeout=SOON)
    with pytest.raises(NodeTimeoutError):
        driver.invoke(graph, {"name": "x"}, thread())

    mended = lone(driver.node(lambda state: {"value": flaky()}), {"checkpointer": store})

    assert driver.invoke(mended, None, thread())["value"] == "done"


def test_node_that_was_given_up_takes_no_place_of_max_concurrency(driver, store, hang):
    slow = hang.node(driver, lambda: None)
    graph = beside(
        [
            ("a", slow, {"timeout": SOON, "error_handler": lambda state: {"log": ["a gave up"]}}),
            ("b", driver.node(lambda state: {"log": ["b"]}), {}),
        ],
        checkpointer=store,
    )

    result = driver.invoke(graph, {"name": "x"}, thread(max_concurrency=1))

    assert result["log"] == ["a gave up", "b"]


def test_reader_who_leaves_frees_the_thread_though_a_node_that_was_given_up_still_hangs(store, hang):
    def slow(state):
        assert hang.event.wait(30)

    def talk(state):
        get_stream_writer()("here")

    builder = StateGraph(State)
    builder.add_node("slow", slow, timeout=SOON, error_handler=lambda state: {"log": ["gave up"]})
    builder.add_node("talk", talk).add_edge(START, "slow").add_edge("slow", "talk")
    graph = builder.compile(checkpointer=store)
    stream = graph.stream({"name": "x"}, thread(), stream_mode="custom")
    assert next(stream) == "here"

    stream.close()

    assert store.threads()[0].status == "cancelled"
    assert graph.invoke(None, thread())["log"] == ["gave up"]


# ── Idle ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Pulses:
    """A node that gives signs of life for longer than its idle timeout, and never sooner than it must."""

    def __init__(self, driver: Any, sign: Callable[[], Any], watch: Watch) -> None:
        self.sign, self.watch, self.is_async = sign, watch, driver.name == "async"

    def node(self) -> Any:
        def sync(state: State) -> Any:
            for _ in range(4):
                self.sign()
                looked = Event()
                self.watch.put_forward(SOON * 0.75, looked.set)
                assert looked.wait(30)
            return {"value": "alive"}

        async def on_loop(state: State) -> Any:
            for _ in range(4):
                self.sign()
                looked = asyncio.Event()
                self.watch.put_forward(SOON * 0.75, looked.set)
                await looked.wait()
            return {"value": "alive"}

        return on_loop if self.is_async else sync


SIGNS = [
    pytest.param(lambda: get_runtime().heartbeat(), id="heartbeat"),
    pytest.param(lambda: get_stream_writer()("still here"), id="writer"),
    pytest.param(lambda: step(int), id="step"),
]


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_of_life_keep_a_node_alive(driver, store, watch, sign):
    node = Pulses(driver, sign, watch).node()
    graph = lone(node, {"checkpointer": store}, timeout=TimeoutPolicy(idle_timeout=SOON))

    assert driver.invoke(graph, {"name": "x"}, thread())["value"] == "alive"


@pytest.mark.parametrize("sign", SIGNS[1:])
def test_only_heartbeats_count_where_the_policy_says_so(driver, store, watch, sign):
    node = Pulses(driver, sign, watch).node()
    policy = TimeoutPolicy(idle_timeout=SOON, refresh_on="heartbeat")
    graph = lone(node, {"checkpointer": store}, timeout=policy)

    with pytest.raises(NodeTimeoutError, match="was not heard of") as raised:
        driver.invoke(graph, {"name": "x"}, thread())

    assert raised.value.kind == "idle"


def test_run_timeout_counts_whatever_the_signs_of_life(driver, store, watch):
    node = Pulses(driver, lambda: get_runtime().heartbeat(), watch).node()
    policy = TimeoutPolicy(run_timeout=SOON, idle_timeout=60)
    graph = lone(node, {"checkpointer": store}, timeout=policy)

    with pytest.raises(NodeTimeoutError) as raised:
        driver.invoke(graph, {"name": "x"}, thread())

    assert raised.value.kind == "run"


# ── Beside others ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_of_siblings_are_kept(driver, store, hang):
    calm = Flaky()
    slow = hang.node(driver, lambda: None)
    nodes = [
        ("calm", driver.node(lambda state: {"log": [calm("calm")]}), {}),
        ("slow", slow, {"timeout": SOON}),
    ]
    with pytest.raises(NodeTimeoutError):
        driver.invoke(beside(nodes, checkpointer=store), {"name": "x"}, thread())

    mended = [nodes[0], ("slow", driver.node(lambda state: {"log": ["slow"]}), {})]
    result = driver.invoke(beside(mended, checkpointer=store), None, thread())

    assert result["log"] == ["calm", "slow"]
    assert calm.calls == 1


def test_timeout_of_a_send_counts_more_than_that_of_its_node(driver, store, hang):
    slow = hang.node(driver, lambda: None)

    def run(arg):
        return slow(arg) if arg["name"] == "slow" else {"log": [arg["name"]]}

    async def arun(arg):
        return await slow(arg) if arg["name"] == "slow" else {"log": [arg["name"]]}

    builder = StateGraph(State)
    builder.add_node(
        "node",
        run if driver.name == "sync" else arun,
        timeout=60,
        error_handler=lambda state, error: {"log": [f"{state['name']}: {type(error.error).__name__}"]},
    )
    sends = [Send("node", {"name": "quick"}), Send("node", {"name": "slow"}, timeout=SOON)]
    builder.add_conditional_edges(START, lambda state: sends)
    graph = builder.compile(checkpointer=store)

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["log"] == ["quick", "slow: NodeTimeoutError"]


def test_timeout_of_a_send_is_saved_with_it(driver, store, hang):
    slow = hang.node(driver, lambda: None)
    builder = StateGraph(State).add_node("node", slow)
    sends = [
        Send("node", {"name": 1}, timeout=SOON),
        Send("node", {"name": 2}, timeout=timedelta(seconds=SOON)),
        Send("node", {"name": 3}, timeout=TimeoutPolicy(run_timeout=SOON)),
    ]
    builder.add_conditional_edges(START, lambda state: sends)
    graph = builder.compile(checkpointer=store)
    driver.invoke(graph, {"name": "x"}, thread(), interrupt_before=["node"])

    with pytest.raises(NodeTimeoutError):
        driver.invoke(graph, None, thread())


def test_timeout_for_a_node_that_is_a_graph_is_refused_where_it_is_written():
    inner = lone(lambda state: None)

    with pytest.raises(GraphError, match="nodes inside"):
        lone(inner, timeout=SOON)


def test_timeout_of_a_send_to_a_node_that_is_a_graph_is_refused(driver, store):
    builder = StateGraph(State).add_node("node", lone(driver.node(lambda state: None)))
    builder.add_conditional_edges(START, lambda state: [Send("node", {"name": 1}, timeout=SOON)])
    graph = builder.compile(checkpointer=store)

    with pytest.raises(GraphError, match="nodes inside"):
        driver.invoke(graph, {"name": "x"}, thread())


def test_nodes_of_a_graph_inside_a_node_have_timeouts_of_their_own(driver, store, hang):
    inner = lone(hang.node(driver, lambda: None), timeout=SOON)
    graph = lone(inner, {"checkpointer": store})

    with pytest.raises(NodeTimeoutError):
        driver.invoke(graph, {"name": "x"}, thread())
